"""Which participant of a room is heard: events in, the linked one's identity out; no I/O.

A participant may be the caller when the rule allows it and it is ready: a telephone is in the room, with a track, while
it still rings, and must not be spoken to before somebody has answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from duologue.agent.transports.livekit.config import GuestKind, LinkConfig

CALL_STATUS = "sip.callStatus"
"""The attribute in which livekit-sip says how a telephone's call stands: dialing, ringing, active, hangup."""


@dataclass(frozen=True, slots=True)
class Linked:
    """``identity`` is the caller from now on."""

    identity: str


@dataclass(frozen=True, slots=True)
class Vacant:
    """The caller is gone and nobody takes over; ``may_return`` if it was lost and did not leave."""

    may_return: bool


Change = Linked | Vacant | None


@dataclass(slots=True)
class _Guest:
    kind: GuestKind | Literal["other"]
    status: str

    @property
    def ready(self) -> bool:
        return self.kind != "sip" or self.status == "active"


class Linking:
    """The participants of one room, in the order they came."""

    def __init__(self, rule: LinkConfig) -> None:
        self._rule = rule
        self._guests: dict[str, _Guest] = {}
        self.linked: str | None = None
        """Identity of the caller; None while there is none."""

    @property
    def on_the_phone(self) -> bool:
        """Whether the caller is a telephone."""
        return self.linked is not None and self._guests[self.linked].kind == "sip"

    def joined(self, identity: str, kind: GuestKind | Literal["other"], status: str = "") -> Change:
        """Note a participant and its ``sip.callStatus``; one that is known already keeps its place."""
        if identity in self._guests:
            return self.status(identity, status)
        self._guests[identity] = _Guest(kind, status)
        return self._fill()

    def status(self, identity: str, status: str) -> Change:
        """Note a change of a participant's ``sip.callStatus``; one that hung up is as good as gone."""
        guest = self._guests.get(identity)
        if guest is None or not status:
            return None
        guest.status = status
        if status == "hangup":
            return self.left(identity, may_return=False)
        return self._fill()

    def left(self, identity: str, *, may_return: bool) -> Change:
        """Note that a participant is gone; unknown ones are ignored."""
        if self._guests.pop(identity, None) is None or identity != self.linked:
            return None
        self.linked = None
        return self._fill() or Vacant(may_return)

    def _fill(self) -> Change:
        if self.linked is None:
            for identity, guest in self._guests.items():
                if guest.ready and self._fits(identity, guest):
                    self.linked = identity
                    return Linked(identity)
        return None

    def _fits(self, identity: str, guest: _Guest) -> bool:
        match self._rule.rule:
            case "identity":
                return guest.kind != "other" and identity == self._rule.identity
            case "kind":
                return guest.kind == self._rule.kind
            case "first":
                return guest.kind != "other"
