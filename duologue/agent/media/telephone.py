"""The decoder of telephone codecs for the receive path: waveform codecs, concealment, comfort noise, to 16 kHz."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from duologue.agent.media.codec import MalformedPacketError
from duologue.agent.media.concealment import Concealer
from duologue.agent.media.resample import Resampler
from duologue.agent.media.upper_band import UpperBand
from duologue.engine import INPUT_RATE, Pcm

RTP_CLOCK = 8000
"""RTP timestamps of G.711, G.722 and comfort noise count at this rate, in Hz (RFC 3551, RFC 3389)."""

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
    comes from 8 kHz gets its upper half made up.
    """

    rate = INPUT_RATE
    clock = RTP_CLOCK

    def __init__(self, codec: WaveformCodec) -> None:
        self._codec = codec
        self._concealer = Concealer(codec.rate)
        self._resampler = Resampler(codec.rate, self.rate)
        self._random = np.random.default_rng()
        self._noise_level: float | None = None
        self._upper = UpperBand() if codec.rate == RTP_CLOCK else None

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
        pcm = self._concealer.heard(pcm)
        out = self._resampler.process(pcm)
        if out.size != count:
            raise MalformedPacketError(f"{len(payload)} bytes gave {out.size} samples")
        if self._upper is None:
            return out
        full: Pcm = np.clip(out + self._upper.above(pcm), -32_768, 32_767).astype(np.int16)
        return full

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

    def reset(self) -> None:
        """Forget the stream: the next payload is the first of another."""
        self._codec.reset()
        self._concealer.reset()
        self._resampler = Resampler(self._codec.rate, self.rate)
        self._noise_level = None
