"""What comes between two units, and turn mode, through the duplex thinker over a fake runner."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from duologue.engine import Choice, Unit
from duologue.engine.messages import (
    AppendUnit,
    Inject,
    Instructions,
    Item,
    Respond,
    SessionFailed,
    Tool,
    ToolResult,
    Tools,
)
from duologue.engine.models.duplex.ear import Ear, Hearing
from duologue.engine.runners.base import Embeddings
from duologue.metrics import DROPS, UNANSWERED
from tests.engine.models.duplex.fake_thinker import TOKENIZER, TOKENS, UNIT_SAMPLES, create
from tests.engine.models.duplex.test_thinker import LISTENS, SPEAKS, Session, speaking, unit


def inject(session: Session, item: Item) -> None:
    session.stage.receive(Inject(session.name, session.epoch, item))


def respond(session: Session, instructions: str = "") -> None:
    session.stage.receive(Respond(session.name, session.epoch, instructions))


def turn_based(**options: Any) -> Session:
    """One in whose replies a unit has a few words."""
    return Session(create({"sampling": {"listen_bias": 60, "chunk_eos_bias": 80}, "floor": {"respond_within": 4},
                           **options}), auto_respond=False)


def text(session: Session) -> str:
    return TOKENIZER.decode(session.ids, skip_special_tokens=False)


def test_a_tools_result_stands_between_two_units() -> None:
    session = Session(create({"sampling": LISTENS}))
    session.say()
    inject(session, ToolResult("call", "It <|speak|> rains."))
    session.say()
    assert "<|listen|></unit><|im_start|>tool\nIt <|speak|> rains.<|im_end|><unit>" in text(session)
    assert session.ids.count(TOKENS.speak) == 0


def test_new_instructions_take_the_place_of_the_old_as_when_the_session_is_opened_with_them() -> None:
    session, fresh = (Session(create({"sampling": LISTENS}), instructions=text) for text in ("Be kind.", "Be quick."))
    session.say(2)
    fresh.say(2)
    inject(session, Instructions("Be quick."))
    for each in (session, fresh):
        each.say()
    assert session.ids == fresh.ids
    assert session.decisions[-1].tokens == fresh.decisions[-1].tokens


def test_tools_are_dropped_and_counted_and_it_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    dropped = DROPS.labels(what="tool", reason="not_callable")
    before = dropped._value.get()
    tools = (Tool("get_weather"), Tool("end_call"))
    with caplog.at_level(logging.WARNING):
        session = Session(create({"sampling": LISTENS}), tools=tools)
        inject(session, Tools(tools[:1]))
        inject(session, Tools(()))
        session.say()
    assert dropped._value.get() - before == 3
    assert [record.getMessage() for record in caplog.records] == ["session s has tools, but this model calls none"]
    assert len(session.decisions) == 1


# --- turn mode ----------------------------------------------------------------------------------------------


def test_in_turn_mode_it_speaks_only_when_asked_and_then_in_time() -> None:
    session = turn_based()
    session.say(6)
    assert {each.choice for each in session.decisions} == {Choice.LISTEN}
    respond(session)
    session.say(12)
    # It would rather listen: it is made to speak in the fourth unit, until it has said a word; then it may listen.
    assert [each.tokens[0] for each in session.decisions[6:10]] == [TOKENS.listen] * 3 + [TOKENS.speak]
    assert session.decisions[-1].tokens == (TOKENS.listen,)
    assert len({each.fence.turn for each in session.texts}) == 1
    assert session.texts[-1].last


def test_who_wants_to_speak_does_so_as_soon_as_it_is_asked_and_once() -> None:
    session = turn_based(sampling={"listen_bias": -1, "turn_eos_bias": 40, "chunk_eos_bias": 0})
    session.say(3)
    respond(session)
    session.say(12)
    spoken = [each.unit for each in session.decisions if each.tokens[0] == TOKENS.speak]
    assert spoken == list(range(3, 3 + len(spoken)))
    assert len(spoken) < 12
    assert len({each.fence.turn for each in session.texts}) == 1
    assert session.texts[-1].last


def test_instructions_of_one_reply_stand_before_its_first_unit() -> None:
    session = turn_based()
    session.say()
    respond(session, "Say yes.")
    session.say()
    assert "</unit><|im_start|>system\nSay yes.<|im_end|><unit>" in text(session)


def test_an_interruption_withdraws_the_request_for_a_reply() -> None:
    session = turn_based()
    respond(session)
    session.say()
    session.interrupt()
    session.say(6)
    assert session.texts == []
    # One that was asked for before an interruption, and read after it.
    session.stage.receive(Respond("s", 0))
    session.say(6)
    assert session.texts == []
    respond(session)
    session.say(6)
    assert len(session.texts) > 0


def test_a_request_made_while_a_whole_reply_is_played_outlives_its_cut() -> None:
    session = turn_based()
    respond(session)
    while not (session.texts and session.texts[-1].last):
        session.say()
    first = session.texts[-1].fence.turn
    respond(session)
    session.say()
    session.interrupt(first, "", last_turn=first)
    session.say(8)
    assert {each.fence.turn for each in session.texts} > {first}


# --- units --------------------------------------------------------------------------------------------------


def test_a_caller_who_is_left_unanswered_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    before = UNANSWERED._value.get()
    session = Session(create({"sampling": LISTENS, "floor": {"unanswered_units": 5}}))
    with caplog.at_level(logging.WARNING):
        for speech in (0.0, 0.9, 0.9, *[0.1] * 12):
            given = unit(session.next_unit)
            session.stage.receive(AppendUnit("s", 0, Unit(given.index, given.pcm, speech)))
            session.next_unit += 1
        session.settle()
    assert UNANSWERED._value.get() - before == 1
    assert [record.getMessage() for record in caplog.records] \
        == ["session s: the caller spoke, and the thinker has only listened for 5 units since"]


def test_units_of_many_sessions_are_heard_together(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[int] = []
    plain = Ear.hear

    def hear(ear: Ear, streams: list[Hearing], units: list[Any]) -> list[Embeddings]:
        heard.append(len(streams))
        return plain(ear, streams, units)

    monkeypatch.setattr(Ear, "hear", hear)
    stage = create({"sampling": SPEAKS})
    sessions = [Session(stage, name) for name in "abcd"]
    for session in sessions:
        session.give()
    sessions[0].step()
    assert heard == [4]


def test_half_a_unit_is_heard_by_nobody() -> None:
    session = speaking()
    session.say()
    session.stage.receive(AppendUnit("s", 0, Unit(1, np.zeros(UNIT_SAMPLES // 2, np.int16), 0.0)))
    session.settle()
    (failed,) = (each for each in session.out if isinstance(each, SessionFailed))
    assert failed.detail == f"ValueError: a unit is {UNIT_SAMPLES} samples, but unit 1 has {UNIT_SAMPLES // 2}"
