"""The replies of one session: their text and audio as they come from the stages, the epoch, and each one's one end."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from duologue.engine.config import PipelineConfig
from duologue.engine.connectors import Missing
from duologue.engine.effects import Effects
from duologue.engine.feed import Feed
from duologue.engine.journal import Cut, GivenUp, Said
from duologue.engine.messages import CodecFrames, Fence, ReplyAudio, ReplyText, TurnEnd, TurnStatus
from duologue.engine.pipeline import Graph
from duologue.engine.turns import Turn, Turns

CONTINUE_WITHIN_S = 2.0
"""Caller's time within which a rebuilt thinker must go on with the reply it was writing."""


class Replies:
    """Keeps them; what it cannot go on with it fails."""

    def __init__(self, session: str, config: PipelineConfig, graph: Graph, effects: Effects, feed: Feed) -> None:
        self.epoch = 0
        self.turns = Turns(config.output_rate)
        self._session = session
        self._unit_s = config.unit_s
        self._direct = graph.nodes[graph.thinker].direct
        self._effects = effects
        self._feed = feed
        self._continue_by: dict[int, int] = {}
        """Replies a rebuilt thinker must go on with, and the unit by which it must."""

    # --- what the stages say --------------------------------------------------------------------------------

    def of(self, fence: Fence) -> Turn | None:
        """The open reply a message belongs to; None when the message is stale."""
        if fence.epoch != self.epoch:
            return None
        if fence.turn > self.turns.last:
            oldest = self.turns.begin(fence.turn)
            if oldest is not None and oldest.open:
                self.fail(oldest, "too many replies were begun after it")
        turn = self.turns.get(fence.turn)
        return turn if turn is not None and turn.open else None

    def text(self, turn: Turn, text: ReplyText) -> None:
        """Take the next piece of its text."""
        if text.fence.seq < turn.text_seq:
            self._effects.drop("message", "duplicate")
            return
        if text.fence.seq > turn.text_seq or text.start != len(turn.text) or turn.text_whole:
            self.fail(turn, "a piece of the reply's text is missing")
            return
        self._continue_by.pop(turn.number, None)
        self._write(turn, text)
        if self._direct:
            turn.sent, turn.sent_last = len(turn.text), turn.text_whole
        else:
            self.feed()
        self._audio_with_text(turn)

    def say(self, text: str, rate: float) -> None:
        """Begin a reply that no thinker wrote, after all others: its text is whole, and the talker has none of it."""
        fence = Fence(self._session, self.epoch, self.turns.last + 1, 0)
        turn = self.of(fence)
        assert turn is not None
        self._write(turn, ReplyText(fence, 0, text, last=True, rate=rate))
        self.feed()

    def _write(self, turn: Turn, text: ReplyText) -> None:
        turn.write(text)
        self._effects.record(Said(turn.number, text.text, text.last))
        self._effects.emit(text)

    def frames(self, turn: Turn, stage: str, frames: CodecFrames) -> None:
        """Pass its codec frames on."""
        try:
            if not self._feed.frames(stage, frames):
                self._effects.drop("message", "duplicate")
        except Missing as missing:
            self.fail(turn, str(missing))

    def audio(self, turn: Turn, audio: ReplyAudio) -> None:
        """Take a chunk of its audio."""
        turn.early.append(audio)
        self._audio_with_text(turn)

    def feed(self) -> None:
        """Give the talker what it has room for of the text it has not had."""
        self._feed.text(self.turns.open, self.epoch)

    def _audio_with_text(self, turn: Turn) -> None:
        """Take the audio whose text has come: past the hub, text may reach its ear before it reaches its record."""
        while turn.open and turn.early and turn.wrote(turn.early[0]):
            self._take_audio(turn, turn.early.popleft())

    def _take_audio(self, turn: Turn, audio: ReplyAudio) -> None:
        if audio.fence.seq < turn.audio_seq:
            self._effects.drop("message", "duplicate")
            return
        if audio.fence.seq > turn.audio_seq:
            self.fail(turn, "a piece of the reply's audio is missing")
            return
        turn.audio_seq += 1
        spans = tuple(replace(span, first_sample=span.first_sample + turn.audio_base,
                              end_sample=span.end_sample + turn.audio_base) for span in audio.spans)
        self._effects.emit(replace(audio, first_sample=turn.samples, spans=spans))
        self.turns.grow(turn, len(audio.pcm), spans)
        if audio.last:
            self.end(turn, TurnStatus.DONE, turn.text)

    # --- their ends -----------------------------------------------------------------------------------------

    def cut(self, number: int, heard_samples: int) -> list[tuple[Turn, str]]:
        """Raise the epoch. Returns each reply that was cut by that, with what was heard of it; see ``Turns.cut``."""
        self.epoch += 1
        effects = self._effects
        effects.drop("message", "stale", self._feed.raise_epoch(self.epoch))
        cut = self.turns.cut(number, heard_samples)
        surfaced = {turn.number for turn, _ in cut if turn.number == number or turn.surfaced}
        effects.drop("message", "stale", effects.outbox.raise_epoch(
            self.epoch, {turn.number: text for turn, text in cut}, surfaced))
        for turn, text in cut:
            effects.record(Cut(turn.number, text, self.epoch))
            turn.heard = text
            if turn.open:
                self.end(turn, TurnStatus.INTERRUPTED, text, tell=turn.number in surfaced)
        return cut

    def fail(self, turn: Turn, reason: str) -> None:
        """End a reply of which there will be no more."""
        self._effects.record(GivenUp(turn.number))
        self.end(turn, TurnStatus.FAILED, turn.text, reason)

    def end(self, turn: Turn, status: TurnStatus, text: str, reason: str = "", *, tell: bool = True) -> None:
        """End an open reply; the agent is told, unless it has seen nothing of it."""
        turn.status = status
        self._continue_by.pop(turn.number, None)
        if tell:
            self._effects.emit(TurnEnd(self._session, self.epoch, turn.number, status, text, reason))

    # --- rebuilt stages -------------------------------------------------------------------------------------

    def thinker_starts_over(self, decided: int) -> None:
        """Note that the thinker, whose numbers of a reply's messages start from 0 again, must go on with its reply."""
        unfinished = [turn for turn in self.turns.open if not turn.text_whole]
        for turn in unfinished[:-1]:
            self.fail(turn, "another reply was begun before its text was whole")
        for turn in unfinished[-1:]:
            turn.text_seq = 0
            self._continue_by[turn.number] = decided + math.ceil(CONTINUE_WITHIN_S / self._unit_s)

    def fail_late(self, decided: int) -> None:
        """Fail what a rebuilt thinker should have gone on with before unit ``decided``."""
        for turn in self.turns.open:
            if decided >= self._continue_by.get(turn.number, math.inf):
                self.fail(turn, "the reply could not be continued after a restart")

    def voice_starts_over(self) -> None:
        """Have new voice stages say what the old ones have not said."""
        for turn in self.turns.open:
            turn.audio_seq, turn.audio_base = 0, turn.samples
            turn.early.clear()
            turn.sent, turn.sent_seq, turn.sent_last = len(self.turns.heard(turn, turn.samples)), 0, False
            if turn.text_whole and not any(char.isalnum() for char in turn.text[turn.sent:]):
                # Every word was spoken; only the mark of the end was lost.
                fence = Fence(self._session, self.epoch, turn.number, 0)
                self._take_audio(turn, ReplyAudio(fence, 0, np.zeros(0, np.int16), last=True))
        self.feed()
