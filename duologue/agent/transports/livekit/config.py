"""The LiveKit worker's configuration: which server, which jobs, whom it listens to."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from duologue.strict import Strict

GuestKind = Literal["standard", "sip", "connector"]
"""Kinds of participants that may be callers, as LiveKit names them: a client SDK, a telephone, a messenger's call.
Agents, recorders (egress) and streams (ingress) never are."""


class LinkConfig(Strict):
    """Which participant of a room is the caller. Another that fits takes over when it leaves."""

    rule: Literal["first", "identity", "kind"] = "first"
    """``first``: whoever came first. ``identity``: only the participant named ``identity``. ``kind``: whoever came
    first of those of ``kind``."""
    identity: str = ""
    kind: GuestKind | None = None

    @model_validator(mode="after")
    def _says_who(self) -> Self:
        if (self.rule == "identity") != bool(self.identity):
            raise ValueError("'identity' names the participant if, and only if, the rule is 'identity'")
        if (self.rule == "kind") != (self.kind is not None):
            raise ValueError("'kind' names the kind of participant if, and only if, the rule is 'kind'")
        return self


class LiveKitConfig(Strict):
    """One LiveKit server and how its rooms are served."""

    url: str = Field(pattern=r"^(wss?|https?)://[^/\s]+")
    """Of the LiveKit server: ``ws://host:7880``, ``wss://...``."""
    api_key: str = Field(min_length=1)
    api_secret: SecretStr = Field(min_length=1)
    agent_name: str = ""
    """With a name, jobs come by explicit dispatch only; without, there is one for every new room."""
    link: LinkConfig = LinkConfig()
    caller_wait_s: float = Field(default=300.0, gt=0)
    """How long a room may be without a caller at first. LiveKit itself closes an empty room after 300 s."""
    rejoin_wait_s: float = Field(default=10.0, ge=0)
    """How long a caller who was lost may take to come back before the call is over; one who left is not waited for."""
    away_wait_s: float = Field(default=30.0, gt=0)
    """How long the room may be out of reach. The SDK gives up after 17 s only if its connections are refused; in a
    network that swallows everything it goes on for ever."""
    after_sip_call: Literal["leave", "remove_caller", "delete_room"] = "remove_caller"
    """What ends a telephone caller's own call when ours ends first: LiveKit keeps the line open until the participant
    is removed or the room deleted."""
