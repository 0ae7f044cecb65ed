"""A streaming source-filter vocoder: acoustic vectors (see ``voice_format``) to a 16 kHz waveform.

Pulses and noise are mixed per band by the strength of voicing, then shaped by the mel-cepstral envelope. Each
vector's filter acts on the 10 ms of excitation around its instant, faded in and out, so that neighbouring
filters cross-fade; filtering is by FFT and overlap-add. Work goes in steps of one codec frame (40 ms) for
several streams at once, and every step has the same shape for a stream whatever came before or runs beside
it: the waveform does not depend, to the last bit, on how the frames arrived.

The warp and the post-filter are those of the voice's own synthesizer (mlsa_alpha and mlsa_beta of flite's
cmu_us_rms; Imai 1983, Tokuda et al. 1994). The bands are its nominal ones (0-1, 1-2, 2-4, 4-6, 6-8 kHz), but
cross-faded so that they always add up to 1, where flite's 48-tap filters leave holes of 5 dB at their edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from duologue.engine.models.embedded.voice_format import (
    BANDS,
    CEPSTRA,
    FRAME_SAMPLES,
    FRAME_VECTORS,
    SAMPLE_RATE,
    VECTOR_SAMPLES,
    VECTOR_WIDTH,
)

Floats = NDArray[np.float32]

_ALPHA = 0.42
_BETA = 0.4
_EDGES_HZ = (1000.0, 2000.0, 4000.0, 6000.0)
_FADE_HZ = 500.0
"""Width of the cross-fade at each edge; its impulse response has died away after ``_DELAY`` samples."""
_DELAY = 32
"""Samples by which the output lags, so that the zero-phase band weights stay causal (2 ms)."""
_FFT = 12 * VECTOR_SAMPLES
"""Room for 10 ms of excitation and 50 ms of the filter's ringing; a whole number of hops."""
_HOPS = _FFT // VECTOR_SAMPLES
_ENERGY_STRIDE = 8
"""Frequency bins skipped where only a mean over the spectrum is wanted."""
_FULL_SCALE = 32768.0


@dataclass(slots=True, eq=False)
class VocoderState:
    """One stream: what must be kept from step to step."""

    noise: np.random.Generator
    vector: Floats | None = None
    """The last vector, shape (VECTOR_WIDTH,)."""
    phase: float = 0.0
    """Of the glottal cycle, 0..1; a pulse comes whenever it wraps."""
    tail: Floats = field(default_factory=lambda: np.zeros((_HOPS - 1, VECTOR_SAMPLES), np.float32))
    """What has been filtered but belongs to coming steps."""


