"""One caller who says one sentence after another, heard as in a call: by the real ear, which gets to know the voice."""

from __future__ import annotations

from duologue.engine.messages import Unit
from duologue.engine.models.embedded.ear import Ear
from duologue.engine.models.embedded.lexicon import FittedLexicon
from duologue.engine.models.embedded.overlap import Verdict
from duologue.engine.models.embedded.readers import Plain, Reader
from duologue.engine.models.embedded.recogniser import ChannelMeter, Pool, Transcriber
from duologue.engine.models.embedded.utterance import Utterance
from training.thinker.speech import UNIT_MS, spoken, units

_SILENCE_MS = 960
"""Silence that ends a sentence, whatever was heard."""


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


def transcribers(lexicon: FittedLexicon) -> tuple[Pool, Reader]:
    """The recogniser of the trained thinker, one of it, and its reader."""
    return Pool(lambda: Transcriber(lexicon), ChannelMeter(lexicon.dictionary, "one"), 1, 1), Plain()
