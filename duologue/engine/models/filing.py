"""What a stage that speaks keeps of its sessions: the replies that wait in each, and whose turn it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from duologue.engine.messages import (
    Close,
    CodecFrames,
    Fence,
    Hold,
    Interrupt,
    Open,
    ReplyText,
    StageInput,
)
from duologue.metrics import DROPS

_M_contra = TypeVar("_M_contra", contravariant=True)


class Reply(Protocol[_M_contra]):
    """One reply on its way through a stage."""

    def add(self, message: _M_contra) -> None:
        """Take the next piece of it."""

    @property
    def ready(self) -> bool:
        """Whether there is work to do on it now."""


_M = TypeVar("_M", bound=ReplyText | CodecFrames)
_R = TypeVar("_R", bound=Reply[Any])


class _Session(Generic[_R]):
    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.held = False
        self.replies: dict[int, _R] = {}
        self.spoken = -1
        """The last turn that has been said to its end."""

    @property
    def current(self) -> _R | None:
        """The reply whose turn it is: they are said one after the other."""
        return None if self.held else next(iter(self.replies.values()), None)


class Filing(Generic[_M, _R]):
    """Files the messages of a stage whose input is of the type ``kind``; ``begin`` makes a reply of its first one."""

    def __init__(self, kind: type[_M], begin: Callable[[_M], _R]) -> None:
        self._kind = kind
        self._begin = begin
        self._sessions: dict[str, _Session[_R]] = {}

    def receive(self, message: StageInput) -> None:
        """File a message; what is of an older epoch, or of a reply already said, is dropped."""
        if isinstance(message, Open):
            self._sessions[message.session] = _Session(message.epoch)
        elif isinstance(message, Close):
            self._sessions.pop(message.session, None)
        elif isinstance(message, Interrupt):
            if session := self._sessions.get(message.session):
                session.epoch = message.epoch
                session.replies.clear()
        elif isinstance(message, Hold):
            if session := self._sessions.get(message.session):
                session.held = message.held
        elif isinstance(message, self._kind):
            self._add(message)

    def _add(self, message: _M) -> None:
        fence = message.fence
        session = self._sessions.get(fence.session)
        if session is None:
            return
        if fence.epoch != session.epoch or fence.turn <= session.spoken:
            _count_stale(message)
            return
        if fence.turn not in session.replies:
            session.replies[fence.turn] = self._begin(message)
        session.replies[fence.turn].add(message)

    @property
    def ready(self) -> bool:
        """Whether there is work to do for any session."""
        return any(reply.ready for reply in self.current())

    def current(self) -> Iterator[_R]:
        """The reply of each session whose turn it is, those first that have waited longest."""
        return (reply for session in self._sessions.values() if (reply := session.current) is not None)

    def find(self, session: str) -> _R | None:
        """The reply of ``session`` whose turn it is, be it held or not."""
        filed = self._sessions.get(session)
        return next(iter(filed.replies.values()), None) if filed else None

    def take(self, most: int | None = None) -> list[_R]:
        """The replies there is work for, of ``most`` sessions, which go to the end of the row."""
        names = list(islice((name for name, session in self._sessions.items()
                             if (reply := session.current) is not None and reply.ready), most))
        taken = []
        for name in names:
            session = self._sessions.pop(name)
            self._sessions[name] = session
            taken.append(next(iter(session.replies.values())))
        return taken

    def end(self, fence: Fence) -> None:
        """Note that a reply has been said to its end."""
        session = self._sessions[fence.session]
        del session.replies[fence.turn]
        session.spoken = fence.turn


def _count_stale(message: ReplyText | CodecFrames) -> None:
    if isinstance(message, CodecFrames):
        DROPS.labels(what="codec_frames", reason="stale").inc(len(message.frames))
    else:
        DROPS.labels(what="reply_text", reason="stale").inc()
