"""G.722 (ITU-T) at 64 kbit/s, by FFmpeg: 7 kHz of speech in the bytes of G.711."""

from __future__ import annotations

import numpy as np
from av import AudioFrame, CodecContext
from av.audio.codeccontext import AudioCodecContext
from av.error import FFmpegError
from av.packet import Packet

from duologue.agent.media.codec import MalformedPacketError
from duologue.engine import Pcm

RATE = 16_000
"""Sample rate, in Hz. RTP timestamps count at 8000 all the same (RFC 3551 section 4.5.2)."""


def _context(mode: str) -> AudioCodecContext:
    context = CodecContext.create("g722", "r" if mode == "r" else "w")
    assert isinstance(context, AudioCodecContext)
    context.sample_rate = RATE
    context.layout = "mono"
    context.format = "s16"
    return context


class G722:
    """Codes and decodes one stream each way."""

    rate = RATE

    def __init__(self) -> None:
        self._reader = _context("r")
        self._writer = _context("w")

    def decode(self, payload: bytes) -> Pcm:
        """Two samples a byte; raises :class:`MalformedPacketError`."""
        try:
            frames = self._reader.decode(Packet(payload))
        except FFmpegError as fault:
            raise MalformedPacketError(f"G.722 payload of {len(payload)} bytes: {fault}") from fault
        pieces = [np.asarray(frame.to_ndarray(), np.int16).reshape(-1) for frame in frames]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)

    def encode(self, pcm: Pcm) -> bytes:
        """One byte for two samples; takes 20 ms at a time, as FFmpeg's coder holds back what is shorter."""
        frame = AudioFrame.from_ndarray(np.ascontiguousarray(pcm).reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = RATE
        return b"".join(bytes(packet) for packet in self._writer.encode(frame))

    def reset(self) -> None:
        """Forget the stream that was decoded."""
        self._reader = _context("r")
