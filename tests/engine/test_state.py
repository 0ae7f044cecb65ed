"""The session's rules, one by one."""

from __future__ import annotations

import pytest

from duologue.engine import (
    CallerText,
    CallerWords,
    Choice,
    Decision,
    Health,
    ReplyAudio,
    ReplyText,
    TurnEnd,
    TurnStatus,
    outbox,
)
from duologue.engine.messages import CodecFrames
from duologue.engine.replies import CONTINUE_WITHIN_S
from duologue.engine.state import Overrun
from duologue.engine.wire import FromStage
from tests.engine.scripted import UNIT_MS, WORD_SAMPLES, Order, pipeline, unit
from tests.engine.simulation import PLACEMENTS, Simulation, ends, say, spoken


@pytest.fixture(params=PLACEMENTS, ids=["-".join(p) for p in PLACEMENTS])
def sim(request: pytest.FixtureRequest) -> Simulation:
    return Simulation(pipeline(*request.param))


def test_a_reply_has_its_words_its_audio_and_one_end(sim: Simulation) -> None:
    say(sim, Order.LISTEN, Order.SPEAK, Order.SPEAK, Order.FINISH, Order.LISTEN)
    sim.settle()
    assert spoken(sim, 0) == [0, 1, 2]
    assert ends(sim) == [TurnEnd(sim.state.session, 0, 0, TurnStatus.DONE, "w0 w1 w2 ")]
    assert [e.choice for e in sim.events if isinstance(e, Decision)] == [
        Choice.LISTEN, Choice.SPEAK, Choice.SPEAK, Choice.SPEAK, Choice.LISTEN]


