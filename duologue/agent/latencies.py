"""A call's two latencies, in the caller's time: to the reply, and to silence."""

from __future__ import annotations

from duologue import metrics
from duologue.agent.transports.base import FRAME_MS
from duologue.engine import INPUT_RATE

_PER_MS = INPUT_RATE // 1000


class Latencies:
    """Measures; positions are the caller's samples (16 kHz)."""

    def __init__(self) -> None:
        self._caller_done_at: int | None = None
        self._pause_ms = 0

    def caller_done(self, at: int) -> None:
        """The caller fell silent and a reply may follow."""
        self._caller_done_at = at

    def reply_heard(self, now: int) -> int | None:
        """A reply's first sample goes out; returns the milliseconds it was waited for, if it was."""
        since, self._caller_done_at = self._caller_done_at, None
        if since is None:
            return None
        metrics.VOICE_TO_VOICE_SECONDS.observe((now - since) / INPUT_RATE)
        return (now - since) // _PER_MS

    def paused(self, onset_at: int, now: int, ahead_ms: int) -> None:
        """An onset paused the reply, of which ``ahead_ms`` are on their way to the ear and cannot be held."""
        self._pause_ms = (now - onset_at) // _PER_MS + FRAME_MS + ahead_ms

    def stopped(self, onset_at: int, now: int, *, was_paused: bool) -> int:
        """Speech has cut the reply; returns the milliseconds from its onset to silence."""
        stop_ms = self._pause_ms if was_paused else (now - onset_at) // _PER_MS + FRAME_MS
        metrics.STOP_SECONDS.observe(stop_ms / 1000)
        return stop_ms
