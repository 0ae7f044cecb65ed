"""Which part of the voice loses the words: ``python -m training.voice.parts OUT [--sentences N]``.

The same plain sentences are recognised as the source says them, through the codec alone (encoder of ``OUT/codec.pt``),
from the talker with its pointer moved as the source's times say, and from the talker as it is. Each has one part more
that can err than the one before it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from pocketsphinx import Decoder as Recogniser

from duologue.engine.messages import Pcm
from duologue.engine.models.embedded.voice.network import Network, Position
from duologue.engine.models.embedded.voice.symbols import ID, WORD
from duologue.engine.models.embedded.voice.utterance import Said, to_codes
from duologue.engine.runners.numpy.blas import one_thread
from training.course import weights
from training.voice import sequence, texts
from training.voice.codec import Codec, features
from training.voice.corpus import Speaker, Utterance
from training.voice.evaluate import Words, recognised
from training.voice.sequence import NOTHING, Sequence
from training.voice.voices import Source, Trained

SENTENCES = 60


def timed(network: Network, rows: Sequence) -> NDArray[np.int64]:
    """Digits (frames, DIGITS) that the talker chooses where the pointer moves as ``rows`` say."""
    stream, unread, found = network.open(), list[int](), list[list[int]]()
    state = np.empty(0, np.float32)
    for symbol, phone, following, held in zip(
            rows.symbol.tolist(), rows.phone.tolist(), rows.following.tolist(), rows.held.tolist(), strict=True):
        position = Position(phone, following, held)
        if symbol == NOTHING:
            found.append(network.digits(state, position))
            state = network.read_frame(stream, found[-1], position)
        else:
            unread.append(symbol)
            if symbol == ID[WORD]:
                state = network.read_text(stream, unread, position)
                unread = []
    return np.array(found)


class Parts:
    """Says texts with more and more of the trained voice; ``say`` is by name."""

    def __init__(self, folder: Path) -> None:
        self._speaker, self._trained = Speaker(), Trained()
        self._codec = Codec()
        self._codec.load_state_dict(weights(folder / "codec.pt", "codec"))
        self.say: dict[str, Callable[[str], Pcm]] = {
            "source": Source().say, "codec": self._through_codec, "talker at the source's times": self._timed,
            "talker": self._trained.say}

    def _through_codec(self, text: str) -> Pcm:
        return self._sound(self._digits(self._speaker.say(text)))

    def _timed(self, text: str) -> Pcm:
        said = self._speaker.say(text)
        return self._sound(timed(self._trained.network, sequence.build(said, len(self._digits(said)))))

    @torch.inference_mode()
    def _digits(self, said: Utterance) -> NDArray[np.int64]:
        digits: NDArray[np.int64] = self._codec.digits(torch.from_numpy(features(said.vectors))[None])[0].round().long(
            ).numpy()
        return digits

    def _sound(self, digits: NDArray[np.int64]) -> Pcm:
        return self._trained.sound([Said(to_codes(digits), ())])


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.voice.parts", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sentences", type=int, default=SENTENCES)
    arguments = parser.parse_args()
    one_thread()
    torch.set_num_threads(1)
    parts, recogniser = Parts(arguments.folder), Recogniser(loglevel="FATAL")
    for name, say in parts.say.items():
        words = Words()
        for text in texts.measured()["unseen sentences"][:arguments.sentences]:
            words.add(recognised(recogniser, say(text)), text)
        print(f"{name}: {sum(words.errors)} words wrong, {words}", flush=True)


if __name__ == "__main__":
    main()
