"""How fast a reply is sent: as it is heard, a little ahead of what can have been played of it. No I/O, no clock."""

from __future__ import annotations

from duologue.agent.transports.base import FRAME_MS, EventMedia, Speak
from duologue.engine import Pcm

LEAD_MS = 200
"""How far ahead. It covers a client whose loop or network is held up for a moment; and for so long a paused reply is
still heard, for the client knows nothing of a pause."""


class Pace:
    """One call's. A client that plays what it gets at once is never more than ``LEAD_MS`` behind it."""

    def __init__(self, call: EventMedia, out: Speak) -> None:
        self._call = call
        self._out = out
        self._frame = call.output_rate * FRAME_MS // 1000
        self._lead = call.output_rate * LEAD_MS // 1000
        self._ahead = 0
        """Samples sent that cannot have been played yet."""

    def pass_time(self, frames: int) -> None:
        """Let ``frames`` of 20 ms pass, and send what is due."""
        self._ahead = max(0, self._ahead - frames * self._frame)
        self._call.speak(self._ahead, self._sent)
        while self._call.sounding and self._ahead < self._lead:
            self._call.speak(self._ahead, self._sent)

    def _sent(self, response_id: str, item_id: str, pcm: Pcm) -> None:
        self._ahead += pcm.size
        self._out(response_id, item_id, pcm)
