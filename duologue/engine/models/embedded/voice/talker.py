"""The trained talker's stage: a reply's text, as it appears, to codes. One ``step`` is one word of one session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from duologue.engine.messages import CodecFrames, Fence, ReplyText, StageInput, StageOutput, TextSpan
from duologue.engine.models.embedded.reading import Reading
from duologue.engine.models.embedded.voice import weights
from duologue.engine.models.embedded.voice.network import Network
from duologue.engine.models.embedded.voice.pace import Pace, between
from duologue.engine.models.embedded.voice.pronouncer import Pronouncer
from duologue.engine.models.embedded.voice.sentences import Sentences, SpokenWord
from duologue.engine.models.embedded.voice.symbols import EOS, ID, SYMBOLS, is_vowel
from duologue.engine.models.embedded.voice.utterance import CODEBOOKS, Said, Utterance, to_codes, to_digits
from duologue.engine.models.embedded.voice_format import FRAME_SAMPLES
from duologue.engine.models.filing import Filing

_VOWELS = frozenset(i for i, symbol in enumerate(SYMBOLS) if is_vowel(symbol))


class _Reply:
    """One reply on its way from text to codes."""

    def __init__(self, fence: Fence, start: int, network: Network, pronouncer: Pronouncer) -> None:
        self.fence = fence
        self._network = network
        self._reading = Reading(start)
        self._sentences = Sentences(pronouncer)
        self._utterance: Utterance | None = None
        """The sentence that has begun."""
        self._pace = Pace()
        self._seq = 0
        self._frames = 0
        self._began = 0
        """Frames of the reply before the written word that is being said."""

    @property
    def ready(self) -> bool:
        return self._sentences.ready or self._sentences.done

    def add(self, delta: ReplyText) -> None:
        """Take a delta."""
        self._sentences.push(self._reading.read(delta))
        if delta.last:
            self._sentences.finish()

    def speak(self) -> CodecFrames:
        """The frames of the next word; the last ones, maybe none, once the text is finished."""
        codes, spans = np.empty((0, CODEBOOKS), np.int32), list[TextSpan]()
        if self._sentences.ready:
            word, after = self._sentences.next()
            utterance = self._utterance or Utterance(self._network)
            said = utterance.say(word.symbols, after.symbols if after else (ID[EOS],))
            self._utterance = utterance if after else None
            places = self._paced(word, said)
            codes = to_codes(between(to_digits(said.codes), places))
            if word.begins:
                self._began = self._frames
            if word.ends:
                sounding = sum(said.places[int(place)] < len(word.symbols) - 1 for place in places)
                spans.append(TextSpan(word.written.start, word.written.end, self._began * FRAME_SAMPLES,
                                      (self._frames + max(sounding, 1)) * FRAME_SAMPLES))
            self._frames += len(codes)
        fence = Fence(self.fence.session, self.fence.epoch, self.fence.turn, self._seq)
        self._seq += 1
        return CodecFrames(fence, codes, tuple(spans), self._sentences.done)

    def _paced(self, word: SpokenWord, said: Said) -> list[float]:
        held = [now == before for now, before in zip(said.places, (-1, *said.places), strict=False)]
        pause = len(word.symbols) - 1
        lasting = [again or place == pause or word.symbols[place] in _VOWELS
                   for again, place in zip(held, said.places, strict=True)]
        return self._pace.places(lasting, [not again for again in held], self._reading.rate)


class TrainedTalker:
    """The stage; sessions share the weights and take turns."""

    def __init__(self, network: Network, pronouncer: Pronouncer) -> None:
        self._replies: Filing[ReplyText, _Reply] = Filing(
            ReplyText, lambda delta: _Reply(delta.fence, delta.start, network, pronouncer))

    @classmethod
    def load(cls, folder: Path = weights.FOLDER) -> TrainedTalker:
        """With the weights in ``folder``; raises ``ConfigError`` if they are missing."""
        return cls(Network(weights.load(folder, "talker")), Pronouncer(folder))

    def receive(self, message: StageInput) -> None:
        """File a message; text of an older epoch, or of a reply already said, is dropped."""
        self._replies.receive(message)

    @property
    def ready(self) -> bool:
        """Whether any session has a word to say or a reply to end."""
        return self._replies.ready

    def step(self) -> Sequence[StageOutput]:
        """Say the next word of the session that has waited longest: about 15 ms of work."""
        spoken = [reply.speak() for reply in self._replies.take(1)]
        for frames in spoken:
            if frames.last:
                self._replies.end(frames.fence)
        return spoken
