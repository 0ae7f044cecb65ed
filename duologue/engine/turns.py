"""One reply as the hub knows it, and what a caller who stopped listening had heard of it."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from duologue.engine.messages import ReplyAudio, ReplyText, TextSpan, TurnStatus

TURNS_KEPT = 32
"""Replies that can still be cut; older ones have long been played."""
FIRST_SPAN_S = 2.0
"""Audio within which a model that gives spans has given one: longer than any word takes."""
CHARS_PER_SECOND = 15.0
"""Usual speed of English speech (about 150 words of six characters a minute): tells how long a reply will be
that has no word spans and whose audio is not whole yet."""


@dataclass(slots=True)
class Turn:
    """A reply. Sample positions count from the start of its audio, at the pipeline's output rate."""

    number: int
    text: str = ""
    text_whole: bool = False
    rates: list[tuple[int, float]] = field(default_factory=list)
    """Where in the text a new speaking rate begins, and which."""
    text_seq: int = 0
    """Sequence number its next text has, in the thinker's present life."""
    spans: list[TextSpan] = field(default_factory=list)
    samples: int = 0
    audio_seq: int = 0
    """Sequence number its next audio has, in the codec's present life."""
    audio_base: int = 0
    """Samples there were when the voice stages were last rebuilt: those stages count from there."""
    early: deque[ReplyAudio] = field(default_factory=deque)
    """Audio that came before the text it speaks."""
    surfaced: bool = False
    """Whether the agent has been given anything of it."""
    surfaced_samples: int = 0
    """How much of its audio the agent has been given."""
    status: TurnStatus | None = None
    told: bool = False
    """Whether the agent has been given its terminal event."""
    heard: str | None = None
    """What was heard of it, once it was cut."""
    sent: int = 0
    """Characters given to the talker in its present life."""
    sent_seq: int = 0
    sent_last: bool = False

    @property
    def open(self) -> bool:
        """Whether its one terminal event is still to come."""
        return self.status is None

    def write(self, text: ReplyText) -> None:
        """Add the next piece of its text."""
        if not self.rates or self.rates[-1][1] != text.rate:
            self.rates.append((len(self.text), text.rate))
        self.text_seq += 1
        self.text += text.text
        self.text_whole = text.last

    def wrote(self, audio: ReplyAudio) -> bool:
        """Whether the text that ``audio`` speaks has been written."""
        return (self.text_whole or not audio.last) and all(span.end <= len(self.text) for span in audio.spans)

    def unsent(self) -> tuple[int, float] | None:
        """Where the next piece for the talker ends, and its rate; None when the talker has had everything."""
        if self.sent == len(self.text) and self.text_whole == self.sent_last:
            return None
        rate = next((rate for start, rate in reversed(self.rates) if start <= self.sent), 1.0)
        end = next((start for start, _ in self.rates if start > self.sent), len(self.text))
        return end, rate


class Turns:
    """The replies of one session, from the first on; ``rate`` is that of their audio, in Hz."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._turns: dict[int, Turn] = {}
        self.last = -1
        """The highest number there was."""
        self._spans = False
        self._bare_samples = 0
        """Audio that came before the first span."""

    def get(self, number: int) -> Turn | None:
        """The reply with this number; None when there is none (any more)."""
        return self._turns.get(number)

    @property
    def open(self) -> list[Turn]:
        """Replies whose terminal event is still to come, in order."""
        return [turn for turn in self._turns.values() if turn.open]

    def begin(self, number: int) -> Turn | None:
        """Add a reply; returns the one that had to go for it."""
        self.last = number
        self._turns[number] = Turn(number)
        return self._turns.pop(next(iter(self._turns))) if len(self._turns) > TURNS_KEPT else None

    def grow(self, turn: Turn, samples: int, spans: tuple[TextSpan, ...]) -> None:
        """Note that ``samples`` more of a reply's audio have come, and these spans."""
        turn.samples += samples
        turn.spans.extend(spans)
        self._spans = self._spans or bool(spans)
        if not self._spans:
            self._bare_samples += samples

    def heard(self, turn: Turn, samples: int) -> str:
        """What of the reply's text its first ``samples`` spoke.

        Of a model that gives spans, and one that may yet, nothing was heard before the first word's end.
        """
        first_word = not turn.spans and (self._spans or self._bare_samples < FIRST_SPAN_S * self._rate)
        if first_word and turn.status is not TurnStatus.DONE:
            return ""
        return heard_text(turn, samples, self._rate)

    def cut(self, number: int, heard_samples: int) -> list[tuple[Turn, str]]:
        """Reply ``number`` and each whose end the agent does not know, in order, with what was heard of it.

        One before it was heard as far as its audio came out, one after it not at all. What was cut stays cut.
        """
        cut = []
        for turn in self._turns.values():
            if turn.heard is None and (turn.number == number or not turn.told):
                limit = heard_samples if turn.number == number else math.inf if turn.number < number else 0
                # Nobody has heard what has not come out.
                cut.append((turn, self.heard(turn, int(min(limit, turn.surfaced_samples)))))
        return cut


def heard_text(turn: Turn, heard_samples: int, rate: int) -> str:
    """The beginning of the reply's text that the first ``heard_samples`` samples at ``rate`` Hz spoke.

    A word counts when at least 3/4 of it was heard; what stands between two words belongs to the first. Where
    the model gives no spans, whole words in proportion to the length of the audio.
    """
    if turn.status is TurnStatus.DONE and heard_samples >= turn.samples:
        return turn.text
    if not turn.spans:
        return turn.text[:_proportional_end(turn, heard_samples, rate)]
    end = 0
    for span in turn.spans:
        if 4 * (heard_samples - span.first_sample) < 3 * (span.end_sample - span.first_sample):
            return turn.text[:max(end, span.start)] if end else ""
        end = span.end
    return turn.text[:_over_gap(turn.text, end)]


def _over_gap(text: str, at: int) -> int:
    while at < len(text) and not text[at].isalnum():
        at += 1
    return at


def _proportional_end(turn: Turn, heard_samples: int, rate: int) -> int:
    total = turn.samples
    if turn.status is not TurnStatus.DONE:
        total = max(total, round(len(turn.text) / CHARS_PER_SECOND * rate))
    if total <= 0 or heard_samples <= 0:
        return 0
    end = min(len(turn.text), len(turn.text) * heard_samples // total)
    while 0 < end < len(turn.text) and turn.text[end - 1].isalnum() and turn.text[end].isalnum():
        end -= 1
    return _over_gap(turn.text, end) if end else 0