def test_an_interruption_ends_the_reply_at_what_was_heard(sim: Simulation) -> None:
    say(sim, Order.SPEAK, Order.SPEAK, Order.SPEAK)
    sim.settle()
    assert sim.state.interrupt(0, WORD_SAMPLES + 3 * WORD_SAMPLES // 4) == "w0 w1 "
    sim.collect()
    say(sim, Order.RECALL)
    sim.settle()
    assert ends(sim) == [TurnEnd(sim.state.session, 1, 0, TurnStatus.INTERRUPTED, "w0 w1 ")]
    assert [e.text for e in sim.events if isinstance(e, CallerWords)] == ["AgentSaid:w0 w1 "]


def test_a_word_that_was_heard_by_less_than_three_quarters_was_not_heard(sim: Simulation) -> None:
    say(sim, Order.SPEAK, Order.SPEAK)
    sim.settle()
    assert sim.state.interrupt(0, WORD_SAMPLES + 3 * WORD_SAMPLES // 4 - 1) == "w0 "


def test_a_reply_that_is_done_can_be_cut_without_a_second_end(sim: Simulation) -> None:
    say(sim, Order.SPEAK, Order.FINISH)
    sim.settle()
    assert sim.state.interrupt(0, WORD_SAMPLES) == "w0 "
    sim.collect()
    say(sim, Order.RECALL)
    sim.settle()
    assert [end.status for end in ends(sim)] == [TurnStatus.DONE]
    assert sim.events[-2] == CallerWords(sim.state.session, 0, "AgentSaid:w0 w1  | AgentSaid:w0 ", True, 2, 2)


def test_cutting_a_reply_twice_changes_nothing(sim: Simulation) -> None:
    say(sim, Order.SPEAK, Order.SPEAK)
    sim.settle()
    assert sim.state.interrupt(0, WORD_SAMPLES) == "w0 "
    epoch = sim.state.epoch
    assert sim.state.interrupt(0, 2 * WORD_SAMPLES) == "w0 "
    assert sim.state.epoch == epoch


def test_what_was_cut_stays_cut_when_an_unknown_reply_is_interrupted(sim: Simulation) -> None:
    say(sim, Order.SPEAK, Order.SPEAK)
    sim.settle()
    assert sim.state.interrupt(0, WORD_SAMPLES) == "w0 "
    assert sim.state.interrupt(99, 0) == ""
    sim.collect()
    say(sim, Order.RECALL)
    sim.settle()
    assert ends(sim) == [TurnEnd(sim.state.session, 2, 0, TurnStatus.INTERRUPTED, "w0 ")]
    assert [e.text for e in sim.events if isinstance(e, CallerWords)] == ["AgentSaid:w0 "]


def test_a_reply_can_be_cut_after_its_session_is_over(sim: Simulation) -> None:
    say(sim, Order.SPEAK, Order.SPEAK)
    sim.settle()
    say(sim, Order.FAIL)
    sim.settle()
    assert sim.state.over
    assert sim.state.interrupt(0, WORD_SAMPLES) == "w0 "


def test_a_reply_begun_in_the_old_epoch_never_surfaces(sim: Simulation) -> None:
    say(sim, Order.SPEAK)
    sim.settle()
    say(sim, Order.FINISH, Order.SPEAK)
    for name in sim.processes:
        while sim.deliver_to_worker(name) or sim.step(name):
            pass
    sim.state.interrupt(0, 0)
    sim.collect()
    sim.settle()
    assert {e.fence.turn for e in sim.events if isinstance(e, ReplyText | ReplyAudio)} == {0}
    assert [end.turn for end in ends(sim)] == [0]
    assert sim.state.decided == 3


@pytest.mark.parametrize("order", [Order.SPEAK, Order.FINISH])
def test_another_reply_that_nobody_has_seen_vanishes_without_an_end(sim: Simulation, order: Order) -> None:
    say(sim, Order.SPEAK, Order.FINISH)
    sim.settle()
    say(sim, order)
    sim.work()
    sim.state.interrupt(0, WORD_SAMPLES)
    sim.collect()
    sim.settle()
    assert [end.turn for end in ends(sim)] == [0]
    assert {e.fence.turn for e in sim.events if isinstance(e, ReplyText | ReplyAudio)} == {0}


def test_another_reply_that_was_seen_ends_as_not_heard(sim: Simulation) -> None:
    say(sim, Order.SPEAK, Order.FINISH, Order.SPEAK)
    sim.settle()
    sim.state.interrupt(0, WORD_SAMPLES)
    sim.collect()
    sim.settle()
    assert ends(sim)[1:] == [TurnEnd(sim.state.session, 1, 1, TurnStatus.INTERRUPTED, "")]


def test_what_came_but_was_not_read_before_the_interruption_is_taken_back(sim: Simulation) -> None:
    say(sim, Order.SPEAK, Order.SPEAK, Order.FINISH)
    sim.work()
    while not any(isinstance(event, ReplyAudio) for event in sim.events):
        sim.pop()
    read = len(sim.events)
    assert sim.state.interrupt(0, WORD_SAMPLES) == "w0 "
    sim.collect()
    sim.settle()
    assert not [e for e in sim.events[read:] if isinstance(e, ReplyText | ReplyAudio)]
    # The reply's end had come too, and said it was done; what the agent reads is the truth.
    assert ends(sim) == [TurnEnd(sim.state.session, 1, 0, TurnStatus.INTERRUPTED, "w0 ")]


def test_what_was_not_read_was_not_heard(sim: Simulation) -> None:
    say(sim, Order.SPEAK, Order.SPEAK)
    sim.work()
    while not any(isinstance(event, ReplyAudio) for event in sim.events):
        sim.pop()
    assert sim.state.interrupt(0, 2 * WORD_SAMPLES) == "w0 "


def test_a_reply_begun_between_two_stages_hearing_of_an_interruption_is_whole(sim: Simulation) -> None:
    say(sim, Order.SPEAK)
    sim.settle()
    say(sim, Order.SPEAK)
    while sim.deliver_to_worker("a"):
        pass
    sim.state.interrupt(0, WORD_SAMPLES)
    sim.collect()
    while sim.to_worker["a"]:
        stage = sim.to_worker["a"][0].stage
        sim.deliver_to_worker("a")
        if stage == "thinker":
            sim.step("a")
    say(sim, Order.FINISH)
    sim.settle()
    assert spoken(sim, 1) == [0, 1]
    assert ends(sim)[-1].status is TurnStatus.DONE


def test_frames_of_a_talker_that_is_rebuilt_with_its_codec_are_not_said_twice() -> None:
    sim = Simulation(pipeline("a", "b", "c"))
    say(sim, Order.SPEAK)
    sim.settle()
    say(sim, Order.BURST, Order.FINISH)
    sim.work("a")
    for _ in range(10):
        sim.deliver_to_worker("b")
        sim.step("b")
    sim.kill("c")
    sim.restart("c")
    sim.settle()
    assert spoken(sim, 0) == list(range(32))
    assert [end.status for end in ends(sim)] == [TurnStatus.DONE]


def test_a_talker_that_goes_on_while_its_codec_is_down_fails_nothing() -> None:
    sim = Simulation(pipeline("a", "b", "c"))
    sim.kill("c")
    say(sim, Order.BURST, Order.BURST, Order.BURST, Order.FINISH)
    sim.work()
    sim.settle()
    assert spoken(sim, 0) == list(range(91))
    assert [end.status for end in ends(sim)] == [TurnStatus.DONE]


def test_a_talker_is_held_back_while_its_codec_is_slow() -> None:
    sim = Simulation(pipeline("a", "b", "c"))
    say(sim, *[Order.BURST] * 10, Order.FINISH)
    for _ in range(50):
        sim.work("a", "b")
    assert sum(isinstance(m.message, CodecFrames) for m in sim.to_worker["c"]) <= 64
    sim.settle()
    assert spoken(sim, 0) == list(range(301))


@pytest.mark.parametrize("codec", ["c", "~c"])
def test_a_talker_is_held_back_though_neither_hub_nor_codec_says_anything(codec: str) -> None:
    config = pipeline("a", "b", codec)
    text, frames = config.edges
    sim = Simulation(config.model_copy(update={"edges": (text, frames.model_copy(update={"capacity": 8}))}))
    say(sim, *[Order.BURST] * 10, Order.FINISH)
    while sim.deliver_to_worker("a") or sim.step("a") or sim.deliver_to_hub("a"):
        pass
    while sim.deliver_to_worker("b") or sim.step("b"):
        pass
    assert sum(isinstance(m, FromStage) and isinstance(m.message, CodecFrames) for m in sim.to_hub["b"]) <= 4
    sim.settle()
    assert spoken(sim, 0) == list(range(301))
    assert [end.status for end in ends(sim)] == [TurnStatus.DONE]


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_killed_process_costs_no_word_and_repeats_none(sim: Simulation, victim: int) -> None:
    name = sim.graph.nodes[sim.graph.stages[victim]].process
    say(sim, Order.SPEAK, Order.SPEAK)
    sim.settle()
    sim.kill(name)
    say(sim, Order.SPEAK)
    sim.settle()
    say(sim, Order.FINISH)
    sim.settle()
    assert spoken(sim, 0) == [0, 1, 2, 3]
    assert ends(sim) == [TurnEnd(sim.state.session, 0, 0, TurnStatus.DONE, "w0 w1 w2 w3 ")]
    health = [(e.stage, e.up) for e in sim.events if isinstance(e, Health)]
    assert health == [(s, up) for up in (False, True) for s in sim.graph.processes[name]]


def test_text_the_voice_had_not_spoken_is_given_to_the_new_one(sim: Simulation) -> None:
    say(sim, Order.SPEAK, Order.HOLD_TALKER, Order.SPEAK)
    sim.settle()
    assert spoken(sim, 0) == [0]
    sim.kill(sim.graph.nodes["talker"].process)
    sim.settle()
    say(sim, Order.FINISH)
    sim.settle()
    assert spoken(sim, 0) == [0, -1, 2, 3]
    assert [end.status for end in ends(sim)] == [TurnStatus.DONE]


def test_a_lost_end_mark_is_made_up_when_every_word_was_spoken() -> None:
    sim = Simulation(pipeline("a", "b", "b"))
    say(sim, Order.SPEAK)
    sim.settle()
    say(sim, Order.FINISH)
    sim.deliver_to_worker("a")
    sim.step("a")
    while sim.deliver_to_hub("a"):
        pass
    sim.kill("b")
    # Of the whole text the last word is spoken by the new voice; then the same with nothing left to speak.
    sim.settle()
    assert spoken(sim, 0) == [0, 1]
    assert [end.status for end in ends(sim)] == [TurnStatus.DONE]


def test_a_rebuilt_thinker_that_does_not_go_on_with_its_reply_fails_it(sim: Simulation) -> None:
    say(sim, Order.SPEAK)
    sim.settle()
    sim.kill("a")
    sim.settle()
    say(sim, *[Order.LISTEN] * int(CONTINUE_WITHIN_S * 1000 / UNIT_MS - 1))
    sim.settle()
    assert ends(sim) == []
    say(sim, Order.LISTEN)
    sim.settle()
    assert [end.status for end in ends(sim)] == [TurnStatus.FAILED]


def test_units_without_a_decision_are_replayed_and_decided_once(sim: Simulation) -> None:
    say(sim, Order.HEAR, Order.LISTEN)
    sim.settle()
    say(sim, Order.LISTEN, Order.LISTEN)
    sim.kill("a")
    say(sim, Order.RECALL)
    sim.settle()
    assert [e.unit for e in sim.events if isinstance(e, Decision)] == [0, 1, 2, 3, 4]
    assert [(e.utterance, e.text) for e in sim.events if isinstance(e, CallerWords)] == [
        (0, "heard 0"), (1, "CallerSaid:heard 0")]


def test_what_the_caller_typed_survives_the_thinker(sim: Simulation) -> None:
    sim.state.inject(CallerText("typed"))
    sim.collect()
    sim.kill("a")
    sim.settle()
    say(sim, Order.RECALL)
    sim.settle()
    assert [e.text for e in sim.events if isinstance(e, CallerWords)] == ["CallerSaid:typed"]


@pytest.mark.parametrize("order", [Order.FAIL_ONCE, Order.RAISE_ONCE])
def test_a_session_that_failed_is_rebuilt_once(sim: Simulation, order: Order) -> None:
    say(sim, Order.SPEAK, order, Order.LISTEN)
    sim.settle()
    assert [end.status for end in ends(sim)] == [TurnStatus.FAILED]
    assert sim.state.decided == 3
    assert not sim.state.over
    say(sim, Order.FINISH)
    sim.settle()
    assert [(end.turn, end.status) for end in ends(sim)][1:] == [(1, TurnStatus.DONE)]


@pytest.mark.parametrize("order", [Order.FAIL, Order.SKIP])
def test_a_session_that_fails_twice_is_over(sim: Simulation, order: Order) -> None:
    say(sim, Order.SPEAK, order, Order.LISTEN)
    sim.settle()
    assert [end.status for end in ends(sim)] == [TurnStatus.FAILED]
    assert sim.state.over
    say(sim, Order.LISTEN)
    assert sim.state.drops["unit", "session_over"] == 1


@pytest.mark.parametrize("order", [Order.FAIL_TALKER, Order.BREAK_TALKER])
def test_a_failing_talker_ends_the_reply_and_the_next_one_is_spoken(sim: Simulation, order: Order) -> None:
    say(sim, Order.SPEAK, order, Order.FINISH)
    # A unit whose decision has not come when its thinker is rebuilt too would be answered with the same word again.
    sim.work("a")
    sim.settle()
    say(sim, Order.SPEAK, Order.FINISH)
    sim.settle()
    assert [end.status for end in ends(sim)] == [TurnStatus.FAILED, TurnStatus.DONE]
    assert spoken(sim, ends(sim)[1].turn) == [0, 1]


def test_a_talker_is_fed_no_faster_than_it_files(sim: Simulation) -> None:
    if sim.graph.nodes["thinker"].direct:
        return
    say(sim, Order.BURST, Order.BURST, Order.BURST, Order.FINISH)
    sim.deliver_to_worker("a")
    for _ in range(8):
        sim.deliver_to_worker("a")
        sim.step("a")
    while sim.deliver_to_hub("a"):
        assert sum(isinstance(m.message, ReplyText) for m in sim.to_worker["b"]) <= 64
    sim.settle()
    assert spoken(sim, 0) == list(range(91))


def test_frames_beyond_the_room_of_their_edge_fail_the_reply() -> None:
    sim = Simulation(pipeline("a", "b", "c"))
    say(sim, Order.FLOOD)
    sim.settle()
    assert [end.status for end in ends(sim)] == [TurnStatus.FAILED]


def test_a_session_whose_events_nobody_reads_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MAX_EVENTS", 10)
    sim = Simulation(pipeline("a", "b", "b"))
    say(sim, *[Order.SPEAK] * 5)
    sim.work()
    assert sim.state.over
    assert sim.state.drops["event", "unread"] == 1
    sim.settle()
    assert [end.status for end in ends(sim)] == [TurnStatus.FAILED]


def test_an_overrun_takes_nothing() -> None:
    sim = Simulation(pipeline("a", "b", "b", max_pending_units=2))
    say(sim, Order.LISTEN, Order.LISTEN)
    with pytest.raises(Overrun):
        sim.state.append(unit(2))
    sim.settle()
    say(sim, Order.LISTEN)
    sim.settle()
    assert sim.state.decided == 3


def test_a_unit_out_of_order_or_of_a_wrong_shape_is_refused(sim: Simulation) -> None:
    with pytest.raises(ValueError, match="the next one is 0"):
        sim.state.append(unit(1))
    short = unit(0)
    with pytest.raises(ValueError, match="1280"):
        sim.state.append(type(short)(0, short.pcm[:-1], 0.0))
    assert sim.state.units == 0


def test_duplicates_are_dropped_and_a_gap_fails_the_reply(sim: Simulation) -> None:
    say(sim, Order.SPEAK, Order.SPEAK, Order.SPEAK)
    for name in sim.processes:
        while sim.deliver_to_worker(name) or sim.step(name):
            pass
    queue = sim.to_hub["a"]
    texts = [m for m in queue if isinstance(m, FromStage) and isinstance(m.message, ReplyText)]
    queue.insert(queue.index(texts[0]), texts[0])
    queue.remove(texts[1])
    sim.settle()
    assert sim.state.drops["message", "duplicate"] == 1
    assert [end.status for end in ends(sim)] == [TurnStatus.FAILED]
