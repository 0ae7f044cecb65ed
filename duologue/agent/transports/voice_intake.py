"""The caller's packets become samples: the receive path between RTP and a call."""

from __future__ import annotations

from collections.abc import Callable

from duologue.agent.media.codec import Decoder
from duologue.agent.media.receive import ReceivePath
from duologue.agent.transports.base import CallMedia
from duologue.agent.transports.rtp import RtpPacket


class VoiceIntake:
    """Feeds a call from RTP packets; ``decoder`` gives 16 kHz, ``now_s`` the seconds of any steady clock."""

    def __init__(self, call: CallMedia, decoder: Decoder, now_s: Callable[[], float]) -> None:
        self._call = call
        self._now_s = now_s
        self._path = ReceivePath(decoder)

    def take(self, packet: RtpPacket) -> None:
        """Take one packet of the decoder's codec."""
        now_ms = self._now_s() * 1000
        self._path.insert(packet.sequence_number, packet.timestamp, packet.payload, now_ms, packet.ssrc)
        self._feed(now_ms)

    def tick(self) -> None:
        """Give up what has been waited for long enough; to be called every 20 ms."""
        self._feed(self._now_s() * 1000)

    def _feed(self, now_ms: float) -> None:
        for received in self._path.pull(now_ms):
            self._call.feed(received.pcm, received.concealed)
