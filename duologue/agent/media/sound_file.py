"""Sound as a file that is written while it is made, in the formats of OpenAI's speech endpoint, by FFmpeg (PyAV)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import av
from av.audio.stream import AudioStream

from duologue.engine import Pcm


@dataclass(frozen=True, slots=True)
class SoundFormat:
    """A kind of file."""

    mime: str
    container: str
    """FFmpeg's name of the container, and of the codec."""
    codec: str
    rate: int | None = None
    """Its only sample rate, in Hz; None: that of the sound."""
    options: Mapping[str, str] = field(default_factory=dict)
    """FFmpeg's options of the container."""


FORMATS: Mapping[str, SoundFormat] = {
    "mp3": SoundFormat("audio/mpeg", "mp3", "libmp3lame"),
    # Pages of a second, which are FFmpeg's own, would hold the first sound back (page_duration is in microseconds).
    "opus": SoundFormat("audio/ogg", "ogg", "libopus", options={"page_duration": "100000"}),
    "aac": SoundFormat("audio/aac", "adts", "aac"),
    "flac": SoundFormat("audio/flac", "flac", "flac"),
    "wav": SoundFormat("audio/wav", "wav", "pcm_s16le"),
    # OpenAI's: without a header its rate is a matter of agreement.
    "pcm": SoundFormat("audio/pcm", "s16le", "pcm_s16le", 24_000),
}


class _Sink:
    """What FFmpeg writes to; it cannot go back, so lengths that only the end knows are left open in headers."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def take(self) -> bytes:
        taken, self._written = bytes(self._written), bytearray()
        return taken


class SoundFile:
    """One file of mono sound at ``rate`` Hz: give it samples, get bytes."""

    def __init__(self, kind: SoundFormat, rate: int) -> None:
        self._rate = rate
        self._sink = _Sink()
        self._container = av.open(self._sink, "w", format=kind.container, options=dict(kind.options))
        self._stream = cast(AudioStream, self._container.add_stream(kind.codec, rate=kind.rate or rate))
        self._stream.layout = "mono"
        self._samples = 0

    def add(self, pcm: Pcm) -> bytes:
        """Take samples, int16, shape (n,), n > 0; returns what can be written of the file now."""
        frame = av.AudioFrame.from_ndarray(pcm[None], format="s16", layout="mono")
        frame.sample_rate = self._rate
        frame.pts = self._samples
        self._samples += len(pcm)
        self._container.mux(self._stream.encode(frame))
        return self._sink.take()

    def finish(self) -> bytes:
        """The rest of the file; nothing can be added after it."""
        self._container.mux(self._stream.encode(None))
        self._container.close()
        return self._sink.take()
