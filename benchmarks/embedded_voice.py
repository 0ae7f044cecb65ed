"""What the embedded voice costs and how clear it is: ``python -m benchmarks.embedded_voice [--no-words]``.

Text goes in three characters at a time, as a thinker might write it. CPU is the process's own, one thread. Word
errors are those of pocketsphinx with its free language model, flite's own waveform of each sentence beside ours.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.report import Goal, Table
from duologue.engine.messages import CodecFrames, Pcm, ReplyAudio
from tests.engine.models.embedded.flite_alone import flite_alone
from tests.engine.models.embedded.voice import deltas, new_codec, new_talker
from tests.harness import recogniser
from tests.harness.sound import from_pcm

COST = Goal("p50", 80)
FIRST = Goal("p50", 25)
RATE = 16_000
SENTENCES = """\
The birch canoe slid on the smooth planks. Glue the sheet to the dark blue background.
It is easy to tell the depth of a well. These days a chicken leg is a rare dish.
Rice is often served in round bowls. The juice of lemons makes fine punch.
The box was thrown beside the parked truck. The hogs were fed chopped corn and garbage.
Four hours of steady work faced us. A large size in stockings is hard to sell.
Hello there, how can I help you today? I did not understand that, could you say it again?
The time is half past three in the afternoon. I will remind you to call your mother in ten minutes.
You asked me to stop, so I stopped. Do you want me to go on with the story?
The answer is forty two. One hundred kilometers is about sixty two miles. The last number I said was seven.
Today is Monday, the fifth of January. I can count, spell, tell the time, and tell you a story.
Ten, nine, eight, seven, six, five, four, three, two, one, zero. Twenty five times four is one hundred.
Seventeen plus eight is twenty five. The temperature is twenty one degrees.
Once upon a time there was an old king who lived in a castle on a hill.
The king had three daughters, and each of them wanted a different horse.
Please speak a little louder, because I can hardly hear you.
She went to the university to study mathematics and engineering.
The government announced a significant investment in transportation.
Environmental protection is an international responsibility.
The weather tomorrow will be sunny with a light wind from the north."""
"""Half of the first ten are Harvard sentences (IEEE 297-1969), which this voice says least clearly."""


class Cost:
    """CPU per sentence, in milliseconds a second of sound, and up to the first sound."""

    def __init__(self) -> None:
        self.talker: list[float] = []
        self.codec: list[float] = []
        self.first: list[float] = []

    def say(self, text: str, size: int) -> Pcm:
        """Say ``text``, given in pieces of ``size`` characters, and keep what it cost."""
        talker, codec = new_talker("a"), new_codec("a")
        spent = {"talker": 0.0, "codec": 0.0}
        chunks: list[Pcm] = []
        for delta in deltas(text, size):
            talker.receive(delta)
            while talker.ready or codec.ready:
                stage, name = (codec, "codec") if codec.ready else (talker, "talker")
                begun = time.process_time()
                messages = stage.step()
                spent[name] += time.process_time() - begun
                for message in messages:
                    if isinstance(message, CodecFrames):
                        codec.receive(message)
                    elif isinstance(message, ReplyAudio):
                        chunks.append(message.pcm)
                if len(chunks) == 1 and name == "codec":
                    self.first.append(1000 * sum(spent.values()))
        pcm = np.concatenate(chunks)
        seconds = len(pcm) / RATE
        self.talker.append(1000 * spent["talker"] / seconds)
        self.codec.append(1000 * spent["codec"] / seconds)
        return pcm


def words(text: str) -> list[str]:
    """Words in lower case."""
    return re.sub(r"[^a-z' ]", " ", text.lower()).split()


def errors(wanted: list[str], heard: list[str]) -> int:
    """Levenshtein's distance in words."""
    row = list(range(len(heard) + 1))
    for i, word in enumerate(wanted):
        above, row = row, [i + 1]
        for j, other in enumerate(heard):
            row.append(min(row[j] + 1, above[j + 1] + 1, above[j] + (word != other)))
    return row[-1]


def run(with_words: bool) -> None:
    """Both tables."""
    sentences = re.findall(r"[^.?!]+[.?!]", SENTENCES)
    cost = Cost()
    cost.say("Ready.", 100)
    cost = Cost()
    sounds = [cost.say(sentence.strip(), 3) for sentence in sentences]
    table = Table("CPU of the embedded voice, ms for each second of speech")
    table.add("talker", cost.talker)
    table.add("codec", cost.codec)
    table.add("both", [a + b for a, b in zip(cost.talker, cost.codec, strict=True)], COST)
    table.add("from the text to the first 80 ms of sound (ms in all)", cost.first, FIRST)
    table.print()
    if with_words:
        total = ours = theirs = 0
        with tempfile.TemporaryDirectory() as folder:
            for sentence, sound in zip(sentences, sounds, strict=True):
                wanted = words(sentence)
                alone = flite_alone(sentence.strip(), Path(folder)).pcm
                total += len(wanted)
                ours += errors(wanted, words(recogniser.text(from_pcm(sound), RATE)))
                theirs += errors(wanted, words(recogniser.text(from_pcm(alone), RATE)))
        print(f"Word errors in {total} words: ours {ours / total:.1%}, flite's own waveform {theirs / total:.1%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-words", action="store_true", help="leave the recogniser out")
    run(not parser.parse_args().no_words)
