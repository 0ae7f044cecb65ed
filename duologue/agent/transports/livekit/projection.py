"""A call's Realtime events, as a room is told of them: captions, the agent's state, messages; no I/O.

The door is one more client of the call's control channel, so that nothing about a turn is known twice. Captions follow
LiveKit Agents' conventions: text streams on ``lk.transcription`` that belong to one segment by ``lk.segment_id``, where
a later stream of the same segment replaces the earlier one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

_STATES = {"listening": "listening", "thinking": "thinking", "speaking": "speaking", "ducked": "speaking",
           "paused": "listening"}
"""Of ``duologue.state``, in the words of ``lk.agent.state``."""

_OURS = "duologue."


@dataclass(frozen=True, slots=True)
class Message:
    """A Realtime event for the room's clients, as JSON text."""

    text: str


@dataclass(frozen=True, slots=True)
class AgentState:
    """What ``lk.agent.state`` is from now on."""

    state: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """More of what the agent says in ``segment``."""

    segment: str
    text: str


@dataclass(frozen=True, slots=True)
class SpokenDone:
    """What the agent says in ``segment`` is complete."""

    segment: str


@dataclass(frozen=True, slots=True)
class Caption:
    """All of a segment, in place of what was sent of it before; ``final`` if it will not change any more."""

    segment: str
    text: str
    by_caller: bool
    final: bool


Notice = Message | AgentState | Spoken | SpokenDone | Caption


class RoomProjection:
    """What a room has been told of one call."""

    def __init__(self, *, own_events: bool) -> None:
        """``own_events`` says whether the room's clients asked for the events named ``duologue.*``."""
        self._own_events = own_events
        self._open: set[str] = set()

    def outgoing(self, message: str) -> list[Notice]:
        """What to tell the room of one event of the call (JSON text)."""
        event = json.loads(message)
        kind: str = event["type"]
        notices: list[Notice] = []
        if self._own_events or not kind.startswith(_OURS):
            notices.append(Message(message))
        match event:
            case {"type": "duologue.state", "state": str(state)} if state in _STATES:
                notices.append(AgentState(_STATES[state]))
            case {"type": "response.output_audio_transcript.delta", "item_id": str(item), "delta": str(delta)}:
                self._open.add(item)
                notices.append(Spoken(item, delta))
            case {"type": "response.output_audio_transcript.done", "item_id": str(item)} if item in self._open:
                self._open.discard(item)
                notices.append(SpokenDone(item))
            case {"type": "duologue.reply.heard", "item_id": str(item), "heard_text": str(heard)}:
                notices.append(Caption(item, heard, by_caller=False, final=True))
            case {"type": "duologue.transcript.partial", "item_id": str(item), "text": str(text)}:
                notices.append(Caption(item, text, by_caller=True, final=False))
            case {"type": "conversation.item.input_audio_transcription.completed", "item_id": str(item),
                  "transcript": str(text)}:
                notices.append(Caption(item, text, by_caller=True, final=True))
        return notices

    def incoming(self, message: str) -> str:
        """Give a client's message as the call is to see it.

        Captions are made of our own events, so a client that does not want them must not switch them off for the call:
        they are only kept from it.
        """
        try:
            event = json.loads(message)
        except (ValueError, RecursionError):
            return message  # the call says what is wrong with it
        match event:
            case {"type": "session.update", "session": {"duologue": dict(wishes)} as session}:
                self._own_events = wishes.get("events") is True
                return json.dumps({**event, "session": with_own_events(session)})
        return message


def with_own_events(session: dict[str, Any]) -> dict[str, Any]:
    """Return a session object that asks for our own events."""
    return {**session, "duologue": {"events": True}}


def wants_own_events(session: dict[str, Any]) -> bool:
    """Whether a session object asks for our own events."""
    wishes = session.get("duologue")
    return isinstance(wishes, dict) and wishes.get("events") is True