class Vocoder:
    """The streams' common tables. Holds no stream itself, so one serves any number of them."""

    def __init__(self) -> None:
        """Build the tables (about 400 kB)."""
        omega = 2 * np.pi * np.arange(_FFT // 2 + 1) / _FFT
        warped = omega + 2 * np.arctan(_ALPHA * np.sin(omega) / (1 - _ALPHA * np.cos(omega)))
        orders = np.arange(CEPSTRA)
        self._amplitude = np.cos(np.outer(orders, warped)).astype(np.float32)
        self._angle = -np.sin(np.outer(orders, warped)).astype(np.float32)
        self._coarse = np.ascontiguousarray(self._amplitude[:, ::_ENERGY_STRIDE])
        self._lag = (-omega * _DELAY).astype(np.float32)
        self._omega = omega.astype(np.float32)
        self._hop_shift = np.exp(-1j * omega * VECTOR_SAMPLES).astype(np.complex64)
        self._bands = _band_weights(omega * SAMPLE_RATE / (2 * np.pi))
        n = np.arange(VECTOR_SAMPLES)
        self._rise = (0.5 - 0.5 * np.cos(np.pi * (n + 0.5) / VECTOR_SAMPLES)).astype(np.float32)
        self._ramp = ((n + 1) / VECTOR_SAMPLES)[None, :]
        self._boost = np.array([1, 1] + [1 + _BETA] * (CEPSTRA - 2), np.float32)

    @staticmethod
    def open(seed: int) -> VocoderState:
        """A new stream; ``seed`` fixes its noise."""
        return VocoderState(np.random.default_rng(seed))

    def step(self, streams: Sequence[VocoderState], frames: Floats) -> Floats:
        """One codec frame for each stream.

        ``frames`` has the shape (streams, FRAME_VECTORS, VECTOR_WIDTH). Returns samples, shape (streams,
        FRAME_SAMPLES), of which 1 is full scale; some may lie beyond it.
        """
        vectors = np.empty((len(streams), FRAME_VECTORS + 1, VECTOR_WIDTH), np.float32)
        for i, stream in enumerate(streams):
            vectors[i, 0] = frames[i, 0] if stream.vector is None else stream.vector
            vectors[i, 1:] = frames[i]
        strength = np.clip(vectors[..., 1 + CEPSTRA:], 0, 1)
        voiced = strength @ self._bands
        noise = np.stack([self._noise(stream) for stream in streams])
        pulses = np.stack([self._pulses(stream, vectors[i, :, 0]) for i, stream in enumerate(streams)])
        spectra = self._filters(vectors[..., 1:1 + CEPSTRA])
        spectra *= np.fft.rfft(noise, _FFT) * (1 - voiced) + pulses * voiced
        sound = np.fft.irfft(spectra, _FFT).reshape(len(streams), FRAME_VECTORS + 1, _HOPS, VECTOR_SAMPLES)
        out = np.empty((len(streams), FRAME_SAMPLES), np.float32)
        for i, stream in enumerate(streams):
            out[i] = self._overlap(stream, sound[i])
            stream.vector = vectors[i, -1].copy()
        return out

    def _filters(self, cepstra: Floats) -> NDArray[np.complex64]:
        """Spectra of the vectors' post-filtered envelopes."""
        before = np.exp(2 * (cepstra @ self._coarse)).mean(-1)
        cepstra = cepstra * self._boost
        after = np.exp(2 * (cepstra @ self._coarse)).mean(-1)
        cepstra[..., 0] += 0.5 * np.log(before / after)
        amplitude = np.exp(cepstra @ self._amplitude) / np.float32(_FULL_SCALE)
        angle = cepstra @ self._angle + self._lag
        spectra = np.empty(amplitude.shape, np.complex64)
        spectra.real = amplitude * np.cos(angle)
        spectra.imag = amplitude * np.sin(angle)
        return spectra

    def _noise(self, stream: VocoderState) -> Floats:
        """Signs at random, faded into one row for each vector; the first row has only its falling half."""
        signs = stream.noise.integers(0, 2, (FRAME_VECTORS, VECTOR_SAMPLES), np.int8) * np.float32(2) - 1
        rows = np.zeros((FRAME_VECTORS + 1, 2 * VECTOR_SAMPLES), np.float32)
        rows[1:, :VECTOR_SAMPLES] = signs * self._rise
        rows[:-1, VECTOR_SAMPLES:] = signs * self._rise[::-1]
        return rows

    def _pulses(self, stream: VocoderState, f0: Floats) -> NDArray[np.complex64]:
        """Spectra of the pulses around each vector, each at its exact place between samples."""
        spectra = np.zeros((FRAME_VECTORS + 1, _FFT // 2 + 1), np.complex64)
        last, now = f0[:-1, None].astype(float), f0[1:, None].astype(float)
        last = np.where(last > 0, last, now)
        pitch = np.where(now > 0, last + (now - last) * self._ramp, 0.0).ravel()
        phase = np.concatenate([[stream.phase], stream.phase + np.cumsum(pitch) / SAMPLE_RATE])
        cycles = np.floor(phase)
        stream.phase = float(phase[-1] - cycles[-1])
        at = np.flatnonzero(cycles[1:] > cycles[:-1])
        if not len(at):
            return spectra
        late = (phase[at + 1] - cycles[at + 1]) * SAMPLE_RATE / pitch[at]
        hop, place = np.divmod(np.minimum(at + 1 - late, FRAME_SAMPLES - 0.5), VECTOR_SAMPLES)
        angle = (-place.astype(np.float32))[:, None] * self._omega
        waves = np.empty(angle.shape, np.complex64)
        waves.real, waves.imag = np.cos(angle), np.sin(angle)
        level = np.sqrt(SAMPLE_RATE / pitch[at])
        rise = 0.5 - 0.5 * np.cos(np.pi * place / VECTOR_SAMPLES)
        for wave, row, up, down in zip(waves, hop.astype(int), level * rise, level * (1 - rise), strict=True):
            spectra[row + 1] += np.float32(up) * wave
            spectra[row] += np.float32(down) * (wave * self._hop_shift)
        return spectra

    @staticmethod
    def _overlap(stream: VocoderState, sound: Floats) -> NDArray[np.float32]:
        """Add the vectors' (hops, samples) at their places; row 0 began one hop before this step."""
        total = np.zeros((FRAME_VECTORS + _HOPS - 1, VECTOR_SAMPLES), np.float32)
        total[:_HOPS - 1] = stream.tail
        total[:_HOPS - 1] += sound[0, 1:]
        for k in range(FRAME_VECTORS):
            total[k:k + _HOPS] += sound[k + 1]
        stream.tail = total[FRAME_VECTORS:].copy()
        return total[:FRAME_VECTORS].reshape(-1)


def _band_weights(hz: NDArray[np.float64]) -> Floats:
    """Weight of each band at each frequency, shape (BANDS, len(hz)); at every frequency they add up to 1."""
    above = [np.clip((hz - edge) / _FADE_HZ + 0.5, 0, 1) for edge in _EDGES_HZ]
    steps = [np.ones_like(hz), *(np.sin(0.5 * np.pi * x) ** 2 for x in above), np.zeros_like(hz)]
    return np.stack([steps[i] - steps[i + 1] for i in range(BANDS)]).astype(np.float32)
