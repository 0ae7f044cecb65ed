"""What the receive path needs of an audio codec."""

from __future__ import annotations

from typing import Protocol

from duologue.engine import Pcm


class MalformedPacketError(Exception):
    """A payload is not what its codec makes; the receive path conceals the time it stood for."""


class Decoder(Protocol):
    """Decodes one stream's payloads, in order, to mono int16; carries the state concealment continues."""

    @property
    def rate(self) -> int:
        """Sample rate, in Hz, of what it gives."""

    @property
    def clock(self) -> int:
        """Rate, in Hz, at which the stream's RTP timestamps count."""

    def samples(self, payload: bytes) -> int:
        """Samples the payload decodes to; raises :class:`MalformedPacketError`."""

    def decode(self, payload: bytes) -> Pcm:
        """Decode one payload; raises :class:`MalformedPacketError`, after which it can go on."""

    def fec_samples(self, payload: bytes) -> int:
        """Samples just before this payload's own that can be restored from it; 0 when it carries no copy."""

    def decode_fec(self, payload: bytes, samples: int) -> Pcm:
        """Restore exactly ``samples`` just before ``payload``; raises :class:`MalformedPacketError`."""

    def conceal(self, samples: int) -> Pcm:
        """Make up exactly ``samples`` that continue what was decoded last."""

    def reset(self) -> None:
        """Forget the stream: the next payload is the first of another."""
