"""Offline audio for tests: resampling, where sound begins and ends, where one signal lies in another.

All signals are mono, shape (n,), float32 with full scale 1.0 unless said otherwise; positions are samples.
"""

from __future__ import annotations

import wave
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Sound = NDArray[np.float32]
"""Mono samples, shape (n,), full scale 1.0."""

RATE = 48_000
"""Sample rate, in Hz, of microphones and recordings here: what WebRTC's Opus uses (RFC 7587)."""

AUDIBLE_DB = -50.0
"""Level, in dB of full scale over 5 ms, above which a received signal counts as sound.

Decoded Opus silence lies below -70 dB, the quietest vowels of the voices used above -40 dB.
"""


@dataclass(frozen=True, slots=True)
class Span:
    """Samples [start, end)."""

    start: int
    end: int


def to_pcm(sound: Sound) -> NDArray[np.int16]:
    """Round to int16, clipped."""
    pcm: NDArray[np.int16] = np.clip(np.rint(sound * 32767.0), -32768, 32767).astype(np.int16)
    return pcm


def from_pcm(pcm: NDArray[np.int16]) -> Sound:
    """Scale int16 samples to full scale 1.0."""
    return (pcm.astype(np.float32) / 32767.0).astype(np.float32)


def read_wav(path: Path) -> tuple[Sound, int]:
    """Read a 16-bit mono wav; returns its samples and its rate in Hz."""
    with wave.open(str(path), "rb") as file:
        if file.getnchannels() != 1 or file.getsampwidth() != 2:
            raise ValueError(f"{path} is not 16-bit mono")
        return from_pcm(np.frombuffer(file.readframes(file.getnframes()), np.int16)), file.getframerate()


def write_wav(path: Path, sound: Sound, rate: int = RATE) -> None:
    """Write a 16-bit mono wav."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(to_pcm(sound).tobytes())


def resample(sound: Sound, rate: int, to: int) -> Sound:
    """Change the rate by cutting or padding the spectrum: exact in time and, offline, cheap enough."""
    if rate == to or not sound.size:
        return sound
    guard = rate // 10
    padded = np.concatenate([np.zeros(guard), sound, np.zeros(guard)])
    padded = np.concatenate([padded, np.zeros(-padded.size % rate)])
    size = padded.size * to // rate
    spectrum = np.fft.rfft(padded)
    bins = size // 2 + 1
    kept = np.zeros(bins, spectrum.dtype)
    kept[: min(bins, spectrum.size)] = spectrum[:bins]
    wide = np.fft.irfft(kept, size) * (to / rate)
    start = guard * to // rate
    return wide[start : start + sound.size * to // rate].astype(np.float32)


def levels(sound: Sound, rate: int = RATE, window_ms: int = 5) -> NDArray[np.float64]:
    """RMS level of each whole window, in dB of full scale."""
    step = rate * window_ms // 1000
    windows = sound[: sound.size // step * step].reshape(-1, step).astype(np.float64)
    power: NDArray[np.float64] = np.mean(windows**2, axis=1)
    return 10.0 * np.log10(power + 1e-12)


def spans(sound: Sound, rate: int = RATE, *, gap_ms: int = 300, floor_db: float = AUDIBLE_DB) -> list[Span]:
    """Stretches of sound; quiet shorter than ``gap_ms`` does not end one. Exact to 5 ms."""
    step = rate * 5 // 1000
    found: list[Span] = []
    for index in np.flatnonzero(levels(sound, rate) > floor_db):
        start, end = int(index) * step, (int(index) + 1) * step
        if found and start - found[-1].end < rate * gap_ms // 1000:
            found[-1] = Span(found[-1].start, end)
        else:
            found.append(Span(start, end))
    return found


def trim(sound: Sound, rate: int, floor_db: float = -45.0) -> Sound:
    """Cut the quiet off both ends, so that a sound's ends are where it is really heard."""
    heard = spans(sound, rate, floor_db=floor_db)
    return sound[heard[0].start : heard[-1].end] if heard else sound[:0]


def first_sound(sound: Sound, after: int, rate: int = RATE) -> int | None:
    """Where sound is heard first at or after sample ``after``; None if it never is."""
    found = spans(sound[after:], rate)
    return after + found[0].start if found else None


def end_of_sound(sound: Sound, after: int, rate: int = RATE, *, quiet_ms: int = 300) -> int:
    """End of the sound that goes on at ``after``: where at least ``quiet_ms`` of quiet begin."""
    found = spans(sound[after:], rate, gap_ms=quiet_ms)
    begins = found and found[0].start < rate * quiet_ms // 1000
    return after + found[0].end if begins else after


def locate(needle: Sound, hay: Sound, around: Span | None = None) -> tuple[int, float]:
    """Where ``needle`` fits best in ``hay`` (inside ``around`` if given) and how well, 0..1.

    The fit is the normalised cross-correlation at the best place. Both must have the same rate.
    """
    base = 0 if around is None else max(around.start, 0)
    room = hay[base:] if around is None else hay[base : around.end]
    if room.size < needle.size:
        return base, 0.0
    size = 1 << int(np.ceil(np.log2(room.size + needle.size)))
    dot = np.fft.irfft(np.fft.rfft(room, size) * np.conj(np.fft.rfft(needle, size)), size)
    dot = dot[: room.size - needle.size + 1]
    power = np.concatenate([[0.0], np.cumsum(room.astype(np.float64) ** 2)])
    energy = power[needle.size :] - power[: -needle.size]
    own = float(np.sum(needle.astype(np.float64) ** 2))
    # A hundredth of the needle's energy as floor: silence must not win by a division by nearly nothing.
    fit = dot / np.sqrt(np.maximum(energy, own / 100.0) * own)
    best = int(np.argmax(fit))
    return base + best, float(fit[best])
