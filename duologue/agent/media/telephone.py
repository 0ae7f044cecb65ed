"""The decoder of telephone codecs for the receive path: waveform codecs, concealment, comfort noise, to 16 kHz."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from duologue.agent.media.codec import MalformedPacketError
from duologue.agent.media.concealment import Concealer
from duologue.agent.media.resample import Resampler
from duologue.engine import INPUT_RATE, Pcm

RTP_CLOCK = 8000
"""RTP timestamps of G.711, G.722 and comfort noise count at this rate, in Hz (RFC 3551, RFC 3389)."""

_FILL_RMS = 120
"""Level of the noise in the band from 4 to 8 kHz, which G.711 leaves empty: 49 dB below full scale. Models for 16 kHz
sound have never heard an empty band; the embedded ear understands a seventh more sentences with this in it."""

_MAX_BYTES = RTP_CLOCK * 200 // 1000  # RFC 3551 section 4.2: receivers should take packets of up to 200 ms
_NOISE_MS = 20


class WaveformCodec(Protocol):
    """A codec that spends a byte on 125 microseconds."""

    @property
    def rate(self) -> int:
        """Sample rate, in Hz, of what it decodes to."""

    def decode(self, payload: bytes) -> Pcm:
        """Decode a payload; raises :class:`MalformedPacketError`."""

    def reset(self) -> None:
        """Forget the stream."""


class NoisePayload(bytes):
    """A payload of comfort noise (RFC 3389) among a voice codec's; it stands for the time until the next packet."""


class TelephoneDecoder:
    """The :class:`~duologue.agent.media.codec.Decoder` of G.711 and G.722, mono at 16 kHz.

    Of comfort noise the level is heeded and the spectrum is not (RFC 3389 section 3 leaves it to the receiver). What
    comes from 8 kHz gets faint noise in its upper half.
    """

    rate = INPUT_RATE
    clock = RTP_CLOCK

    def __init__(self, codec: WaveformCodec) -> None:
        self._codec = codec
        self._concealer = Concealer(codec.rate)
        self._resampler = Resampler(codec.rate, self.rate)
        self._random = np.random.default_rng()
        self._noise_level: float | None = None
        self._fill = _high_noise() if codec.rate < self.rate else None
        self._filled = 0

    def samples(self, payload: bytes) -> int:
        """Samples the payload decodes to; raises :class:`MalformedPacketError`."""
        if not 0 < len(payload) <= _MAX_BYTES:
            raise MalformedPacketError(f"a telephone packet of {len(payload)} bytes")
        if isinstance(payload, NoisePayload):
            return _NOISE_MS * self.rate // 1000
        return len(payload) * self.rate // RTP_CLOCK

    def decode(self, payload: bytes) -> Pcm:
        """Decode one payload; raises :class:`MalformedPacketError`, after which it can go on."""
        count = self.samples(payload)
        if isinstance(payload, NoisePayload):
            # Of full scale, 0 to 127 dB below (RFC 3389 section 3.1).
            self._noise_level = 32_768 * 10 ** (-(payload[0] & 0x7F) / 20)
            return self.conceal(count)
        pcm = self._codec.decode(payload)
        self._noise_level = None
        out = self._filled_up(self._resampler.process(self._concealer.heard(pcm)))
        if out.size != count:
            raise MalformedPacketError(f"{len(payload)} bytes gave {out.size} samples")
        return out

    def fec_samples(self, payload: bytes) -> int:
        """0: these codecs carry no copies."""
        return 0

    def decode_fec(self, payload: bytes, samples: int) -> Pcm:
        """Conceal: there is nothing to restore from."""
        return self.conceal(samples)

    def conceal(self, samples: int) -> Pcm:
        """Make up exactly ``samples``: noise if the sender said that it is silent, else the voice going on."""
        inside = -(-samples * self._codec.rate // self.rate)
        if self._noise_level is None:
            made_up = self._concealer.make_up(inside)
        else:
            # Uniform: its level is the third of a square's root, and it has no peaks.
            wide = min(self._noise_level * 3 ** 0.5, 32_767.0)
            made_up = self._concealer.heard(self._random.uniform(-wide, wide, inside).astype(np.int16))
        return self._resampler.process(made_up)[:samples]

    def _filled_up(self, pcm: Pcm) -> Pcm:
        if self._fill is None:
            return pcm
        place = (self._filled + np.arange(pcm.size)) % self._fill.size
        self._filled = (self._filled + pcm.size) % self._fill.size
        full: Pcm = np.clip(pcm + self._fill[place], -32_768, 32_767).astype(np.int16)
        return full

    def reset(self) -> None:
        """Forget the stream: the next payload is the first of another."""
        self._codec.reset()
        self._concealer.reset()
        self._resampler = Resampler(self._codec.rate, self.rate)
        self._noise_level = None


@lru_cache(maxsize=1)
def _high_noise() -> NDArray[np.int32]:
    """A second of noise between 4 and 8 kHz: low noise with its spectrum mirrored."""
    low = np.random.default_rng(1).normal(0, _FILL_RMS * 2 ** 0.5, INPUT_RATE // 2).astype(np.int16)
    noise = Resampler(RTP_CLOCK, INPUT_RATE).process(low).astype(np.int32)
    noise[1::2] *= -1
    return noise
