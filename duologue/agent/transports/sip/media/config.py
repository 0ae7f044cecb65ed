"""What telephone calls' media may be, and where it is received."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Self

from pydantic import Field, field_validator, model_validator

from duologue.agent.transports.sip.media.negotiation import CodecName, Secrecy
from duologue.strict import Strict


class SipMedia(Strict):
    """RTP of every call."""

    bind: str = ""
    """Numeric address of the interface that RTP is received at; that of the call's signalling if empty."""
    ports: tuple[int, int] = (10_000, 19_999)
    """UDP ports for RTP and RTCP, first and last; a call takes two."""
    codecs: tuple[CodecName, ...] = Field(default=("opus", "g722", "pcma", "pcmu"), min_length=1)
    """What may be spoken. Of an offer the first that is among them is taken, of ours the first comes first."""
    srtp: Secrecy = "accept"
    """``accept``: SRTP where the other side offers it, and offered to others where signalling is TLS, for the keys
    are in it. ``require``: no call without. ``never``: none."""
    timeout_s: float = Field(default=30.0, gt=0)
    """A caller of whom nothing came for so long is lost; a call on hold is not timed."""
    queue_s: float = Field(default=0.0, ge=0)
    """How long a caller may hear it ring while the engine is full; 0 answers busy at once."""

    @field_validator("bind")
    @classmethod
    def _numeric(cls, value: str) -> str:
        return str(ip_address(value)) if value else value

    @model_validator(mode="after")
    def _a_pair_at_least(self) -> Self:
        low, high = self.ports
        if not 1024 <= low + low % 2 < high <= 65_535:
            raise ValueError("'ports' needs an even port and the next one, both between 1024 and 65535")
        return self
