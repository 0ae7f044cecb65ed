"""SRTP (RFC 3711) with keys from the SDP (RFC 4568), by libsrtp; or plain RTP behind the same face."""

from __future__ import annotations

from typing import Protocol

import pylibsrtp

from duologue.agent.transports.sip.media.negotiation import Keys, Suite

_PROFILES: dict[Suite, int] = {"AES_CM_128_HMAC_SHA1_80": pylibsrtp.Policy.SRTP_PROFILE_AES128_CM_SHA1_80,
                               "AES_CM_128_HMAC_SHA1_32": pylibsrtp.Policy.SRTP_PROFILE_AES128_CM_SHA1_32}

Refused = pylibsrtp.Error
"""Raised for a packet that does not prove itself, is a replay, or is no packet at all."""


class Protection(Protocol):
    """What is done to packets on their way."""

    @property
    def authentic(self) -> bool:
        """Whether what comes out of it has proved who sent it."""

    def wrap(self, packet: bytes) -> bytes:
        """Protect an RTP packet."""

    def unwrap(self, data: bytes) -> bytes:
        """Check an RTP packet; raises ``Refused``."""

    def wrap_control(self, packet: bytes) -> bytes:
        """Protect an RTCP packet."""

    def unwrap_control(self, data: bytes) -> bytes:
        """Check an RTCP packet; raises ``Refused``."""


class Plain:
    """No protection."""

    authentic = False

    @staticmethod
    def wrap(packet: bytes) -> bytes:
        """As it is."""
        return packet

    unwrap = wrap_control = unwrap_control = wrap


class Srtp:
    """One stream each way."""

    authentic = True

    def __init__(self, keys: Keys) -> None:
        profile = _PROFILES[keys.suite]
        out = pylibsrtp.Policy(key=keys.ours, ssrc_type=pylibsrtp.Policy.SSRC_ANY_OUTBOUND, srtp_profile=profile)
        into = pylibsrtp.Policy(key=keys.theirs, ssrc_type=pylibsrtp.Policy.SSRC_ANY_INBOUND, srtp_profile=profile)
        outward, inward = pylibsrtp.Session(policy=out), pylibsrtp.Session(policy=into)
        self.wrap, self.wrap_control = outward.protect, outward.protect_rtcp
        self.unwrap, self.unwrap_control = inward.unprotect, inward.unprotect_rtcp


def protection(keys: Keys | None) -> Protection:
    """Return what ``keys`` ask for."""
    return Plain() if keys is None else Srtp(keys)
