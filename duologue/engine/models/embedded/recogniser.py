"""Two decoders side by side on the same audio: a free language model and the dialogue's grammar.

A recogniser is leased for one utterance at a time; the pool grows while nobody waits for it. pocketsphinx
holds Python's lock all the time, so loading one (about 0.3 s) in a thread would not spare anybody.
"""

from __future__ import annotations

from dataclasses import dataclass

import pocketsphinx

from duologue.engine.messages import Pcm
from duologue.engine.models.embedded.automaton import Automaton
from duologue.engine.models.embedded.lexicon import FREE_PREFIX, Lexicon

FRAMES_PER_SECOND = 100
"""pocketsphinx's default ``frate``."""
_FREE_PHONE = 1e-4
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


Words = tuple[Heard, ...]


class Recogniser:
    """A pair of decoders. Raises RuntimeError where pocketsphinx cannot decode."""

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
        self._fresh: str = self._free.get_cmn()

    def start(self, channel: str | None) -> None:
        """Begin an utterance; ``channel`` is what ``channel`` gave after an earlier one of the same caller."""
        for decoder in (self._free, self._grammar):
            decoder.set_cmn(channel or self._fresh)
            decoder.start_utt()

    def feed(self, pcm: Pcm) -> None:
        """Decode the next samples (16 kHz)."""
        data = pcm.tobytes()
        self._free.process_raw(data)
        self._grammar.process_raw(data)

    def partial(self) -> tuple[Words, Words]:
        """The words so far: freely, and by the grammar, which may be in the middle of a sentence."""
        return _words(self._free), _words(self._grammar)

    def finish(self) -> tuple[Words, Words]:
        """End the utterance: its words freely, and as a whole sentence of the grammar (maybe none)."""
        self._free.end_utt()
        self._grammar.end_utt()
        return _words(self._free), _words(self._grammar)

    @property
    def channel(self) -> str:
        """The caller's mean spectrum after an utterance: what the next one is normalised by."""
        channel: str = self._free.get_cmn(True)
        return channel


def _words(decoder: pocketsphinx.Decoder) -> Words:
    if decoder.hyp() is None:
        return ()
    heard: list[Heard] = []
    for segment in decoder.seg():
        word = segment.word.split("(")[0]
        # What is left out are silence, noises and the ends of a sentence.
        if word and word[0] not in "<[+":
            heard.append(Heard(word, segment.start_frame, segment.end_frame + 1))
    return tuple(heard)


class Pool:
    """Recognisers for all sessions of a stage, at most ``limit``."""

    def __init__(self, lexicon: Lexicon, automaton: Automaton, limit: int) -> None:
        self._lexicon = lexicon
        self._automaton = automaton
        self._limit = limit
        self._count = 0
        self._free: list[Recogniser] = []
        self.grow()

    def grow(self) -> None:
        """Load one more."""
        self._free.append(Recogniser(self._lexicon, self._automaton))
        self._count += 1

    def wants_more(self, sessions: int) -> bool:
        """Whether ``sessions`` callers could have to wait for one another and another is allowed."""
        return self._count < min(sessions, self._limit)

    def lease(self) -> Recogniser | None:
        """A free recogniser, or None for now."""
        return self._free.pop() if self._free else None

    def give_back(self, recogniser: Recogniser) -> None:
        """Return a leased one whose utterance is finished."""
        self._free.append(recogniser)

    def discard(self) -> None:
        """Forget a leased one that failed; the pool grows again when it must."""
        self._count -= 1
