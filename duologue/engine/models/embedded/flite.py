"""A binding of libflite: text tokens to the acoustic vectors of its ``cmu_us_rms`` voice.

libflite is a system library (Debian and Ubuntu: package ``libflite1``), bound through ctypes alone. Only the
front end and the acoustic model run here: the waveform is made by our own streaming vocoder, so flite's is
stopped after its first 5 ms by the hook it has for streamed audio (``streaming_info``, cst_audio.h).

Struct layouts and signatures: the headers of flite 2.2 (cst_track.h, cst_audio.h, cst_voice.h,
cst_utterance.h, cst_cg.h).
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from ctypes import POINTER, Structure, c_char_p, c_float, c_int, c_void_p
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duologue.engine.config import ConfigError
from duologue.engine.models.embedded.voice_format import SAMPLE_RATE, VECTOR_SAMPLES, VECTOR_WIDTH

_LIBRARIES = ("libflite.so.1", "libflite_usenglish.so.1", "libflite_cmulex.so.1", "libflite_cmu_us_rms.so.1")
"""In the order in which each finds the symbols of those before it."""
_VECTORS_PER_SECOND = SAMPLE_RATE // VECTOR_SAMPLES
_STREAM_STOP = -1  # CST_AUDIO_STREAM_STOP


class FliteError(RuntimeError):
    """flite could not speak what it was given."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of text without white space, ASCII; ``punctuation`` is what follows it directly."""

    name: str
    punctuation: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Speech:
    """Acoustic vectors, float32, shape (n, VECTOR_WIDTH), and where in them each token is spoken.

    ``tokens[i]`` is the half-open range of vectors that speak token i, or None if flite says nothing for it.
    Vectors outside all ranges are pauses.
    """

    vectors: NDArray[np.float32]
    tokens: tuple[tuple[int, int] | None, ...]


class _Track(Structure):
    _fields_ = [("type", c_char_p), ("num_frames", c_int), ("num_channels", c_int),
                ("times", POINTER(c_float)), ("frames", POINTER(c_void_p))]


class _Voice(Structure):
    _fields_ = [("name", c_char_p), ("features", c_void_p), ("ffunctions", c_void_p), ("utt_init", c_void_p)]


class _Utterance(Structure):
    _fields_ = [("features", c_void_p), ("ffunctions", c_void_p), ("relations", c_void_p), ("ctx", c_void_p)]


_StreamHook = ctypes.CFUNCTYPE(c_int, c_void_p, c_int, c_int, c_int, c_void_p)


class _StreamingInfo(Structure):
    _fields_ = [("min_buffsize", c_int), ("asc", _StreamHook), ("utt", c_void_p), ("item", c_void_p),
                ("userdata", c_void_p)]


_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "flite_init": (c_int, ()),
    "feat_val": (c_void_p, (c_void_p, c_char_p)),
    "feat_set": (None, (c_void_p, c_char_p, c_void_p)),
    "feat_set_float": (None, (c_void_p, c_char_p, c_float)),
    "val_track": (POINTER(_Track), (c_void_p,)),
    "val_cg_db": (c_void_p, (c_void_p,)),
    "new_audio_streaming_info": (POINTER(_StreamingInfo), ()),
    "audio_streaming_info_val": (c_void_p, (POINTER(_StreamingInfo),)),
    "new_utterance": (POINTER(_Utterance), ()),
    "delete_utterance": (None, (POINTER(_Utterance),)),
    "flite_do_synth": (POINTER(_Utterance), (POINTER(_Utterance), POINTER(_Voice), c_void_p)),
    "utt_relation_create": (c_void_p, (POINTER(_Utterance), c_char_p)),
    "utt_relation": (c_void_p, (POINTER(_Utterance), c_char_p)),
    "relation_append": (c_void_p, (c_void_p, c_void_p)),
    "relation_head": (c_void_p, (c_void_p,)),
    "item_set_string": (None, (c_void_p, c_char_p, c_char_p)),
    "item_feat_float": (c_float, (c_void_p, c_char_p)),
    "item_next": (c_void_p, (c_void_p,)),
    "item_parent": (c_void_p, (c_void_p,)),
    "item_as": (c_void_p, (c_void_p, c_char_p)),
    "mlpg": (POINTER(_Track), (POINTER(_Track), c_void_p)),
    "delete_track": (None, (POINTER(_Track),)),
}


def _stop(_wave: int, _start: int, _size: int, _last: int, _info: int) -> int:
    return _STREAM_STOP


_STOP_HOOK = _StreamHook(_stop)  # flite keeps the pointer, so it must live as long as the process


