"""Speech to words: two decoders side by side, or one whose language model is fitted to the dialogue.

A recogniser is leased for one utterance at a time; the pool grows while nobody waits for it. pocketsphinx
holds Python's lock all the time, so loading one (about 0.3 s) in a thread would not spare anybody.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pocketsphinx

from duologue.engine.messages import Pcm
from duologue.engine.models.embedded.automaton import Automaton
from duologue.engine.models.embedded.lexicon import FREE_PREFIX, FittedLexicon, Lexicon

FRAMES_PER_SECOND = 100
"""pocketsphinx's default ``frate``."""
_LEAST = 1e-300
_FREE_PHONE = 1e-5
"""Weight of a phone of free speech against 1 for a word: it must lose where a word fits."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One word and its frames [start, end), counted from the start of the utterance's audio."""

    word: str
    start: int
    end: int

    @property
    def middle(self) -> float:
        """The frame in its middle."""
        return (self.start + self.end) / 2


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What a decoder heard: words, and how well the whole of it fits the sound.

    ``score`` is the logarithm of the acoustic likelihood, relative to each frame's best sound, over ``frames``.
    """

    words: tuple[Heard, ...] = ()
    score: float = 0.0
    frames: int = 0

    @property
    def texts(self) -> tuple[str, ...]:
        """The words alone."""
        return tuple(heard.word for heard in self.words)


class Recogniser:
    """A free language model and the dialogue's grammar. Raises RuntimeError where pocketsphinx cannot decode."""

    def __init__(self, lexicon: Lexicon, automaton: Automaton) -> None:
        # A second pass and a lattice search cost 80 ms at the end of a sentence for one word in fifty.
        self._free = pocketsphinx.Decoder(lm=lexicon.language_model, dict=lexicon.free_dictionary,
                                          fwdflat=False, bestpath=False, loglevel="FATAL")
        self._grammar = pocketsphinx.Decoder(lm=None, dict=lexicon.grammar_dictionary, bestpath=False,
                                             loglevel="FATAL")
        final = automaton.states
        transitions: list[tuple[int, int, float, str] | tuple[int, int, float]] = [
            (source, target, _FREE_PHONE if word.startswith(FREE_PREFIX) else 1.0, word)
            for source, target, word in automaton.arcs]
        transitions += [(state, final, 1.0) for state in sorted(automaton.accepting)]
        self._grammar.add_fsg("dialogue", self._grammar.create_fsg("dialogue", 0, final, transitions))
        self._grammar.activate_search("dialogue")

    def start(self, channel: str) -> None:
        """Begin an utterance; ``channel`` is the caller's mean spectrum as known so far."""
        for decoder in (self._free, self._grammar):
            decoder.set_cmn(channel)
            decoder.start_utt()

    def feed(self, pcm: Pcm) -> None:
        """Decode the next samples (16 kHz)."""
        data = pcm.tobytes()
        self._free.process_raw(data)
        self._grammar.process_raw(data)

    def partial(self) -> tuple[Hypothesis, Hypothesis]:
        """The words so far: freely, and by the grammar, which may be in the middle of a sentence."""
        return _hypothesis(self._free), _hypothesis(self._grammar)

    def finish(self) -> tuple[Hypothesis, Hypothesis]:
        """End the utterance: its words freely, and as a whole sentence of the grammar (maybe none)."""
        self._free.end_utt()
        self._grammar.end_utt()
        return _hypothesis(self._free), _hypothesis(self._grammar)

    @property
    def channel(self) -> str:
        """The caller's mean spectrum as known after an utterance."""
        channel: str = self._free.get_cmn(True)
        return channel


