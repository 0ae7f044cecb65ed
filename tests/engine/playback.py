"""A producer of codec frames, a decoder and a player on a virtual clock, with a real planner between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from duologue.engine.chunking import ChunkPlanner, Window


@dataclass(frozen=True, slots=True)
class Played:
    """What the listener got; times in seconds from the reply's begin."""

    first_audio_s: float
    stalls: tuple[float, ...]
    """Each silence after the first chunk, and how long it was."""
    windows: tuple[Window, ...]


def play(planner: ChunkPlanner, arrivals: Sequence[float], frame_s: float,
         cost_s: Callable[[Window], float], delay_s: float = 0.0) -> Played:
    """Play frames that arrive at ``arrivals`` (rising; the last one says that it is the last).

    The decoder decodes one window at a time, as soon as the planner gives it one, and ``cost_s`` is how long that
    takes. The player begins ``delay_s`` after the first chunk, plays what it has, and waits when it has nothing.
    """
    now, arrived = 0.0, 0
    first = ends = None
    stalls: list[float] = []
    windows: list[Window] = []
    while not planner.done:
        while arrived < len(arrivals) and arrivals[arrived] <= now:
            planner.push(1)
            arrived += 1
        if arrived == len(arrivals):
            planner.finish()
        if (window := planner.cut(now)) is None:
            due = planner.due()
            now = min(time for time in (due, *arrivals[arrived:arrived + 1]) if time is not None)
            continue
        now += cost_s(window)
        planner.sent(now)
        windows.append(window)
        if first is None or ends is None:
            first, ends = now, now + delay_s
        elif now > ends:
            stalls.append(now - ends)
            ends = now
        ends += window.frames * frame_s
    return Played(first or 0.0, tuple(stalls), tuple(windows))