class FliteVoice:
    """The voice ``cmu_us_rms``; flite keeps global state, so a process has one: use :func:`rms_voice`."""

    def __init__(self) -> None:
        """Load the libraries; raises ``ConfigError`` naming the system package if they are missing."""
        try:
            libraries = [ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL) for name in _LIBRARIES]
        except OSError as error:
            raise ConfigError(f"the embedded voice needs flite's library ({error}): install the system "
                              "package libflite1 (Debian, Ubuntu: apt-get install libflite1)") from None
        self._flite: Any = libraries[0]
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self._flite, name)
            function.restype, function.argtypes = result, arguments
        register: Any = libraries[-1].register_cmu_us_rms
        register.restype, register.argtypes = POINTER(_Voice), (c_char_p,)
        self._flite.flite_init()
        self._voice = register(None)
        self._features = self._voice.contents.features
        self._model = self._flite.val_cg_db(self._flite.feat_val(self._features, b"cg_db"))
        self._synthesis = ctypes.cast(self._flite.utt_synth_tokens, c_void_p)
        info = self._flite.new_audio_streaming_info()
        info.contents.min_buffsize = 0
        info.contents.asc = _STOP_HOOK
        self._flite.feat_set(self._features, b"streaming_info", self._flite.audio_streaming_info_val(info))
        self._lock = threading.Lock()

    def speak(self, tokens: Sequence[Token], rate: float = 1.0) -> Speech:
        """Acoustic vectors for ``tokens`` as one utterance; ``rate`` 2.0 is twice as fast.

        Raises ``FliteError`` if flite gives up or has nothing to say for any token.
        """
        with self._lock:
            self._flite.feat_set_float(self._features, b"duration_stretch", 1.0 / rate)
            utterance = self._flite.new_utterance()
            relation = self._flite.utt_relation_create(utterance, b"Token")
            items = [self._append(relation, token) for token in tokens]
            utterance = self._flite.flite_do_synth(utterance, self._voice, self._synthesis)
            if not utterance:  # flite has freed it itself
                raise FliteError("flite could not speak the phrase")
            try:
                vectors = self._vectors(utterance)
                times = self._token_times(utterance)
            finally:
                self._flite.delete_utterance(utterance)
        if not times:
            raise FliteError("flite has nothing to say for the phrase")
        return Speech(vectors, tuple(self._range(times.get(item), len(vectors)) for item in items))

    def _append(self, relation: int, token: Token) -> int:
        item: int = self._flite.relation_append(relation, None)
        for feature, value in ((b"name", token.name), (b"whitespace", " "), (b"prepunctuation", ""),
                               (b"punc", token.punctuation)):
            self._flite.item_set_string(item, feature, value.encode("ascii"))
        return item

    def _vectors(self, utterance: Any) -> NDArray[np.float32]:
        features = utterance.contents.features
        means = self._flite.val_track(self._flite.feat_val(features, b"param_track"))
        strengths = self._flite.val_track(self._flite.feat_val(features, b"str_track"))
        smooth = self._flite.mlpg(means, self._model)
        try:
            vectors = np.hstack([_array(smooth.contents), _array(strengths.contents)])
        finally:
            self._flite.delete_track(smooth)
        if vectors.shape[1] != VECTOR_WIDTH:
            raise FliteError(f"this libflite's vectors have {vectors.shape[1]} values, not {VECTOR_WIDTH}")
        return np.ascontiguousarray(vectors)

    def _token_times(self, utterance: Any) -> dict[int, tuple[float, float]]:
        """Start and end, in seconds, of every token item that has sounds."""
        flite = self._flite
        times: dict[int, tuple[float, float]] = {}
        start = 0.0
        segment = flite.relation_head(flite.utt_relation(utterance, b"Segment"))
        while segment:
            end = float(flite.item_feat_float(segment, b"end"))
            in_syllable = flite.item_as(segment, b"SylStructure")
            syllable = flite.item_parent(in_syllable) if in_syllable else None
            word = flite.item_parent(syllable) if syllable else None
            if word:
                token = flite.item_parent(flite.item_as(word, b"Token"))
                times[token] = (times.get(token, (start,))[0], end)
            start = end
            segment = flite.item_next(segment)
        return times

    @staticmethod
    def _range(seconds: tuple[float, float] | None, count: int) -> tuple[int, int] | None:
        """A sound that ends at t owns the vectors up to and with the one at t (cg_make_params, cst_cg.c)."""
        if seconds is None:
            return None
        first, end = (min(int(t * _VECTORS_PER_SECOND + 1e-3) + 1, count) for t in seconds)
        return first, end


def _array(track: _Track) -> NDArray[np.float32]:
    size = track.num_channels * ctypes.sizeof(c_float)
    rows = b"".join([ctypes.string_at(track.frames[i], size) for i in range(track.num_frames)])
    return np.frombuffer(rows, np.float32).reshape(track.num_frames, track.num_channels)


@cache
def rms_voice() -> FliteVoice:
    """The process's one voice; raises ``ConfigError`` if libflite is missing."""
    return FliteVoice()
