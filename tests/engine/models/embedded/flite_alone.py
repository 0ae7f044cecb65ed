"""flite on its own, as the tests' independent reference: a program, because flite keeps state in a process.

``python flite_alone.py TEXT FILE`` writes FILE (npz): ``pcm``, flite's own waveform, int16 at 16 kHz; ``ends``,
the end of each word in seconds; ``starts``, their starts.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from ctypes import POINTER, Structure, c_char_p, c_float, c_int, c_short, c_void_p
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """What flite itself makes of a text; word times in seconds."""

    pcm: NDArray[np.int16]
    starts: list[float]
    ends: list[float]


def flite_alone(text: str, directory: Path) -> Reference:
    """Run flite over ``text`` in a process of its own."""
    file = directory / "flite.npz"
    subprocess.run([sys.executable, __file__, text, str(file)], check=True)
    data = np.load(file)
    return Reference(data["pcm"], data["starts"].tolist(), data["ends"].tolist())


class _Wave(Structure):
    _fields_ = [("type", c_char_p), ("sample_rate", c_int), ("num_samples", c_int), ("num_channels", c_int),
                ("samples", POINTER(c_short))]


def _main(text: str, file: str) -> None:
    names = ("libflite", "libflite_usenglish", "libflite_cmulex", "libflite_cmu_us_rms")
    flite, *_, rms = (ctypes.CDLL(f"{name}.so.1", mode=ctypes.RTLD_GLOBAL) for name in names)
    rms.register_cmu_us_rms.restype = c_void_p
    for name, result, arguments in (
            ("flite_synth_text", c_void_p, [c_char_p, c_void_p]), ("utt_wave", POINTER(_Wave), [c_void_p]),
            ("utt_relation", c_void_p, [c_void_p, c_char_p]), ("relation_head", c_void_p, [c_void_p]),
            ("item_next", c_void_p, [c_void_p]), ("ffeature_float", c_float, [c_void_p, c_char_p])):
        function = getattr(flite, name)
        function.restype, function.argtypes = result, arguments
    flite.flite_init()
    utterance = flite.flite_synth_text(text.encode("ascii"), rms.register_cmu_us_rms(None))
    wave = flite.utt_wave(utterance).contents
    starts, ends = [], []
    word = flite.relation_head(flite.utt_relation(utterance, b"Word"))
    while word:
        starts.append(flite.ffeature_float(word, b"R:SylStructure.daughter1.daughter1.R:Segment.p.end"))
        ends.append(flite.ffeature_float(word, b"R:SylStructure.daughtern.daughtern.R:Segment.end"))
        word = flite.item_next(word)
    pcm = np.ctypeslib.as_array(wave.samples, (wave.num_samples,))
    np.savez(file, pcm=pcm, starts=starts, ends=ends)


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2])
