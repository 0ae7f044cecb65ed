"""The reply on its way to the caller's ear: ordered, pausable, and gone within one frame when flushed.

The playhead counts the samples of a reply that were handed out; nothing else knows what the caller heard.
Where a reply is cut, held or taken up again, a ramp of a few milliseconds keeps it from clicking; samples
handed out within a ramp count as played, and none is lost or given twice.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field

import numpy as np

from duologue.engine import Pcm
from duologue.metrics import DROPS

MAX_BUFFERED_S = 180
"""Seconds of replies that may wait. Of a reply that would need more, the rest is dropped and counted."""

DUCKED_GAIN = 10 ** (-12 / 20)
"""Gain of a ducked reply: 12 dB below its own level."""

_FADE_MS = 5  # too short to hear as a fade, long enough not to click
_DUCK_MS = 20
_MAX_REPLIES = 16  # that wait, and whose playheads are remembered


@dataclass(frozen=True, slots=True)
class Piece:
    """Samples [start, end) of what was pulled are reply ``turn``'s."""

    turn: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Pulled:
    """What one pull gave: ``pcm`` as long as asked for, and the turns whose first and last sample it held.

    A turn without any samples is finished, never started. A turn that was flushed is never finished.
    """

    pcm: Pcm
    started: tuple[int, ...] = ()
    finished: tuple[int, ...] = ()
    pieces: tuple[Piece, ...] = ()
    """Where the replies lie in ``pcm``, in order; the few samples in which a flushed one fades belong to none."""


@dataclass(slots=True)
class _Reply:
    turn: int
    chunks: deque[Pcm] = field(default_factory=deque)
    waiting: int = 0
    played: int = 0
    sealed: bool = False

    def take(self, count: int) -> Pcm:
        """Remove the next ``count`` samples, or all there are."""
        pieces: list[Pcm] = []
        while count > 0 and self.chunks:
            chunk = self.chunks.popleft()
            if chunk.size > count:
                self.chunks.appendleft(chunk[count:])
                chunk = chunk[:count]
            pieces.append(chunk)
            count -= chunk.size
            self.waiting -= chunk.size
            self.played += chunk.size
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)


