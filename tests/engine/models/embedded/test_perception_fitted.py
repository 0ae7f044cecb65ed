"""One decoder with the fitted language model: a sentence's words, in any phrasing, through the real ear."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from duologue.engine.config import ConfigError
from duologue.engine.messages import Pcm, Unit
from duologue.engine.models.embedded.ear import Ear
from duologue.engine.models.embedded.lexicon import FittedLexicon
from duologue.engine.models.embedded.overlap import Verdict
from duologue.engine.models.embedded.readers import Plain
from duologue.engine.models.embedded.recogniser import ChannelMeter, Pool, Transcriber
from duologue.engine.models.embedded.utterance import Utterance
from tests.engine.models.embedded.caller import SAMPLES, UNIT_MS, speech

VOICES = ("slt", "awb", "kal16")
SENTENCES = (
    "what is seven plus five", "count to twenty", "what was the last number you said", "tell me a story",
    "what time is it", "remind me to call mother in ten seconds", "how many feet are in five meters",
    # In no grammar of the dialogue.
    "could you work out seven times eight for me", "the train leaves at noon", "how do i get to the station",
    "is it possible to be your friend", "do you like classical music",
)


class _Patient:
    """Ends an utterance after half a second."""

    def finished(self, utterance: Utterance) -> bool:
        return utterance.silent_ms >= 480

    def judge(self, utterance: Utterance, *, adapted: bool) -> Verdict:
        return Verdict.UNDECIDED


@pytest.fixture(scope="module")
def lexicon() -> FittedLexicon:
    return FittedLexicon()


@pytest.fixture(scope="module")
def pool(lexicon: FittedLexicon) -> Pool:
    return Pool(lambda: Transcriber(lexicon), ChannelMeter(lexicon.dictionary, "one"), warm=1, limit=2)


def sound(voice: str, sentence: str) -> list[Pcm]:
    """A sentence in units, a little noise and silence around it."""
    pcm = np.concatenate([np.zeros(4 * SAMPLES, np.int16), speech(voice, sentence)])
    whole = np.concatenate([pcm, np.zeros(10 * SAMPLES - len(pcm) % SAMPLES, np.int16)]).astype(np.float64)
    noisy = (whole + np.random.default_rng(3).normal(0, 8, len(whole))).clip(-32768, 32767).astype(np.int16)
    return [noisy[at:at + SAMPLES] for at in range(0, len(noisy), SAMPLES)]


def heard(pool: Pool, voice: str, sentences: Sequence[str]) -> list[str]:
    """What one caller is heard to say."""
    ear = Ear(pool, Plain(), _Patient(), UNIT_MS)
    ended: list[str] = []
    for index, pcm in enumerate(pcm for sentence in sentences for pcm in sound(voice, sentence)):
        loud = float(np.sqrt(np.mean(pcm.astype(np.float64)**2))) > 150
        utterance = ear.hear(Unit(index, pcm, 0.9 if loud else 0.05), over_reply=False)
        if utterance is not None and utterance.ended:
            ended.append(utterance.understanding.sentence.words)
    return ended


@pytest.mark.component
def test_three_sentences_in_four_come_out_as_they_were_said(pool: Pool) -> None:
    said = [sentence for _ in VOICES for sentence in SENTENCES]
    came = [sentence for voice in VOICES for sentence in heard(pool, voice, SENTENCES)]
    right = sum(sentence == words for sentence, words in zip(said, came, strict=True))
    assert right >= 0.75 * len(said), [pair for pair in zip(said, came, strict=True) if pair[0] != pair[1]]


@pytest.mark.component
def test_words_come_while_they_are_said(lexicon: FittedLexicon, pool: Pool) -> None:
    units = sound("kal16", "what was the last number you said")
    transcriber = Transcriber(lexicon)
    transcriber.start(pool.meter.measure(np.concatenate(units)))
    seen = []
    for pcm in units:
        transcriber.feed(pcm)
        seen.append(transcriber.partial().texts)
    whole = transcriber.finish()
    assert whole.texts == ("what", "was", "the", "last", "number", "you", "said")
    assert ("what", "was", "the") in [words[:3] for words in seen[:len(seen) * 3 // 4]]
    assert [word.start for word in whole.words] == sorted(word.start for word in whole.words)
    assert whole.words[-1].end <= whole.frames <= len(units) * SAMPLES // 160


@pytest.mark.component
def test_a_pool_lends_what_it_has_and_no_more(pool: Pool) -> None:
    first = pool.lease()
    assert isinstance(first, Transcriber)
    assert pool.lease() is None
    assert pool.wants_more(2)
    assert not pool.wants_more(1)
    pool.give_back(first)
    assert pool.lease() is first
    pool.give_back(first)


def test_every_word_of_the_dictionary_has_phones(lexicon: FittedLexicon) -> None:
    assert lexicon.phones(["seven", "mm-hm"]) == ("S", "EH", "V", "AH", "N", "M", "HH", "M")
    assert lexicon.phones_of_text("Stop, please!") == lexicon.phones(["stop", "please"])


def test_a_model_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"needs .*hearing\.lm\.bin: install the package whole"):
        FittedLexicon(tmp_path)
