"""The corpus: sentences spoken by flite's rms voice, as acoustic vectors and the phones they speak.

``python -m training.voice.corpus OUT [--utterances N]`` writes ``OUT/corpus.npz``. No waveform is made: the codec
learns the voice's own parameters. flite tells where each phone ends, so nothing has to be aligned afterwards.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence
from ctypes import c_char_p, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duologue.engine.models.embedded.flite import FliteError, FliteVoice
from duologue.engine.models.embedded.speakable import Scanner
from duologue.engine.models.embedded.voice import symbols
from duologue.engine.models.embedded.voice_format import FRAME_VECTORS, VECTOR_WIDTH
from training.voice import texts

UTTERANCES = 23_000
"""About 19 hours."""
SEED = 11
_LEAD_S = 0.04
"""Silence left before the first sound."""
_VECTOR_S = 0.005
_HIGHEST_HZ = 400.0
"""A pitch above this, or none that is a number, is a slip of flite's model: one sentence in ten thousand has one."""


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """A word as flite says it: phones, where each ends in seconds, and the end of the pause after it."""

    phones: tuple[str, ...]
    ends: tuple[float, ...]
    pause_end: float
    mark: str
    """The punctuation that follows: ``,``, ``.``, ``?``, ``!`` or nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Utterance:
    """Acoustic vectors, float32 (n, VECTOR_WIDTH), n a multiple of FRAME_VECTORS; times in ``words`` are from 0."""

    vectors: NDArray[np.float32]
    words: tuple[SpokenWord, ...]


class Speaker(FliteVoice):
    """flite's rms with the phones it said."""

    def __init__(self) -> None:
        """Load the libraries; raises ``ConfigError`` if they are missing."""
        super().__init__()
        self._flite.item_feat_string.restype = c_char_p
        self._flite.item_feat_string.argtypes = (c_void_p, c_char_p)

    def say(self, text: str) -> Utterance:
        """Speak one sentence; raises ``FliteError`` for one that has no sound."""
        scanner = Scanner()
        words = [*scanner.push(text), *scanner.finish()]
        tokens = [token for word in words for token in word.tokens]
        if not tokens:
            raise FliteError("there is nothing to say")
        flite: Any = self._flite
        with self._lock:
            flite.feat_set_float(self._features, b"duration_stretch", 1.0)
            utterance = flite.new_utterance()
            relation = flite.utt_relation_create(utterance, b"Token")
            marks = {self._append(relation, token): token.punctuation for token in tokens}
            utterance = flite.flite_do_synth(utterance, self._voice, self._synthesis)
            if not utterance:
                raise FliteError("flite could not speak the sentence")
            try:
                vectors = self._vectors(utterance)
                spoken = list(self._spoken(utterance, marks))
            finally:
                flite.delete_utterance(utterance)
        return _trimmed(vectors, spoken)

    def _spoken(self, utterance: Any, marks: dict[int, str]) -> Iterator[tuple[str, float, int, str]]:
        """Each segment: its phone ("" for a pause), its end, its word's item, and the mark after that."""
        flite: Any = self._flite
        segment = flite.relation_head(flite.utt_relation(utterance, b"Segment"))
        while segment:
            name, end = flite.item_feat_string(segment, b"name").decode(), flite.item_feat_float(segment, b"end")
            in_syllable = flite.item_as(segment, b"SylStructure")
            syllable = flite.item_parent(in_syllable) if in_syllable else None
            word = flite.item_parent(syllable) if syllable else None
            if word:
                stress = flite.item_feat_string(syllable, b"stress").decode()
                in_token = flite.item_as(word, b"Token")
                last = not flite.item_next(in_token)
                yield symbols.named(name, stress), end, word, marks[flite.item_parent(in_token)] if last else ""
            else:
                yield "", end, 0, ""
            segment = flite.item_next(segment)


def _trimmed(vectors: NDArray[np.float32], segments: Sequence[tuple[str, float, int, str]]) -> Utterance:
    start = segments[0][1] if not segments[0][0] else 0.0
    first = max(0, round((start - _LEAD_S) / _VECTOR_S))
    offset = first * _VECTOR_S
    words: list[SpokenWord] = []
    for word, group in itertools.groupby(segments, key=lambda segment: segment[2]):
        parts = list(group)
        ends = tuple(end - offset for _, end, _, _ in parts)
        if word:
            words.append(SpokenWord(tuple(phone for phone, *_ in parts), ends, ends[-1], parts[0][3]))
        elif words:
            last = words.pop()
            words.append(SpokenWord(last.phones, last.ends, ends[-1], last.mark))
    # flite's vector 0 stands before the first sample.
    kept = vectors[1 + first:]
    return Utterance(kept[:len(kept) // FRAME_VECTORS * FRAME_VECTORS], tuple(words))


def write(folder: Path, utterances: int, seed: int = SEED) -> None:
    """Speak ``utterances`` sentences into ``folder/corpus.npz``."""
    speaker, spoken = Speaker(), list[Utterance]()
    for text in texts.sentences(seed):
        try:
            said = speaker.say(text)
        except FliteError:
            continue
        if not (said.vectors[:, 0] < _HIGHEST_HZ).all():
            continue
        spoken.append(said)
        if len(spoken) % 500 == 0:
            print(f"{len(spoken)} utterances", flush=True)
        if len(spoken) == utterances:
            break
    folder.mkdir(parents=True, exist_ok=True)
    words = [word for said in spoken for word in said.words]
    np.savez(folder / "corpus.npz",
             vectors=np.concatenate([said.vectors for said in spoken]).astype(np.float16),
             lengths=np.array([len(said.vectors) for said in spoken]),
             words=np.array([len(said.words) for said in spoken]),
             word_phones=np.array([len(word.phones) for word in words]),
             phones=np.array([symbols.ID[phone] for word in words for phone in word.phones], np.int16),
             ends=np.array([end for word in words for end in word.ends], np.float32),
             pause_ends=np.array([word.pause_end for word in words], np.float32),
             marks=np.array([symbols.ID[symbols.BOUNDARY + word.mark] for word in words], np.int16))


def read(folder: Path) -> list[Utterance]:
    """Read what ``write`` wrote."""
    with np.load(folder / "corpus.npz") as file:
        data = {name: file[name] for name in file.files}
    vectors = np.split(data["vectors"].astype(np.float32).reshape(-1, VECTOR_WIDTH), np.cumsum(data["lengths"])[:-1])
    sounds = np.split(data["phones"], np.cumsum(data["word_phones"])[:-1])
    ends = np.split(data["ends"], np.cumsum(data["word_phones"])[:-1])
    words = [SpokenWord(tuple(symbols.SYMBOLS[i] for i in sound), tuple(map(float, end)), float(pause),
                        symbols.SYMBOLS[mark].removeprefix(symbols.BOUNDARY))
             for sound, end, pause, mark in zip(sounds, ends, data["pause_ends"], data["marks"], strict=True)]
    firsts = np.cumsum([0, *data["words"]])
    return [Utterance(vector, tuple(words[first:behind]))
            for vector, first, behind in zip(vectors, firsts, firsts[1:], strict=False)]


def main() -> None:
    """Write a corpus as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.voice.corpus", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--utterances", type=int, default=UTTERANCES)
    arguments = parser.parse_args()
    write(arguments.folder, arguments.utterances)


if __name__ == "__main__":
    main()
