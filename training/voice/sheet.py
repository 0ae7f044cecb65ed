"""The listening sheet: ``python -m training.voice.sheet [FOLDER]`` writes what docs/voice.md shows.

For each sentence two wav files, its source's and the trained voice's, and one picture of their spectrograms: the source
above the voice, the sentences side by side.
"""

from __future__ import annotations

import argparse
import struct
import wave
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from duologue.engine.messages import Pcm
from duologue.engine.models.embedded.voice_format import SAMPLE_RATE
from duologue.engine.runners.numpy.blas import one_thread
from training.voice.voices import VOICES

FOLDER = Path(__file__).parents[2] / "docs" / "voice"
SENTENCES = {
    "question": "Where did you buy it?",
    "number": "Forty two dollars.",
    "long": "A beautiful photograph.",
}
MOST_BYTES = 60_000
"""Of one wav file: they are kept in the repository."""
PICTURE = "spectrograms.png"
_WINDOW, _HOP = 400, 80
"""25 ms and 5 ms."""
_RANGE_DB = 60.0
_LEVELS = 16
_GAP = 8
"""Pixels between two spectrograms."""


def spectrogram(sound: Pcm) -> NDArray[np.uint8]:
    """Its levels, 0 (loudest) to 15 (60 dB less), shape (128, frames); the lowest frequency is the last row."""
    frames = np.lib.stride_tricks.sliding_window_view(sound.astype(np.float64), _WINDOW)[::_HOP]
    power = np.abs(np.fft.rfft(frames * np.hanning(_WINDOW), 512)[:, :256]) ** 2
    level = 10 * np.log10(power.reshape(len(frames), 128, 2).mean(axis=2) + 1)
    shade = np.clip((level.max() - level) / _RANGE_DB, 0, 1) * (_LEVELS - 1)
    picture: NDArray[np.uint8] = np.rint(shade).astype(np.uint8).T[::-1]
    return picture


def beside(pictures: Sequence[NDArray[np.uint8]], axis: int) -> NDArray[np.uint8]:
    """Pictures side by side (axis 1) or above each other (0), white where one is smaller."""
    size = max(picture.shape[1 - axis] for picture in pictures)
    parts = list[NDArray[np.uint8]]()
    for picture in pictures:
        gap = [(0, 0), (0, 0)]
        gap[axis] = (0, _GAP if len(parts) < len(pictures) - 1 else 0)
        gap[1 - axis] = (0, size - picture.shape[1 - axis])
        parts.append(np.pad(picture, gap, constant_values=_LEVELS - 1))
    return np.concatenate(parts, axis)


def png(picture: NDArray[np.uint8]) -> bytes:
    """A grey picture, levels 0 to 15, as a PNG of 4 bits a pixel (W3C PNG, second edition, sections 5 and 11.2)."""
    height, width = picture.shape
    even = np.pad(picture, ((0, 0), (0, width % 2)))
    rows = even[:, ::2] << 4 | even[:, 1::2]
    lines = np.pad(rows, ((0, 0), (1, 0)))  # each begins with its filter: none

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 4, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9))
            + chunk(b"IEND", b""))


def write(folder: Path) -> None:
    """Write the files; raises ``ValueError`` for a sentence that takes too long to say."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = list[NDArray[np.uint8]]()
    for name, make in VOICES.items():
        voice, shown = make(), list[NDArray[np.uint8]]()
        for label, text in SENTENCES.items():
            sound = voice.say(text)
            if 2 * len(sound) + 44 > MOST_BYTES:
                raise ValueError(f"{text!r} takes {len(sound) / SAMPLE_RATE:.2f} s to say: choose a shorter sentence")
            with wave.open(str(folder / f"{label}-{name}.wav"), "wb") as file:
                file.setparams((1, 2, SAMPLE_RATE, 0, "NONE", ""))
                file.writeframes(sound.tobytes())
            shown.append(spectrogram(sound))
        rows.append(beside(shown, 1))
    (folder / PICTURE).write_bytes(png(beside(rows, 0)))


def main() -> None:
    """Write them where the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.voice.sheet", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    one_thread()
    write(parser.parse_args().folder)


if __name__ == "__main__":
    main()
