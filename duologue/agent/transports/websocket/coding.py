"""The client's audio as bytes: to 16 kHz on the way in, from the pipeline's rate on the way out. No I/O."""

from __future__ import annotations

import base64
import binascii

import numpy as np

from duologue.agent.media.g711 import G711
from duologue.agent.media.resample import Resampler
from duologue.agent.media.telephone import TelephoneDecoder
from duologue.agent.realtime.formats import AudioFormat
from duologue.engine import INPUT_RATE, Pcm

_PACKET = 1600
"""Bytes of G.711 that the telephone decoder takes at once: 200 ms."""


class BadAudioError(ValueError):
    """What was sent is no audio of the session's format; the text says why."""


def _g711(wire: AudioFormat) -> G711:
    return G711("mu" if wire.coding == "audio/pcmu" else "a")


class AudioReader:
    """Reads one stream of the caller's audio; it keeps the resampler's state."""

    def __init__(self, wire: AudioFormat) -> None:
        self.wire = wire
        self._resampler = Resampler(wire.rate, INPUT_RATE)
        self._telephone = None if wire.coding == "audio/pcm" else TelephoneDecoder(_g711(wire))

    def read(self, text: str) -> Pcm:
        """Take the next audio as base64; returns it at 16 kHz. Raises ``BadAudioError``, and then has not taken it."""
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise BadAudioError("The audio is not valid base64.") from None
        if self._telephone is not None:
            packets = [data[start:start + _PACKET] for start in range(0, len(data), _PACKET)]
            pieces = [self._telephone.decode(packet) for packet in packets]
            return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)
        if len(data) % 2:
            raise BadAudioError(f"The audio has {len(data)} bytes: 16-bit samples have an even number.")
        return self._resampler.process(np.frombuffer(data, "<i2").astype(np.int16))


class AudioWriter:
    """Writes the audio of one reply."""

    def __init__(self, rate: int, wire: AudioFormat) -> None:
        """``rate`` is that of the audio it is given, in Hz."""
        self.wire = wire
        self._resampler = Resampler(rate, wire.rate)
        self._g711 = None if wire.coding == "audio/pcm" else _g711(wire)

    def write(self, pcm: Pcm) -> str:
        """The next samples as base64."""
        out = self._resampler.process(pcm)
        data = out.astype("<i2").tobytes() if self._g711 is None else self._g711.encode(np.ascontiguousarray(out))
        return base64.b64encode(data).decode("ascii")
