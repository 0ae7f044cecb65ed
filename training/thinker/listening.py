"""One caller who says one sentence after another, heard as in a call: by the real ear, which gets to know the voice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from duologue.engine.messages import Unit
from duologue.engine.models.embedded.automaton import compile_grammar
from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.ear import Ear
from duologue.engine.models.embedded.lexicon import FREE_WORDS, FittedLexicon, Lexicon
from duologue.engine.models.embedded.overlap import Verdict
from duologue.engine.models.embedded.readers import Agreed, Plain, Reader
from duologue.engine.models.embedded.recogniser import AnyRecogniser, ChannelMeter, Pool, Recogniser, Transcriber
from duologue.engine.models.embedded.utterance import Utterance
from training.thinker.speech import UNIT_MS, spoken, units

_FREQUENT = 10_000
"""The default of the stage's option."""
_SILENCE_MS = 960
"""Silence that ends a sentence, whatever was heard."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of recogniser: how to load one, what measures a voice for it, and what reads it."""

    load: Callable[[], AnyRecogniser]
    meter: ChannelMeter
    reader: Reader

    def pool(self) -> Pool:
        """One of them."""
        return Pool(self.load, self.meter, 1, 1)


class Caller:
    """Speaks with flite's ``voice`` to a stage whose recognisers are ``pool``, read by ``reader``."""

    def __init__(self, voice: str, pool: Pool, reader: Reader) -> None:
        self._voice = voice
        self._ear = Ear(pool, reader, _Patient(), UNIT_MS)

    def say(self, text: str, seed: int = 0) -> tuple[str, ...]:
        """What is heard of ``text``; ``seed`` is of the noise. Raises ``CalledProcessError`` for an unknown voice."""
        return self.play(list(units(spoken(self._voice, text), seed)))

    def play(self, sound: list[Unit]) -> tuple[str, ...]:
        """What is heard of a sentence that was recorded."""
        heard: list[str] = []
        for unit in sound:
            utterance = self._ear.hear(unit, over_reply=False)
            if utterance is not None and utterance.ended:
                heard += utterance.understanding.words
        return tuple(heard)


class _Patient:
    """Waits for a silence as long as that after every sentence."""

    def finished(self, utterance: Utterance) -> bool:
        return utterance.silent_ms >= _SILENCE_MS

    def judge(self, utterance: Utterance, *, adapted: bool) -> Verdict:
        return Verdict.UNDECIDED


def agreeing() -> Kind:
    """Two decoders that have to agree."""
    lexicon, automaton = Lexicon(grammar().words, _FREQUENT), compile_grammar(grammar(), FREE_WORDS)
    return Kind(lambda: Recogniser(lexicon, automaton), ChannelMeter(lexicon.grammar_dictionary, FREE_WORDS[0]),
                Agreed(lexicon))


def fitted(folder: Path | None = None) -> Kind:
    """One decoder with the fitted language model: the one in ``folder``, or the shipped one."""
    lexicon = FittedLexicon(folder) if folder else FittedLexicon()
    return Kind(lambda: Transcriber(lexicon), ChannelMeter(lexicon.dictionary, "one"), Plain())
