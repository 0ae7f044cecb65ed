"""A call as it was at the caller's end: microphone, agent's voice and events on one clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.harness.microphone import Microphone
from tests.harness.sound import RATE, Sound, Span, end_of_sound, first_sound, locate, spans

MIN_FIT = 0.3
"""Correlation below which an utterance counts as not found in the microphone's track.

The browser's own processing leaves 0.5 to 0.9 (voice and gain control decide); noise stays below 0.1.
"""

STUMBLE = RATE * 4 // 10
"""Samples an utterance may be off its place after the one before: a busy machine's microphone stumbles."""


@dataclass(frozen=True, slots=True)
class ChannelEvent:
    """A message of the data channel and when (in samples of the recording) the page saw it."""

    at: int
    body: dict[str, Any]

    @property
    def type(self) -> str:
        """Its name."""
        return str(self.body.get("type", ""))


class Track:
    """A signal put together from pieces as they come; what is missing is silence."""

    def __init__(self) -> None:
        self.end = 0
        """Sample after the last piece's."""
        self._samples = np.zeros(60 * RATE, np.float32)

    def put(self, at: int, piece: Sound) -> None:
        """Lay ``piece`` at sample ``at``; what lies before sample 0 is left out."""
        piece, at = piece[max(-at, 0) :], max(at, 0)
        while at + piece.size > self._samples.size:
            self._samples = np.concatenate([self._samples, np.zeros_like(self._samples)])
        self._samples[at : at + piece.size] = piece
        self.end = max(self.end, at + piece.size)

    def read(self, start: int, end: int) -> Sound:
        """A copy of samples [start, end), silence where there is nothing."""
        out = np.zeros(max(end - start, 0), np.float32)
        first, last = max(start, 0), min(end, self.end)
        if first < last:
            out[first - start : last - start] = self._samples[first:last]
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """Two tracks of the same length at 48 kHz: what the microphone gave, and what the caller heard."""

    mic: Sound
    agent: Sound
    events: Sequence[ChannelEvent] = field(default_factory=tuple)
    rate: int = RATE

    def said(self, microphone: Microphone) -> list[Span]:
        """Where in this recording each utterance of ``microphone`` really is, in order.

        Raises ``LookupError`` for one that is not there.
        """
        first, last = microphone.utterances[0].span, microphone.utterances[-1].span
        # All of it together finds the place even of sounds that are all alike; each alone, how it stumbled.
        start, _ = locate(microphone.read(first.start, min(last.end, first.start + self.mic.size)), self.mic)
        shift = start - first.start
        found: list[Span] = []
        for utterance in microphone.utterances:
            start = utterance.span.start + shift
            around = Span(start - STUMBLE, start + utterance.sound.size + STUMBLE)
            start, fit = locate(utterance.sound, self.mic, around)
            if fit < MIN_FIT:
                raise LookupError(f"{utterance.text!r} is not in the microphone's track (fit {fit:.2f})")
            shift = start - utterance.span.start
            found.append(Span(start, start + utterance.sound.size))
        return found

    def replies(self, gap_ms: int = 700) -> list[Span]:
        """Stretches in which the agent was heard."""
        return spans(self.agent, gap_ms=gap_ms)

    def answered(self, after: int, quiet_s: float) -> bool:
        """Whether the agent was heard after sample ``after`` and then was quiet for ``quiet_s``."""
        begin = first_sound(self.agent, after)
        if begin is None:
            return False
        end = end_of_sound(self.agent, begin, quiet_ms=round(1000 * quiet_s))
        return self.agent.size - end >= quiet_s * RATE

    def of_type(self, name: str) -> list[ChannelEvent]:
        """Events of one type, in order."""
        return [event for event in self.events if event.type == name]

    def dialogue(self) -> str:
        """What each side said as the server understood it, for messages of failing tests."""
        lines = []
        for event in self.events:
            when = f"{event.at / self.rate:6.2f} s"
            match event.body:
                case {"type": "conversation.item.input_audio_transcription.completed", "transcript": text}:
                    lines.append(f"{when} caller: {text}")
                case {"type": "response.output_audio_transcript.done", "transcript": text}:
                    lines.append(f"{when} agent:  {text}")
                case {"type": "duologue.reply.heard", "heard_text": text}:
                    lines.append(f"{when} (cut)   {text}")
                case {"type": "error" | "duologue.health"}:
                    lines.append(f"{when} {event.body}")
        return "\n".join(lines)

    def agent_between(self, start: int, end: int) -> Sound:
        """The agent's track in samples [start, end), zero-padded where the recording is shorter."""
        piece = self.agent[max(start, 0) : max(end, 0)]
        return np.concatenate([piece, np.zeros(end - max(start, 0) - piece.size, np.float32)])
