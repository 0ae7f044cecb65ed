"""The engine's events, and the items it is given, as a tape holds them: plain values, audio elsewhere."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from duologue.agent.recording.tape import Told
from duologue.engine import (
    CallerText,
    CallerWords,
    Choice,
    Decision,
    EngineEvent,
    Fence,
    Health,
    Instructions,
    Item,
    Pcm,
    ReplyAudio,
    ReplyText,
    TextSpan,
    ToolCall,
    ToolResult,
    Tools,
    TurnEnd,
    TurnStatus,
)

_ITEMS = {CallerText: "text", ToolResult: "tool_result", Instructions: "instructions", Tools: "tools"}


def item(given: Item) -> dict[str, Any]:
    """What the engine was given."""
    return {"type": _ITEMS[type(given)], **asdict(given)}


def encode(event: EngineEvent) -> dict[str, Any]:
    """What happened, without audio and without what differs from run to run (session ids, times)."""
    match event:
        case Decision():
            return {"type": "decision", "epoch": event.epoch, "turn": event.turn, "unit": event.unit,
                    "choice": event.choice.value, "yields": event.yields, "tokens": list(event.tokens)}
        case CallerWords():
            return {"type": "words", "utterance": event.utterance, "text": event.text, "final": event.final,
                    "first_unit": event.first_unit, "last_unit": event.last_unit}
        case ReplyText():
            return {"type": "text", **_fence(event.fence), "start": event.start, "text": event.text,
                    "last": event.last, "rate": event.rate}
        case ReplyAudio():
            spans = [[span.start, span.end, span.first_sample, span.end_sample] for span in event.spans]
            return {"type": "audio", **_fence(event.fence), "first_sample": event.first_sample, "spans": spans,
                    "last": event.last}
        case ToolCall():
            return {"type": "tool_call", "call": event.call, "name": event.name, "arguments": event.arguments}
        case TurnEnd():
            return {"type": "end", "epoch": event.epoch, "turn": event.turn, "status": event.status.value,
                    "text": event.text, "reason": event.reason}
        case Health():
            return {"type": "health", "stage": event.stage, "up": event.up, "detail": event.detail}


def entry(at: int, event: EngineEvent) -> Told:
    """The event's entry, at the caller's sample ``at``."""
    return Told(at=at, event=encode(event), samples=len(event.pcm) if isinstance(event, ReplyAudio) else 0)


def decode(told: dict[str, Any], pcm: Pcm | None = None) -> EngineEvent:
    """The event again; ``pcm`` is the audio of a chunk of a reply."""
    match told["type"]:
        case "decision":
            return Decision("", told["epoch"], told["turn"], told["unit"], Choice(told["choice"]), told["yields"],
                            tokens=tuple(told["tokens"]))
        case "words":
            return CallerWords("", told["utterance"], told["text"], told["final"], told["first_unit"],
                               told["last_unit"])
        case "text":
            return ReplyText(_read_fence(told), told["start"], told["text"], told["last"], told["rate"])
        case "audio":
            return ReplyAudio(_read_fence(told), told["first_sample"], np.zeros(0, np.int16) if pcm is None else pcm,
                              tuple(TextSpan(*span) for span in told["spans"]), told["last"])
        case "tool_call":
            return ToolCall("", told["call"], told["name"], told["arguments"])
        case "end":
            return TurnEnd("", told["epoch"], told["turn"], TurnStatus(told["status"]), told["text"], told["reason"])
        case "health":
            return Health(told["stage"], told["up"], told["detail"])
        case other:
            raise ValueError(f"a tape has no event of type {other!r}")


def _fence(fence: Fence) -> dict[str, int]:
    return {"epoch": fence.epoch, "turn": fence.turn, "seq": fence.seq}


def _read_fence(told: dict[str, Any]) -> Fence:
    return Fence("", told["epoch"], told["turn"], told["seq"])
