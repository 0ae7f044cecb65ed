"""Opus (RFC 6716) through libopus itself: FFmpeg's wrapper has neither in-band FEC nor loss concealment.

The library is the one inside PyAV's wheel, which aiortc brings along anyway, or else the system's.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
from functools import lru_cache
from pathlib import Path

import numpy as np

from duologue.agent.media.codec import MalformedPacketError
from duologue.engine import Pcm

RTP_CLOCK = 48_000
"""RTP timestamps of Opus count at this rate, in Hz, whatever rate is coded (RFC 7587 section 4.1)."""

FRAME_MS = 20
"""Length, in milliseconds, of the packets the encoder makes."""

_MAX_PACKET_MS = 120  # RFC 6716 section 3.2: no packet is longer
_MAX_PACKET_BYTES = 1276  # RFC 6716 section 3.4: at most 1275 bytes a frame, and one TOC byte

# opus_defines.h of libopus 1.x
_OK = 0
_APPLICATION_VOIP = 2048
_SIGNAL_VOICE = 3001
_SET_BITRATE = 4002
_SET_COMPLEXITY = 4010
_SET_INBAND_FEC = 4012
_SET_PACKET_LOSS_PERC = 4014
_SET_SIGNAL = 4024
_RESET_STATE = 4028


class OpusError(Exception):
    """libopus refused a call."""


class OpusUnavailableError(OpusError):
    """There is no libopus to load."""


def _candidates() -> list[str]:
    found: list[str] = []
    spec = importlib.util.find_spec("av")  # found, not imported: PyAV itself is not needed here
    if spec is not None and spec.origin is not None:
        package = Path(spec.origin).parent
        # Where auditwheel, delocate and delvewheel put a wheel's libraries.
        for folder in (package.parent / "av.libs", package / ".dylibs"):
            found += sorted(str(path) for path in folder.glob("*opus*") if path.is_file())
    system = ctypes.util.find_library("opus")
    return found + ([system] if system else [])


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    """Load libopus once for the process; raises :class:`OpusUnavailableError`."""
    tried = _candidates()
    for name in tried:
        try:
            lib = ctypes.CDLL(name)
            _declare(lib)
        except (OSError, AttributeError):  # not loadable here, or too old to have what is used
            continue
        return lib
    raise OpusUnavailableError(
        "libopus was not found: install the 'av' wheel (pip install av) or the system library "
        f"(Debian: apt-get install libopus0). Tried: {', '.join(tried) or 'nothing, none is installed'}")


def _declare(lib: ctypes.CDLL) -> None:
    int_, ptr, data = ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p
    for name, restype, argtypes in (
        ("opus_strerror", ctypes.c_char_p, [int_]),
        ("opus_packet_get_nb_samples", int_, [data, ctypes.c_int32, ctypes.c_int32]),
        ("opus_packet_get_samples_per_frame", int_, [data, ctypes.c_int32]),
        ("opus_packet_has_lbrr", int_, [data, ctypes.c_int32]),
        ("opus_decoder_create", ptr, [ctypes.c_int32, int_, ctypes.POINTER(int_)]),
        ("opus_decoder_destroy", None, [ptr]),
        ("opus_decoder_ctl", int_, [ptr, int_]),
        ("opus_decode", int_, [ptr, data, ctypes.c_int32, ptr, int_, int_]),
        ("opus_encoder_create", ptr, [ctypes.c_int32, int_, int_, ctypes.POINTER(int_)]),
        ("opus_encoder_destroy", None, [ptr]),
        ("opus_encoder_ctl", int_, [ptr, int_]),  # variadic: only the fixed arguments are declared
        ("opus_encode", ctypes.c_int32, [ptr, ptr, int_, data, ctypes.c_int32]),
    ):
        function = getattr(lib, name)
        function.restype, function.argtypes = restype, argtypes


def _reason(code: int) -> str:
    return bytes(_library().opus_strerror(code)).decode()


def packet_samples(packet: bytes, rate: int) -> int:
    """Samples a packet decodes to at ``rate`` Hz; raises :class:`MalformedPacketError`."""
    count = int(_library().opus_packet_get_nb_samples(packet, len(packet), rate)) if packet else 0
    if count <= 0:
        raise MalformedPacketError(f"not an Opus packet ({len(packet)} bytes)")
    return count


def frame_samples(packet: bytes, rate: int) -> int:
    """Samples of one frame of a packet at ``rate`` Hz: what its in-band FEC can restore."""
    if not packet:
        raise MalformedPacketError("not an Opus packet (0 bytes)")
    return int(_library().opus_packet_get_samples_per_frame(packet, rate))


def has_fec(packet: bytes) -> bool:
    """Whether a packet carries a low-bitrate copy of the frame before it (RFC 6716 section 2.1.7)."""
    return bool(packet) and int(_library().opus_packet_has_lbrr(packet, len(packet))) == 1


class OpusDecoder:
    """The :class:`~duologue.agent.media.codec.Decoder` of Opus, mono at ``rate`` Hz; mixes stereo down.

    ``rate`` is 8000, 12000, 16000, 24000 or 48000. One decoder per stream.
    """

    clock = RTP_CLOCK

    def __init__(self, rate: int = 16_000) -> None:
        self.rate = rate
        self._lib = _library()
        self._step = rate // 400  # libopus conceals in steps of 2.5 ms
        self._limit = rate * _MAX_PACKET_MS // 1000
        self._buffer = np.zeros(self._limit, np.int16)
        self._address = self._buffer.ctypes.data
        error = ctypes.c_int()
        self._state = self._lib.opus_decoder_create(rate, 1, ctypes.byref(error))
        if error.value != _OK:
            raise OpusError(f"no Opus decoder at {rate} Hz: {_reason(error.value)}")

    def __del__(self) -> None:
        if getattr(self, "_state", None):
            self._lib.opus_decoder_destroy(self._state)
            self._state = None

    def _run(self, packet: bytes | None, frame_size: int, fec: bool) -> Pcm:
        size = len(packet) if packet is not None else 0
        count = int(self._lib.opus_decode(self._state, packet, size, self._address, frame_size,
                                          int(fec)))
        if count < 0:
            raise MalformedPacketError(f"Opus packet of {size} bytes: {_reason(count)}")
        return self._buffer[:count].copy()

    def samples(self, packet: bytes) -> int:
        """Samples a packet decodes to; raises :class:`MalformedPacketError`."""
        return packet_samples(packet, self.rate)

    def fec_samples(self, next_packet: bytes) -> int:
        """Samples just before ``next_packet`` that its in-band FEC restores; 0 when it has none."""
        return frame_samples(next_packet, self.rate) if has_fec(next_packet) else 0

    def decode(self, packet: bytes) -> Pcm:
        """Decode one packet, shape (n,); raises :class:`MalformedPacketError`, after which it can go on."""
        if not packet:
            raise MalformedPacketError("not an Opus packet (0 bytes)")
        return self._run(packet, self._limit, fec=False)

    def decode_fec(self, next_packet: bytes, samples: int) -> Pcm:
        """Restore exactly ``samples`` lost just before ``next_packet``, from the copy inside it.

        What the copy does not cover is concealed. Raises :class:`MalformedPacketError`.
        """
        if not next_packet:
            raise MalformedPacketError("not an Opus packet (0 bytes)")
        covered = min(samples, self._limit)
        lead = self.conceal(samples - covered)
        aligned = -(-covered // self._step) * self._step
        return np.concatenate((lead, self._run(next_packet, aligned, fec=True)[aligned - covered:]))

    def conceal(self, samples: int) -> Pcm:
        """Make up exactly ``samples`` that continue what was decoded last."""
        pieces: list[Pcm] = []
        while samples > 0:
            take = min(samples, self._limit)
            aligned = -(-take // self._step) * self._step
            pieces.append(self._run(None, aligned, fec=False)[:take])
            samples -= take
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)

    def reset(self) -> None:
        """Forget the stream: the next packet is the first of another."""
        self._lib.opus_decoder_ctl(self._state, _RESET_STATE)


class OpusEncoder:
    """Encodes 20 ms mono frames at ``rate`` Hz for speech.

    ``bitrate`` is in bits a second, ``complexity`` 0..10. With ``fec`` each packet also carries a copy of the
    frame before it, as good as ``expected_loss_percent`` asks for (0 means none).
    """

    def __init__(self, rate: int, bitrate: int = 32_000, complexity: int = 5, fec: bool = True,
                 expected_loss_percent: int = 10) -> None:
        self.rate = rate
        self.frame = rate * FRAME_MS // 1000
        self._lib = _library()
        error = ctypes.c_int()
        self._state = self._lib.opus_encoder_create(rate, 1, _APPLICATION_VOIP, ctypes.byref(error))
        if error.value != _OK:
            raise OpusError(f"no Opus encoder at {rate} Hz: {_reason(error.value)}")
        self._out = ctypes.create_string_buffer(_MAX_PACKET_BYTES)
        for request, value in ((_SET_BITRATE, bitrate), (_SET_COMPLEXITY, complexity),
                               (_SET_INBAND_FEC, int(fec)), (_SET_PACKET_LOSS_PERC, expected_loss_percent),
                               (_SET_SIGNAL, _SIGNAL_VOICE)):
            self._set(request, value)

    def __del__(self) -> None:
        if getattr(self, "_state", None):
            self._lib.opus_encoder_destroy(self._state)
            self._state = None

    def _set(self, request: int, value: int) -> None:
        code = int(self._lib.opus_encoder_ctl(self._state, request, ctypes.c_int(value)))
        if code != _OK:
            raise OpusError(f"Opus encoder does not take the value {value}: {_reason(code)}")

    def expect_loss(self, percent: int) -> None:
        """Say how much loss the receiver reports, 0..100: more loss buys more FEC."""
        self._set(_SET_PACKET_LOSS_PERC, percent)

    def encode(self, pcm: Pcm) -> bytes:
        """Encode int16 samples, shape (rate * 20 // 1000,); raises :class:`OpusError` for another shape."""
        if pcm.shape != (self.frame,) or pcm.dtype != np.int16:
            raise OpusError(f"one frame is {self.frame} int16 samples, got {pcm.shape} of {pcm.dtype}")
        frame = np.ascontiguousarray(pcm)
        size = int(self._lib.opus_encode(self._state, frame.ctypes.data, self.frame,
                                         self._out, _MAX_PACKET_BYTES))
        if size < 0:
            raise OpusError(f"Opus could not encode a frame: {_reason(size)}")
        return ctypes.string_at(self._out, size)
