"""Measure the voice in the package against its source: ``python -m training.voice.evaluate``.

* words that pocketsphinx, which has no part in the voice, hears wrong of 200 plain sentences and of others, said by
  either voice from the same text through the same vocoder; the ratio of the two with its 90 % interval;
* in 1000 sentences, by the pointer's own trace: sounds left out or held to their bound, and words much longer or
  shorter than the source's;
* CPU seconds a second of speech, on one core.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from pocketsphinx import Decoder as Recogniser

from duologue.engine.messages import Pcm
from duologue.engine.models.embedded.voice.pointer import MAX_HELD
from duologue.engine.models.embedded.voice.utterance import Said
from duologue.engine.models.embedded.voice_format import FRAME_SAMPLES, SAMPLE_RATE
from duologue.engine.runners.numpy.blas import one_thread
from training.voice import texts
from training.voice.bootstrap import ratio_interval
from training.voice.corpus import Speaker
from training.voice.edits import distance
from training.voice.voices import VOICES, Trained

TRACED = 1000
_FRAME_S = FRAME_SAMPLES / SAMPLE_RATE
_SILENCE = np.random.default_rng(0).normal(0, 10, SAMPLE_RATE // 4).astype(np.int16)
"""A quarter of a second of faint noise around what is to be recognised."""

_SAME = {"dr": "doctor", "mr": "mister"}
"""The recogniser's spelling of words that sound the same."""


@dataclass(slots=True)
class Words:
    """Word errors, sentence by sentence."""

    errors: list[int] = field(default_factory=list)
    count: int = 0

    def add(self, heard: str, text: str) -> int:
        """Count a sentence; returns its errors."""
        wanted = _plain(text)
        self.errors.append(distance(_plain(heard), wanted))
        self.count += len(wanted)
        return self.errors[-1]

    def __str__(self) -> str:
        return f"{sum(self.errors) / self.count:.1%} of {self.count}"


def _plain(text: str) -> list[str]:
    words = re.sub(r"[^a-z ]", " ", text.lower().replace("'", "")).split()
    return [_SAME.get(word, word) for word in words]


def surrounded(sound: Pcm) -> bytes:
    """``sound`` with faint noise before and after it, as a recogniser takes it."""
    whole: Pcm = np.concatenate([_SILENCE, sound, _SILENCE])
    return whole.tobytes()


def recognised(recogniser: Recogniser, sound: Pcm) -> str:
    """What is heard in ``sound``."""
    recogniser.start_utt()
    recogniser.process_raw(surrounded(sound), full_utt=True)
    recogniser.end_utt()
    found = recogniser.hyp()
    return found.hypstr if found else ""


def hear(voices: Sequence[str], *, show: bool) -> None:
    """Print the words heard wrong of each of ``voices``, and of two of them the ratio."""
    results = {name: _heard(name, show=show) for name in voices}
    for name, words in results.items():
        print(f"{name}: " + "; ".join(f"{kind} {counted} words wrong" for kind, counted in words.items()), flush=True)
    if {"source", "trained"} <= results.keys():
        for kind, source in results["source"].items():
            trained = results["trained"][kind]
            low, high = ratio_interval(trained.errors, source.errors)
            print(f"trained / source, {kind}: {sum(trained.errors)} / {sum(source.errors)} errors = "
                  f"{sum(trained.errors) / max(sum(source.errors), 1):.2f} (90 % between {low:.2f} and {high:.2f})")


def _heard(name: str, *, show: bool) -> Mapping[str, Words]:
    voice, recogniser, result = VOICES[name](), Recogniser(loglevel="FATAL"), dict[str, Words]()
    for kind, sentences in texts.measured().items():
        words = result[kind] = Words()
        for text in sentences:
            heard = recognised(recogniser, voice.say(text))
            if words.add(heard, text) and show and kind == "unseen sentences":
                print(f"  {name}: {text} -> {heard}")
    return result


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
    parser.add_argument("--voices", nargs="*", default=list(VOICES), choices=VOICES, help="whom to recognise")
    parser.add_argument("--traced", type=int, default=TRACED, help="sentences to trace")
    parser.add_argument("--show", action="store_true", help="print what was heard of plain sentences heard wrong")
    arguments = parser.parse_args()
    one_thread()
    if arguments.traced:
        trace(texts.held_out(arguments.traced))
    cost(texts.held_out(20))
    hear(arguments.voices, show=arguments.show)


if __name__ == "__main__":
    main()
