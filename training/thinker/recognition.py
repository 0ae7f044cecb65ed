"""How well callers are heard: ``python -m training.thinker.recognition [--model FOLDER]``.

The two recognisers side by side: two decoders that have to agree, and one with the fitted language model. For each, the
words and the sentences heard wrong by kind, CPU seconds a second of speech, and what one more of it costs to load.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from random import Random

import yaml

from duologue.engine.messages import INPUT_RATE
from duologue.engine.models.embedded.dialogue.intents import INTENTS
from duologue.engine.models.embedded.readers import Reader
from duologue.engine.models.embedded.recogniser import AnyRecogniser, Pool
from training.thinker import open_places
from training.thinker.listening import Caller, Kind, agreeing, fitted
from training.thinker.phrasings import load, split
from training.thinker.sampling import Callers
from training.thinker.speech import speakable, spoken, units
from training.voice.edits import distance

VOICES = ("kal16", "slt", "awb", "rms")
DRAWN = 60
_SEED = 41


@dataclass(slots=True)
class Errors:
    """Of some sentences."""

    wrong: int = 0
    words: int = 0
    wrong_sentences: int = 0
    sentences: int = 0

    def add(self, said: Sequence[str], heard: Sequence[str]) -> None:
        """Count a sentence."""
        edits = distance(heard, said)
        self.wrong += edits
        self.words += len(said)
        self.wrong_sentences += edits > 0
        self.sentences += 1

    def __str__(self) -> str:
        return (f"{self.wrong / self.words:6.1%} of {self.words:4} words, "
                f"{self.wrong_sentences / self.sentences:4.0%} of {self.sentences:3} sentences")


@dataclass(slots=True)
class Figures:
    """Of one recogniser."""

    errors: dict[str, Errors] = field(default_factory=dict)
    voices: dict[str, Errors] = field(default_factory=dict)
    cpu_s: float = 0.0


def sentences() -> dict[str, list[tuple[str, ...]]]:
    """What is said, by kind. Held out are phrasings that no language model was made from."""
    found = load()
    held_out = {intent: kept for intent, templates in found.asked.items() if (kept := split(templates)[1])}
    listed = yaml.safe_load((files(__package__) / "recognition.yaml").read_text(encoding="utf-8"))
    return {"the dialogue's grammar": _drawn(Callers(open_places.fill, INTENTS)),
            "phrasings held out": _drawn(Callers(open_places.fill, held_out, found.rules)),
            **{kind: [tuple(text.split()) for text in texts] for kind, texts in listed.items()}}


def _drawn(callers: Callers) -> list[tuple[str, ...]]:
    random, drawn = Random(_SEED), dict[tuple[str, ...], None]()
    while len(drawn) < DRAWN:
        words = callers.sample(random).words
        if speakable(words):
            drawn[words] = None
    return list(drawn)


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.thinker.recognition", description=__doc__)
    parser.add_argument("--model", type=Path, help="folder of the language model, if not the shipped one")
    parser.add_argument("--voices", nargs="+", default=VOICES)
    parser.add_argument("--sentences", type=int, default=DRAWN, help="of each kind, at most")
    arguments = parser.parse_args()
    kinds = {kind: said[:arguments.sentences] for kind, said in sentences().items()}
    recognisers = {"two decoders": agreeing(), "fitted model": fitted(arguments.model)}
    pools = {name: kind.pool() for name, kind in recognisers.items()}
    # What is loaded stays, so that nothing is loaded into memory that another gave back.
    loaded = [_load(name, kind) for name, kind in recognisers.items()]
    for name, kind in recognisers.items():
        print(name)
        _hear(pools[name], kind.reader, arguments.voices, kinds)
    del loaded


def _load(name: str, kind: Kind) -> AnyRecogniser:
    before, began = _resident_mb(), time.process_time()
    recogniser = kind.load()
    print(f"{name}: one more takes {time.process_time() - began:.2f} CPU s and {_resident_mb() - before:.0f} MB")
    return recogniser


def _hear(pool: Pool, reader: Reader, voices: Sequence[str], kinds: dict[str, list[tuple[str, ...]]]) -> None:
    figures, speech_s = Figures(), 0.0
    for voice in voices:
        caller = Caller(voice, pool, reader)
        for kind, texts in kinds.items():
            for i, words in enumerate(texts):
                pcm = spoken(voice, " ".join(words))
                sound = list(units(pcm, i))
                began = time.process_time()
                heard = caller.play(sound)
                figures.cpu_s += time.process_time() - began
                speech_s += len(pcm) / INPUT_RATE
                for counts in (figures.errors.setdefault(kind, Errors()), figures.voices.setdefault(voice, Errors())):
                    counts.add(words, heard)
    for label, errors in (figures.errors | figures.voices).items():
        print(f"  {label:24}{errors}")
    print(f"  {figures.cpu_s / speech_s:.3f} CPU seconds a second of speech, {speech_s:.0f} s of it", flush=True)


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


if __name__ == "__main__":
    main()
