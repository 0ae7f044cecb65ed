"""Where a replay differs from its recording, for a reader."""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from duologue.agent.recording import tape
from duologue.agent.recording.replay import Replay
from duologue.agent.recording.tape import AnyEntry, Recording
from duologue.engine import INPUT_RATE, Pcm

CONTEXT_LINES = 2
_IDS = ("id", "item_id", "previous_item_id", "response_id", "conversation_id")
_FREE = ("event_id", "received_at")
"""What is different in every call: random ids' own names, times of day."""


def differences(recording: Recording, replay: Replay) -> Iterator[str]:
    """Lines that say what differs: events in the form of a unified diff, then audio. None when nothing does."""
    then, now = _lines(recording.entries), _lines(replay.entries)
    yield from difflib.unified_diff(then, now, "recorded", "replayed", lineterm="", n=CONTEXT_LINES)
    yield from _sound("the agent's audio", recording.audio("agent"), _joined(replay.agent),
                      recording.sheet.pipeline.output_rate)
    cut = {entry.turn for entry in recording.entries if isinstance(entry, tape.Interrupted)}
    for turn, recorded in _replies(recording).items():
        # A reply that was cut came out as far as the engine had got by then, which is nobody's doing.
        replayed = _joined(replay.replies.get(turn, []))
        shorter, longer = sorted((len(recorded), len(replayed)))
        both = shorter if turn in cut else longer
        yield from _sound(f"reply {turn}", recorded[:both], replayed[:both], recording.sheet.pipeline.output_rate)


def _lines(entries: Sequence[AnyEntry]) -> list[str]:
    names = _Names()
    return [text for entry in entries if (text := _line(entry, names)) is not None]


def _line(entry: AnyEntry, names: _Names) -> str | None:
    match entry:
        case tape.Sent():
            what: dict[str, Any] = {"sent": names.of(entry.message)}
        case tape.Told() if entry.event["type"] in ("audio", "health"):
            # Audio is compared by its samples: how it is cut into chunks depends on how fast the machine was.
            return None
        case tape.Told():
            what = {"told": {key: value for key, value in entry.event.items() if key not in ("seq", "reason")}}
        case tape.Appended() | tape.Reopened() | tape.Injected() | tape.Responded() | tape.Interrupted():
            what = {"given": entry.model_dump(mode="json", exclude={"at"})}
        case _:
            return None
    return f"{entry.at / INPUT_RATE:8.2f} s  {json.dumps(what, ensure_ascii=False)}"


class _Names:
    """Random ids by the order in which they appear."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def of(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._name(item) if key in _IDS and isinstance(item, str) else self.of(item)
                    for key, item in value.items() if key not in _FREE}
        if isinstance(value, list):
            return [self.of(item) for item in value]
        return value

    def _name(self, given: str) -> str:
        return self._names.setdefault(given, f"#{len(self._names)}")


def _sound(name: str, recorded: Pcm, replayed: Pcm, rate: int) -> Iterator[str]:
    both = min(len(recorded), len(replayed))
    apart = np.flatnonzero(recorded[:both] != replayed[:both])
    if not len(apart) and len(recorded) == len(replayed):
        return
    first = int(apart[0]) if len(apart) else both
    loudest = int(np.abs(recorded[:both].astype(np.int32) - replayed[:both]).max(initial=0))
    yield (f"{name}: {len(recorded)} samples recorded, {len(replayed)} replayed, {len(apart)} different by up to "
           f"{loudest}; the first at {first / rate:.3f} s")


def _replies(recording: Recording) -> dict[int, Pcm]:
    pcm = recording.audio("reply")
    told = [entry for entry in recording.entries if isinstance(entry, tape.Told)]
    ends = itertools.accumulate(entry.samples for entry in told)
    pieces: dict[int, list[Pcm]] = {}
    for entry, end in zip(told, ends, strict=True):
        if entry.event["type"] == "audio":
            pieces.setdefault(entry.event["turn"], []).append(pcm[end - entry.samples:end])
    return {turn: _joined(chunks) for turn, chunks in pieces.items()}


def _joined(chunks: Sequence[Pcm]) -> Pcm:
    return np.concatenate(chunks) if chunks else np.zeros(0, np.int16)