class Playout:
    """Replies at ``rate`` Hz, mono int16, one after another."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.underruns = 0
        """Times a reply ran dry before its end and went on later."""
        self._replies: deque[_Reply] = deque()
        self._heard: OrderedDict[int, int] = OrderedDict()
        self._newest = -1
        self._tail: _Reply | None = None  # the last few samples of a reply that was flushed
        self._fade = rate * _FADE_MS // 1000
        self._gain = self._target = 1.0
        self._slope = 1 / self._fade  # change of gain per sample on the way to the target
        self._paused = self._starved = self._audible = False

    @property
    def buffered(self) -> int:
        """Samples that wait to be played."""
        return sum(reply.waiting for reply in self._replies) + (self._tail.waiting if self._tail else 0)

    @property
    def sounding(self) -> bool:
        """Whether the next pull holds any sample of a reply."""
        return not self._paused and bool(self._replies) and self._replies[0].waiting > 0

    @property
    def paused(self) -> bool:
        """Whether the reply is being held."""
        return self._paused

    @property
    def audible(self) -> bool:
        """Whether the last pull held any sample of a reply."""
        return self._audible

    def playhead(self, turn: int) -> int:
        """Samples of a reply that were handed out; 0 for one that is not known (any more)."""
        return self._heard.get(turn, 0)

    # --- the reply comes in ---------------------------------------------------------------------------------

    def enqueue(self, turn: int, first_sample: int, pcm: Pcm, last: bool) -> bool:
        """Add a chunk of a reply, int16, shape (n,); ``last`` says that it is the end of it.

        Returns False when the chunk was dropped, counted in ``DROPS`` as ``reply_audio`` with the reason
        ``stale`` (the reply is over, was flushed, or a newer one has begun), ``gap`` (it does not follow the
        last chunk) or ``full``. After a gap, and when it is full, the reply ends with what it has: a hole in
        the middle would make the playhead lie.
        """
        if turn > self._newest and len(self._replies) >= _MAX_REPLIES:
            return self._refuse("full")
        reply = self._reply(turn)
        if reply is None or reply.sealed:
            return self._refuse("stale")
        if first_sample != reply.played + reply.waiting:
            reply.sealed = True
            return self._refuse("gap")
        if self.buffered + pcm.size > MAX_BUFFERED_S * self.rate:
            reply.sealed = True
            return self._refuse("full")
        if pcm.size:
            if self._starved and reply is self._replies[0]:
                self.underruns += 1
                self._starved = False
            reply.chunks.append(pcm)
            reply.waiting += pcm.size
        reply.sealed = last
        return True

    def seal(self, turn: int) -> None:
        """Say that no more of a reply will come: it ends with what it has. Unknown turns are ignored."""
        for reply in self._replies:
            if reply.turn == turn:
                reply.sealed = True

    def _reply(self, turn: int) -> _Reply | None:
        """Find the reply a chunk belongs to; a newer one than all before seals those, and is begun."""
        if turn > self._newest:
            for reply in self._replies:
                reply.sealed = True
            self._newest = turn
            self._replies.append(_Reply(turn))
        return next((reply for reply in self._replies if reply.turn == turn), None)

    @staticmethod
    def _refuse(reason: str) -> bool:
        DROPS.labels(what="reply_audio", reason=reason).inc()
        return False

    # --- how it is played -----------------------------------------------------------------------------------

    def pause(self) -> None:
        """Hold the reply: the next pull fades it out within its frame, later ones are silent."""
        self._paused = True

    def resume(self) -> None:
        """Go on where the reply was held, fading in."""
        self._paused = False
        self._slope = 1 / self._fade

    def duck(self) -> None:
        """Lower the reply by 12 dB, over 20 ms."""
        self._aim(DUCKED_GAIN)

    def unduck(self) -> None:
        """Raise the reply to its own level, over 20 ms."""
        self._aim(1.0)

    def flush(self) -> None:
        """Drop everything. A reply that is sounding fades out over at most 5 ms of the next frame.

        Pause and duck are over with it: the next reply is played at its own level.
        """
        if self._replies and self._replies[0].played and self._gain > 0:
            reply = self._replies[0]
            played, fading = reply.played, reply.take(self._fade)
            self._tail = _Reply(reply.turn, deque([fading]), fading.size, played)
        self._replies.clear()
        self._paused = self._starved = False
        self._target = 1.0

    def _aim(self, gain: float) -> None:
        self._target = gain
        self._slope = (1 - DUCKED_GAIN) * 1000 / (_DUCK_MS * self.rate)

    # --- the reply goes out ---------------------------------------------------------------------------------

    def pull(self, count: int) -> Pulled:
        """Give exactly ``count`` samples, of replies where there are any, else of silence."""
        out = np.zeros(count, np.int16)
        started: list[int] = []
        finished: list[int] = []
        pieces: list[Piece] = []
        filled = 0
        if self._tail is not None:
            filled += self._fade_out(self._tail, out)
            self._tail = None
        self._retire(finished)
        while filled < count and self._replies:
            reply, start = self._replies[0], filled
            if self._paused:
                if reply.played and self._gain:
                    filled += self._fade_out(reply, out[filled:])
                    pieces.append(Piece(reply.turn, start, filled))
                break
            if not reply.waiting:
                self._starve(reply)
                break
            if not reply.played:
                started.append(reply.turn)
                self._gain = self._target
            filled += self._play(reply, out[filled:])
            pieces.append(Piece(reply.turn, start, filled))
            self._retire(finished)
        self._retire(finished)
        self._audible = filled > 0
        return Pulled(out, tuple(started), tuple(finished), tuple(pieces))

    def _retire(self, finished: list[int]) -> None:
        """Take leave of replies that have nothing more to play."""
        while self._replies and self._replies[0].sealed and not self._replies[0].waiting:
            finished.append(self._replies.popleft().turn)

    def _starve(self, reply: _Reply) -> None:
        """Take note that a reply has begun and there is no more of it: what comes next fades in."""
        if reply.played:
            self._starved = True
            self._gain, self._slope = 0.0, 1 / self._fade

    def _play(self, reply: _Reply, space: Pcm) -> int:
        """Play into ``space``, moving the gain towards its target; returns the samples played."""
        piece = self._hand_out(reply, space.size)
        count = piece.size
        runs_dry = count < space.size and not reply.sealed
        if self._gain == self._target and not runs_dry:
            gains = np.full(count, self._gain) if self._gain != 1.0 else None
        else:
            way = self._slope * np.arange(1, count + 1)
            gains = (np.minimum(self._gain + way, self._target) if self._gain < self._target
                     else np.maximum(self._gain - way, self._target))
            self._gain = float(gains[-1])
            if runs_dry:
                fade = min(self._fade, count)
                gains[-fade:] *= 1 - np.arange(1, fade + 1) / fade
        space[:count] = piece if gains is None else piece * gains
        return count

    def _fade_out(self, reply: _Reply, space: Pcm) -> int:
        """Play a few more milliseconds into ``space``, down to nothing; returns the samples played."""
        piece = self._hand_out(reply, min(self._fade, space.size))
        space[:piece.size] = piece * (self._gain * (1 - np.arange(1, piece.size + 1) / max(piece.size, 1)))
        self._gain = 0.0
        return piece.size

    def _hand_out(self, reply: _Reply, count: int) -> Pcm:
        piece = reply.take(count)
        self._heard[reply.turn] = reply.played
        self._heard.move_to_end(reply.turn)
        while len(self._heard) > _MAX_REPLIES:
            self._heard.popitem(last=False)
        return piece
