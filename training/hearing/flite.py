"""flite's voices through ctypes: a sentence's samples, and when each of its words and phones ends.

Struct layouts and signatures: the headers of flite 2.2 (cst_voice.h, cst_utterance.h, cst_wave.h).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from ctypes import POINTER, Structure, c_char_p, c_float, c_int, c_short, c_void_p
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from duologue.engine.messages import INPUT_RATE, Pcm

VOICES = ("kal16", "slt", "awb", "rms")
_PITCH_HZ = 95.0
"""Mean pitch of kal16, whose pitch is set; that of the others is shifted (cmu_us_kal16.c)."""


class _Voice(Structure):
    _fields_ = [("name", c_char_p), ("features", c_void_p), ("ffunctions", c_void_p), ("utt_init", c_void_p)]


class _Utterance(Structure):
    _fields_ = [("features", c_void_p), ("ffunctions", c_void_p), ("relations", c_void_p), ("ctx", c_void_p)]


class _Wave(Structure):
    _fields_ = [("type", c_char_p), ("sample_rate", c_int), ("num_samples", c_int), ("num_channels", c_int),
                ("samples", POINTER(c_short))]


_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "flite_init": (c_int, ()),
    "feat_set_float": (None, (c_void_p, c_char_p, c_float)),
    "feat_remove": (c_int, (c_void_p, c_char_p)),
    "new_utterance": (POINTER(_Utterance), ()),
    "delete_utterance": (None, (POINTER(_Utterance),)),
    "flite_do_synth": (POINTER(_Utterance), (POINTER(_Utterance), POINTER(_Voice), c_void_p)),
    "utt_wave": (POINTER(_Wave), (POINTER(_Utterance),)),
    "utt_relation_create": (c_void_p, (POINTER(_Utterance), c_char_p)),
    "utt_relation": (c_void_p, (POINTER(_Utterance), c_char_p)),
    "relation_append": (c_void_p, (c_void_p, c_void_p)),
    "relation_head": (c_void_p, (c_void_p,)),
    "item_set_string": (None, (c_void_p, c_char_p, c_char_p)),
    "item_feat_float": (c_float, (c_void_p, c_char_p)),
    "item_feat_string": (c_char_p, (c_void_p, c_char_p)),
    "item_next": (c_void_p, (c_void_p,)),
    "item_parent": (c_void_p, (c_void_p,)),
    "item_as": (c_void_p, (c_void_p, c_char_p)),
}


@dataclass(frozen=True, slots=True, eq=False)
class Speech:
    """A sentence's samples at 16 kHz; ``words`` are its words' ends, ``phones`` names and ends, all ends in samples.

    A word that flite does not say ends where the one before it does. Pauses are phones named ``pau``.
    """

    pcm: Pcm
    words: tuple[int, ...]
    phones: tuple[tuple[str, int], ...]


class FliteError(RuntimeError):
    """flite could not speak what it was given."""


class Speaker:
    """One of ``VOICES``. Raises OSError where flite's libraries are missing."""

    def __init__(self, voice: str) -> None:
        self._flite, self._synthesis = _library()
        register = getattr(ctypes.CDLL(f"libflite_cmu_us_{voice}.so.1", mode=ctypes.RTLD_GLOBAL),
                           f"register_cmu_us_{voice}")
        register.restype, register.argtypes = POINTER(_Voice), (c_char_p,)
        self._voice = register(None)
        self._shifted = voice != "kal16"

    def say(self, words: Sequence[str], stretch: float = 1.0, pitch: float = 1.0) -> Speech:
        """Say ``words`` so many times slower and higher; raises ``FliteError`` where flite cannot.

        As they are made ``kal16`` has a ``stretch`` of 1.1, the others have one of 1.
        """
        flite, features = self._flite, self._voice.contents.features
        # The run time's voice, in the same process, has flite stop before it makes samples; it can do without.
        flite.feat_remove(features, b"streaming_info")
        flite.feat_set_float(features, b"duration_stretch", stretch)
        if self._shifted:
            flite.feat_set_float(features, b"f0_shift", pitch)
        else:
            flite.feat_set_float(features, b"int_f0_target_mean", pitch * _PITCH_HZ)
        utterance = flite.new_utterance()
        relation = flite.utt_relation_create(utterance, b"Token")
        places = {self._append(relation, word): place for place, word in enumerate(words)}
        utterance = flite.flite_do_synth(utterance, self._voice, self._synthesis)
        if not utterance:
            raise FliteError("flite could not speak the sentence")
        try:
            wave = flite.utt_wave(utterance).contents
            if wave.sample_rate != INPUT_RATE or not wave.num_samples:
                raise FliteError(f"flite made {wave.num_samples} samples at {wave.sample_rate} Hz")
            pcm = np.ctypeslib.as_array(wave.samples, (wave.num_samples,)).copy()
            segments = list(self._segments(utterance, places))
        finally:
            flite.delete_utterance(utterance)
        return Speech(pcm, tuple(_ends(segments, len(words))), tuple((name, end) for name, end, _ in segments))

    def _append(self, relation: int, word: str) -> int:
        item: int = self._flite.relation_append(relation, None)
        for feature, value in ((b"name", word), (b"whitespace", " "), (b"prepunctuation", ""), (b"punc", "")):
            self._flite.item_set_string(item, feature, value.encode("ascii"))
        return item

    def _segments(self, utterance: Any, places: dict[int, int]) -> Iterator[tuple[str, int, int | None]]:
        """Each phone with its end in samples and the place of its word; None in a pause."""
        flite = self._flite
        segment = flite.relation_head(flite.utt_relation(utterance, b"Segment"))
        while segment:
            name = flite.item_feat_string(segment, b"name").decode()
            end = round(flite.item_feat_float(segment, b"end") * INPUT_RATE)
            in_syllable = flite.item_as(segment, b"SylStructure")
            syllable = flite.item_parent(in_syllable) if in_syllable else None
            word = flite.item_parent(syllable) if syllable else None
            yield name, end, places[flite.item_parent(flite.item_as(word, b"Token"))] if word else None
            segment = flite.item_next(segment)


def _ends(segments: Sequence[tuple[str, int, int | None]], words: int) -> Iterator[int]:
    last = {place: end for _, end, place in segments if place is not None}
    end = 0
    for place in range(words):
        end = last.get(place, end)
        yield end


@cache
def _library() -> tuple[Any, c_void_p]:
    """flite, and its function that speaks tokens."""
    libraries = [ctypes.CDLL(f"lib{name}.so.1", mode=ctypes.RTLD_GLOBAL)
                 for name in ("flite", "flite_usenglish", "flite_cmulex")]
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(libraries[0], name)
        function.restype, function.argtypes = result, arguments
    libraries[0].flite_init()
    return libraries[0], ctypes.cast(libraries[0].utt_synth_tokens, c_void_p)