class Transcriber:
    """One decoder with a fitted language model. Raises RuntimeError where pocketsphinx cannot decode."""

    def __init__(self, lexicon: FittedLexicon) -> None:
        # A second pass and the best path of its lattice: what is final has a third fewer words wrong than what was
        # heard on the way, for a fortieth of the sentence's time at its end.
        self._decoder = pocketsphinx.Decoder(lm=lexicon.language_model, dict=lexicon.dictionary, loglevel="FATAL")

    def start(self, channel: str) -> None:
        """See ``Recogniser``."""
        self._decoder.set_cmn(channel)
        self._decoder.start_utt()

    def feed(self, pcm: Pcm) -> None:
        """See ``Recogniser``."""
        self._decoder.process_raw(pcm.tobytes())

    def partial(self) -> Hypothesis:
        """The words so far."""
        return _hypothesis(self._decoder)

    def finish(self) -> Hypothesis:
        """End the utterance: its words."""
        self._decoder.end_utt()
        return _hypothesis(self._decoder)

    @property
    def channel(self) -> str:
        """See ``Recogniser``."""
        channel: str = self._decoder.get_cmn(True)
        return channel


def _hypothesis(decoder: pocketsphinx.Decoder) -> Hypothesis:
    if decoder.hyp() is None:
        return Hypothesis()
    heard: list[Heard] = []
    score, frames = 0.0, 0
    for segment in decoder.seg():
        score += math.log(max(segment.ascore, _LEAST))
        frames = segment.end_frame + 1
        word = segment.word.split("(")[0]
        # Left out are silence, noises, the ends of a sentence and steps without a word.
        if word and word[0] not in "<[+" and not segment.word.startswith("(NULL)"):
            heard.append(Heard(word, segment.start_frame, segment.end_frame + 1))
    return Hypothesis(tuple(heard), score, frames)


class ChannelMeter:
    """Measures a caller's mean spectrum from a little speech.

    Decoders normalise by it. They adapt over five seconds, and until then hear half as many words wrong
    again: 31 % against 21 % of the free words in a caller's first sentence (flite's four voices).
    """

    def __init__(self, dictionary: str, word: str) -> None:
        """``dictionary`` is any that has ``word``."""
        # Any search will do: what is wanted is what the decoder does before it.
        self._decoder = pocketsphinx.Decoder(lm=None, dict=dictionary, bestpath=False, loglevel="FATAL")
        self._decoder.add_fsg("one", self._decoder.create_fsg("one", 0, 1, [(0, 1, 1.0, word)]))
        self._decoder.activate_search("one")

    def measure(self, pcm: Pcm) -> str:
        """The mean spectrum of ``pcm`` (16 kHz), as ``start`` takes it."""
        self._decoder.start_utt()
        self._decoder.process_raw(pcm.tobytes(), full_utt=True)
        self._decoder.end_utt()
        channel: str = self._decoder.get_cmn(False)
        return channel


class AnyRecogniser(Protocol):
    """What is leased for an utterance; a reader of its own kind makes something of it."""

    @property
    def channel(self) -> str:
        """See ``Recogniser``."""

    def start(self, channel: str) -> None:
        """See ``Recogniser``."""

    def feed(self, pcm: Pcm) -> None:
        """See ``Recogniser``."""

    def finish(self) -> object:
        """End the utterance."""


class Meter(Protocol):
    """Measures what recognisers of one kind are started with."""

    def measure(self, pcm: Pcm) -> str:
        """The channel of a voice that says ``pcm`` (16 kHz)."""


class Pool:
    """Recognisers of one kind for all sessions of a stage: ``warm`` from the start, at most ``limit``."""

    def __init__(self, load: Callable[[], AnyRecogniser], meter: Meter, warm: int, limit: int) -> None:
        self._load = load
        self._limit = limit
        self._count = 0
        self._free: list[AnyRecogniser] = []
        self.meter = meter
        for _ in range(min(warm, limit)):
            self.grow()

    def grow(self) -> None:
        """Load one more."""
        self._free.append(self._load())
        self._count += 1

    def wants_more(self, sessions: int) -> bool:
        """Whether ``sessions`` callers could have to wait for one another and another is allowed."""
        return self._count < min(sessions, self._limit)

    def lease(self) -> AnyRecogniser | None:
        """A free recogniser, or None for now."""
        return self._free.pop() if self._free else None

    def give_back(self, recogniser: AnyRecogniser) -> None:
        """Return a leased one whose utterance is finished."""
        self._free.append(recogniser)

    def discard(self) -> None:
        """Forget a leased one that failed; the pool grows again when it must."""
        self._count -= 1
