"""A reply's audio, handed on as fast as it is heard, so that it can stop within a few frames."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator

from livekit import rtc

LEAD_S = 0.1
"""What may wait in the framework's own queue, which a pause does not reach: one of its 50 ms frames, and as much again
for a loop that is busy for a moment."""

_PIECE_MS = 20


class Valve:
    """Whether a reply's audio may go on: open, held, or shut for good."""

    def __init__(self) -> None:
        self._passable = asyncio.Event()
        self._passable.set()
        self._shut = False

    @property
    def is_shut(self) -> bool:
        """Whether it was shut."""
        return self._shut

    def hold(self) -> None:
        """Let nothing through for now."""
        if not self._shut:
            self._passable.clear()

    def release(self) -> None:
        """Let it go on."""
        self._passable.set()

    def shut(self) -> None:
        """End it: the rest is never heard."""
        self._shut = True
        self._passable.set()

    async def opened(self) -> bool:
        """Wait while it is held; False if it is shut."""
        await self._passable.wait()
        return not self._shut


class Pacer:
    """When the next piece of a reply is due, by a clock in seconds that the caller reads."""

    def __init__(self) -> None:
        self._runs_out = 0.0
        """When the listener will have heard all that was given."""

    def wait(self, now: float) -> float:
        """Seconds until the next piece is due; never negative."""
        return max(0.0, self._runs_out - LEAD_S - now)

    def gave(self, now: float, duration: float) -> None:
        """A piece of ``duration`` seconds was handed on at ``now``."""
        self._runs_out = max(self._runs_out, now) + duration


def pieces(frame: rtc.AudioFrame) -> list[rtc.AudioFrame]:
    """Cut a mono frame of any length into frames of at most 20 ms."""
    step = frame.sample_rate * _PIECE_MS // 1000
    return [
        rtc.AudioFrame(part.tobytes(), frame.sample_rate, 1, len(part))
        for part in (frame.data[at:at + step] for at in range(0, frame.samples_per_channel, step))
    ]


async def paced(frames: AsyncIterable[rtc.AudioFrame], valve: Valve) -> AsyncIterator[rtc.AudioFrame]:
    """Hand ``frames`` on in real time, as far as ``valve`` lets them through."""
    pacer, loop = Pacer(), asyncio.get_running_loop()
    async for frame in frames:
        for piece in pieces(frame):
            await asyncio.sleep(pacer.wait(loop.time()))
            if not await valve.opened():
                return
            pacer.gave(loop.time(), piece.duration)
            yield piece
