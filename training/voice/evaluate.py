"""Measure the voice in the package against its source: ``python -m training.voice.evaluate``.

* words that pocketsphinx, which has no part in the voice, hears wrong of 200 sentences held out, said by either voice
  from the same text through the same vocoder;
* in 1000 sentences, by the pointer's own trace: sounds left out or held to their bound, and words much longer or
  shorter than the source's;
* CPU seconds a second of speech, on one core.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from pocketsphinx import Decoder as Recogniser

from duologue.engine.messages import Fence, Pcm
from duologue.engine.models.codec_stage import Chunk
from duologue.engine.models.embedded.codec import VocoderDecoder
from duologue.engine.models.embedded.speakable import Scanner
from duologue.engine.models.embedded.voice import weights
from duologue.engine.models.embedded.voice.codec import TrainedDecoder
from duologue.engine.models.embedded.voice.decoder import CodeDecoder
from duologue.engine.models.embedded.voice.network import Network
from duologue.engine.models.embedded.voice.pointer import MAX_HELD
from duologue.engine.models.embedded.voice.pronouncer import Pronouncer
from duologue.engine.models.embedded.voice.sentences import Sentences, SpokenWord
from duologue.engine.models.embedded.voice.symbols import EOS, ID
from duologue.engine.models.embedded.voice.utterance import Said, Utterance
from duologue.engine.models.embedded.voice_format import FRAME_SAMPLES, FRAME_WIDTH, SAMPLE_RATE
from training.voice import texts
from training.voice.corpus import Speaker
from training.voice.edits import distance

TRACED = 1000
_FRAME_S = FRAME_SAMPLES / SAMPLE_RATE
_SILENCE = np.random.default_rng(0).normal(0, 10, SAMPLE_RATE // 4).astype(np.int16)
"""A quarter of a second of faint noise around what is to be recognised."""
_FENCE = Fence("evaluate", 0, 0, 0)


class Trained:
    """The voice in the package."""

    def __init__(self) -> None:
        folder = weights.FOLDER
        self._network = Network(weights.load(folder, "talker"))
        self._pronouncer = Pronouncer(folder)
        self._decoder = TrainedDecoder(CodeDecoder(weights.load(folder, "codec")), VocoderDecoder())

    def words(self, text: str) -> Iterator[tuple[SpokenWord, Said]]:
        """Each word of ``text`` with its frames."""
        scanner, sentences = Scanner(), Sentences(self._pronouncer)
        sentences.push([*scanner.push(text), *scanner.finish()])
        sentences.finish()
        utterance = Utterance(self._network)
        while sentences.ready:
            word, after = sentences.next()
            yield word, utterance.say(word.symbols, after.symbols if after else (ID[EOS],))
            if after is None:
                utterance = Utterance(self._network)

    def sound(self, said: Sequence[Said]) -> Pcm:
        """The samples of words' frames."""
        codes = np.concatenate([word.codes for word in said])
        return self._decoder.decode([Chunk(codes, 0, self._decoder.begin(_FENCE, ""), last=True)])[0]


@dataclass(slots=True)
class Words:
    """Word errors of some sentences."""

    errors: int = 0
    count: int = 0

    def add(self, heard: str, text: str) -> None:
        """Count a sentence."""
        wanted = _plain(text)
        self.errors += distance(_plain(heard), wanted)
        self.count += len(wanted)

    def __str__(self) -> str:
        return f"{self.errors / self.count:.1%} of {self.count}"


def _plain(text: str) -> list[str]:
    return re.sub(r"[^a-z ]", " ", text.lower().replace("'", "")).split()


def recognised(recogniser: Recogniser, sound: Pcm) -> str:
    """What is heard in ``sound``."""
    recogniser.start_utt()
    recogniser.process_raw(np.concatenate([_SILENCE, sound, _SILENCE]).tobytes(), full_utt=True)
    recogniser.end_utt()
    found = recogniser.hyp()
    return found.hypstr if found else ""


def source_sound(speaker: Speaker, text: str) -> Pcm:
    """The source voice through our vocoder."""
    vocoder = VocoderDecoder()
    frames = speaker.say(text).vectors.reshape(-1, FRAME_WIDTH)
    return vocoder.decode([Chunk(frames, 0, vocoder.begin(_FENCE, ""), last=True)])[0]


def hear(voices: Sequence[str]) -> None:
    """Print the words heard wrong of each of ``voices``: "source", "trained"."""
    speaker, voice = Speaker(), Trained()
    for name in voices:
        recogniser, whole, parts = Recogniser(loglevel="FATAL"), Words(), list[str]()
        for kind, sentences in texts.measured().items():
            words = Words()
            for text in sentences:
                sound = (source_sound(speaker, text) if name == "source"
                         else voice.sound([said for _, said in voice.words(text)]))
                heard = recognised(recogniser, sound)
                for counted in (words, whole):
                    counted.add(heard, text)
            parts.append(f"{kind} {words}")
        print(f"{name}: {whole} words wrong ({', '.join(parts)})", flush=True)


def trace(sentences: Sequence[str]) -> None:
    """Print what the pointer did."""
    voice, speaker = Trained(), Speaker()
    phones = skipped = stuck = frames = words = odd = 0
    source_s = spent = 0.0
    for text in sentences:
        began = time.process_time()
        spoken = list(voice.words(text))
        spent += time.process_time() - began
        wanted = speaker.say(text).words
        starts = [0.0, *(word.pause_end for word in wanted)]
        source_s += starts[-1]
        for i, (word, said) in enumerate(spoken):
            sounds = len(word.symbols) - 1
            phones += sounds
            skipped += len(set(range(sounds)) - set(said.places))
            stuck += max(said.places.count(place) for place in set(said.places)) > MAX_HELD
            frames += len(said.codes)
            if len(spoken) == len(wanted):
                words += 1
                length, other = len(said.codes) * _FRAME_S, wanted[i].pause_end - starts[i]
                odd += length > 2 * other + 2 * _FRAME_S or length < other / 2 - 2 * _FRAME_S
    print(f"{len(sentences)} sentences, {phones} sounds: {skipped / phones:.2%} shorter than a frame and passed, "
          f"{stuck} held to the bound, {odd} of {words} words off by more than twice; "
          f"{frames * _FRAME_S / source_s:.3f} of the source's time; talker RTF {spent / (frames * _FRAME_S):.3f}",
          flush=True)


def cost(sentences: Sequence[str]) -> None:
    """Print what decoding costs, and the first frame."""
    voice = Trained()
    said = [[word for _, word in voice.words(text)] for text in sentences]
    began = time.process_time()
    samples = sum(len(voice.sound(words)) for words in said)
    rate = (time.process_time() - began) / (samples / SAMPLE_RATE)
    firsts = list[float]()
    for text in sentences:
        began = time.process_time()
        _, first = next(voice.words(text))
        voice.sound([Said(first.codes[:1], first.places[:1])])
        firsts.append(time.process_time() - began)
    print(f"decoder and vocoder RTF {rate:.3f}; first word and its first 40 ms after {np.median(firsts) * 1e3:.0f} ms "
          "of CPU", flush=True)


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.voice.evaluate", description=__doc__)
    parser.add_argument("--voices", nargs="*", default=["source", "trained"], help="whom to recognise")
    parser.add_argument("--traced", type=int, default=TRACED, help="sentences to trace")
    arguments = parser.parse_args()
    if arguments.traced:
        trace(texts.held_out(arguments.traced))
    cost(texts.held_out(20))
    hear(arguments.voices)


if __name__ == "__main__":
    main()
