"""What is awaited, and for how long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duologue.agent.awaited import ANSWER_WITHIN, REPLY_WITHIN, Awaited, Late


def test_a_request_is_answered_by_a_reply() -> None:
    awaited = Awaited()
    awaited.ask(0)
    awaited.begun(1, 100)
    assert not awaited.asked
    assert awaited.late(ANSWER_WITHIN) is None
    assert awaited.anything
    awaited.written(1)
    assert not awaited.anything


def test_a_request_waits_while_a_reply_is_being_written_and_then_is_late_once() -> None:
    awaited = Awaited()
    awaited.begun(1, 0)
    awaited.ask(10)
    assert awaited.late(10 + ANSWER_WITHIN) is None
    awaited.written(1)
    assert awaited.late(10 + ANSWER_WITHIN) is Late.ANSWER
    assert awaited.late(20 + ANSWER_WITHIN) is None


@given(st.lists(st.sampled_from(["ask", "answered", "begun", "written"])))
def test_nothing_is_awaited_for_ever(order: list[str]) -> None:
    awaited = Awaited()
    for at, what in enumerate(order):
        match what:
            case "ask":
                awaited.ask(at)
            case "answered":
                awaited.answered()
            case "begun":
                awaited.begun(at // 3, at)
            case "written":
                awaited.written(at // 3)
    end = len(order) + REPLY_WITHIN + ANSWER_WITHIN
    for _ in range(2):
        awaited.late(end)
    assert not awaited.anything
