"""Who is measured: the voice in the package and its source, each saying a text through the same vocoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from duologue.engine.messages import Fence, Pcm
from duologue.engine.models.codec_stage import Chunk
from duologue.engine.models.embedded.codec import VocoderDecoder
from duologue.engine.models.embedded.speakable import Scanner
from duologue.engine.models.embedded.voice import weights
from duologue.engine.models.embedded.voice.codec import TrainedDecoder
from duologue.engine.models.embedded.voice.decoder import CodeDecoder
from duologue.engine.models.embedded.voice.network import Network
from duologue.engine.models.embedded.voice.pronouncer import Pronouncer
from duologue.engine.models.embedded.voice.sentences import Sentences, SpokenWord
from duologue.engine.models.embedded.voice.symbols import EOS, ID
from duologue.engine.models.embedded.voice.utterance import Said, Utterance, to_digits
from duologue.engine.models.embedded.voice_format import FRAME_WIDTH
from training.voice.corpus import Speaker

_FENCE = Fence("evaluate", 0, 0, 0)


class Trained:
    """The voice in the package."""

    def __init__(self) -> None:
        folder = weights.FOLDER
        self.network = Network(weights.load(folder, "talker"))
        self._pronouncer = Pronouncer(folder)
        self._codes = CodeDecoder(weights.load(folder, "codec"))
        self._decoder = TrainedDecoder(self._codes, VocoderDecoder())

    def read(self, text: str) -> Iterator[tuple[SpokenWord, SpokenWord | None]]:
        """Each word of ``text`` with its sounds, and the word after it in its sentence."""
        scanner, sentences = Scanner(), Sentences(self._pronouncer)
        sentences.push([*scanner.push(text), *scanner.finish()])
        sentences.finish()
        while sentences.ready:
            yield sentences.next()

    def words(self, text: str) -> Iterator[tuple[SpokenWord, Said]]:
        """Each word of ``text`` with its frames."""
        utterance = Utterance(self.network)
        for word, after in self.read(text):
            yield word, utterance.say(word.symbols, after.symbols if after else (ID[EOS],))
            if after is None:
                utterance = Utterance(self.network)

    def vectors(self, text: str) -> NDArray[np.float32]:
        """Acoustic vectors, (n, VECTOR_WIDTH), of ``text``."""
        state = self._codes.open()
        codes = np.concatenate([said.codes for _, said in self.words(text)])
        return np.concatenate([self._codes.step(state, digits) for digits in to_digits(codes).astype(np.float32)])

    def sound(self, said: Sequence[Said]) -> Pcm:
        """The samples of words' frames, int16 at 16 kHz."""
        codes = np.concatenate([word.codes for word in said])
        return self._decoder.decode([Chunk(codes, 0, self._decoder.begin(_FENCE, ""), last=True)])[0]

    def say(self, text: str) -> Pcm:
        """The samples of ``text``, int16 at 16 kHz."""
        return self.sound([said for _, said in self.words(text)])


class Source:
    """The voice it learnt from: flite's parameters."""

    def __init__(self) -> None:
        self._speaker = Speaker()

    def say(self, text: str) -> Pcm:
        """The samples of ``text``, int16 at 16 kHz."""
        vocoder = VocoderDecoder()
        frames = self._speaker.say(text).vectors.reshape(-1, FRAME_WIDTH)
        return vocoder.decode([Chunk(frames, 0, vocoder.begin(_FENCE, ""), last=True)])[0]


VOICES: Mapping[str, Callable[[], Trained | Source]] = {"source": Source, "trained": Trained}
