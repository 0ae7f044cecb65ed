from __future__ import annotations

from duologue.engine import Fence, ReplyText
from duologue.engine.connectors import Gate


def text(start: int, *, turn: int = 0, epoch: int = 0, last: bool = False) -> ReplyText:
    return ReplyText(Fence("s", epoch, turn, start), start, "x", last)


def test_a_reply_passes_when_it_is_whole() -> None:
    gate = Gate()
    assert gate.admit(text(0)) == gate.admit(text(1)) == []
    assert gate.admit(text(2, last=True)) == [text(0), text(1), text(2, last=True)]
    assert gate.admit(text(0, turn=1, last=True)) == [text(0, turn=1, last=True)]


def test_an_interrupted_reply_never_passes() -> None:
    gate = Gate()
    gate.admit(text(0))
    gate.admit(text(1))
    assert gate.raise_epoch(1) == 2
    assert gate.admit(text(0, epoch=1, last=True)) == [text(0, epoch=1, last=True)]


def test_a_reply_that_was_given_up_makes_way_for_the_next() -> None:
    gate = Gate()
    gate.admit(text(0))
    assert gate.admit(text(0, turn=1)) == []
    assert gate.admit(text(1, turn=1, last=True)) == [text(0, turn=1), text(1, turn=1, last=True)]
