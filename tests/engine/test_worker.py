from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from duologue.engine import Decision, Fence, ReplyText
from duologue.engine.connectors import ShmEdge, ShmSender
from duologue.engine.messages import (
    AppendUnit,
    Close,
    CodecFrames,
    Conditioning,
    Hold,
    Interrupt,
    Open,
    SessionFailed,
    StageInput,
    StageOutput,
)
from duologue.engine.pipeline import Graph, load_stage
from duologue.engine.wire import Counted, FromStage, Taken, ToHub, ToStage, encode
from duologue.engine.worker import Tally, Worker
from duologue.engine.worker_process import Channel
from duologue.metrics import DROPS, UNANSWERED
from tests.engine.scripted import pipeline, unit

CONFIG = pipeline("mind", "voice", "voice")


def thinker() -> Worker:
    worker = Worker(Graph(CONFIG), {"thinker": load_stage(CONFIG.stages[0], CONFIG)})
    worker.replies()
    return worker


def dropped(what: str, reason: str, count: int) -> Counted:
    """What tells the hub of things that were dropped."""
    return Counted("drops", (("what", what), ("reason", reason)), count)


def tell(worker: Worker, serial: int, *messages: StageInput) -> list[ToHub]:
    for message in messages:
        worker.dispatch(ToStage("thinker", serial, message))
    worker.step("thinker")
    return worker.replies()


def test_messages_for_an_earlier_life_of_a_session_are_dropped_and_reported() -> None:
    worker = thinker()
    tell(worker, 2, Open("s", 0, 0, 0))
    assert tell(worker, 1, AppendUnit("s", 0, unit(0))) == [dropped("message", "stale", 1)]


def test_outputs_carry_the_life_they_belong_to() -> None:
    worker = thinker()
    said = tell(worker, 7, Open("s", 0, 0, 0), AppendUnit("s", 0, unit(0)))
    assert [(m.serial, type(m.message)) for m in said if isinstance(m, FromStage)] == [(7, Decision)]


def test_opening_a_session_again_forgets_its_earlier_life() -> None:
    worker = thinker()
    worker.dispatch(ToStage("thinker", 1, Open("s", 0, 0, 0)))
    worker.dispatch(ToStage("thinker", 1, AppendUnit("s", 0, unit(0))))
    assert tell(worker, 2, Open("s", 0, 0, 0)) == []


def test_what_a_stage_counts_reaches_the_hub_once() -> None:
    tally = Tally()
    tally.changes()
    DROPS.labels(what="test_frames", reason="full").inc(3)
    UNANSWERED.inc()
    assert tally.changes() == [dropped("test_frames", "full", 3), Counted("unanswered", (), 1)]
    assert tally.changes() == []


def test_a_channel_tells_nothing_yet_from_gone() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        channel = Channel(ours)
        theirs.sendall(encode(ToStage("thinker", 1, Open("s", 0, 0, 0))))
        assert channel.receive() == [ToStage("thinker", 1, Open("s", 0, 0, 0))]
        theirs.close()
        assert channel.receive() is None


class Late:
    """A talker that answers whatever it is given with frames of epoch 0."""

    def __init__(self) -> None:
        self.given: list[StageInput] = []
        self.ready = False

    def receive(self, message: StageInput) -> None:
        self.given.append(message)
        self.ready = True

    def step(self) -> Sequence[StageOutput]:
        self.ready = False
        return [CodecFrames(Fence("s", 0, 0, 0), np.zeros((1, 1), np.float32))]


def test_what_an_interruption_overtook_reaches_no_stage_and_no_hub() -> None:
    config = pipeline("mind", "talk", "sound")
    talker = Late()
    worker = Worker(Graph(config), {"talker": talker})
    worker.replies()
    text = ReplyText(Fence("s", 0, 0, 0), 0, "late")
    opening, interrupt = Open("s", 0, 0, 0), Interrupt("s", 1)
    for message in (opening, interrupt, text):
        worker.dispatch(ToStage("talker", 1, message))
    worker.step("talker")
    assert talker.given == [opening, interrupt]
    # The text has left its edge all the same, and both drops are counted.
    assert worker.replies() == [Taken("talker", 1, "s", 1), dropped("message", "stale", 2)]


class Recorder:
    """A stage that files what it is given, and says what it is told to."""

    def __init__(self) -> None:
        self.given: list[StageInput] = []
        self.says: list[StageOutput] = []

    @property
    def ready(self) -> bool:
        return bool(self.says)

    def receive(self, message: StageInput) -> None:
        self.given.append(message)

    def step(self) -> Sequence[StageOutput]:
        says, self.says = self.says, []
        return says


def text(seq: int, *, epoch: int = 0, last: bool = False) -> ReplyText:
    return ReplyText(Fence("s", epoch, 0, seq), seq, "x", last)


def frames(seq: int) -> CodecFrames:
    return CodecFrames(Fence("s", 0, 0, seq), np.zeros((1, 1), np.float32))


def pair(connector: str, **changes: Any) -> tuple[Worker, Recorder, Recorder]:
    """A worker with thinker and talker, joined by a local edge, and a session; or with the talker alone, fed by the
    hub. Opening is taken out of the records."""
    config = pipeline("a", "a" if connector == "local" else "b", "c", **changes)
    thinker, talker = Recorder(), Recorder()
    stages = {"thinker": thinker, "talker": talker} if connector == "local" else {"talker": talker}
    worker = Worker(Graph(config), stages)
    for name in reversed(stages):
        worker.dispatch(ToStage(name, 1, Open("s", 0, 0, 0)))
    worker.replies()
    thinker.given.clear()
    talker.given.clear()
    return worker, thinker, talker


def test_without_async_chunk_a_stage_gets_a_reply_when_it_is_whole_and_its_edge_never_fills() -> None:
    worker, _, talker = pair("socket", async_chunk=False)
    pieces = [text(n, last=n == 99) for n in range(100)]
    for number, piece in enumerate(pieces):
        assert talker.given == []
        worker.dispatch(ToStage("talker", 1, piece, number))
        assert worker.replies() == [Taken("talker", 1, "s", number + 1)]
    assert talker.given == pieces


def test_without_async_chunk_an_interrupted_reply_never_reaches_its_stage() -> None:
    worker, _, talker = pair("socket", async_chunk=False)
    interrupt = Interrupt("s", 1)
    worker.dispatch(ToStage("talker", 1, text(0), 0))
    worker.dispatch(ToStage("talker", 1, interrupt))
    worker.dispatch(ToStage("talker", 1, text(0, epoch=1, last=True), 1))
    assert talker.given == [interrupt, text(0, epoch=1, last=True)]
    assert dropped("message", "stale", 1) in worker.replies()


def test_with_async_chunk_a_stage_gets_each_piece_as_it_comes() -> None:
    worker, _, talker = pair("socket")
    worker.dispatch(ToStage("talker", 1, text(0), 0))
    assert talker.given == [text(0)]


def test_text_reaches_the_next_stage_with_its_conditioning_and_the_hub_without() -> None:
    worker, thinker, talker = pair("local")
    row = Conditioning(np.array([7], np.int32), np.ones((1, 4), np.float32), np.array([1], np.int32))
    conditioned = replace(text(0), conditioning=row)
    thinker.says = [conditioned]
    worker.step("thinker")
    assert talker.given == [conditioned]
    assert worker.replies() == [FromStage("thinker", 1, text(0))]


def test_what_the_hub_says_again_reaches_the_talker_before_what_the_thinker_says_next() -> None:
    worker, thinker, talker = pair("local")
    worker.dispatch(ToStage("thinker", 1, text(0)))
    thinker.says = [text(1)]
    worker.step("thinker")
    assert talker.given == [text(0), text(1)]
    assert worker.replies() == [FromStage("thinker", 1, text(1))]


def test_what_a_stage_says_in_one_life_does_not_reach_the_next_stage_in_another() -> None:
    worker, thinker, talker = pair("local")
    thinker.says = [text(0)]
    # As far as the hub's word has come, the talker is in a new life, and the thinker is not.
    worker.dispatch(ToStage("talker", 2, Open("s", 0, 0, 0)))
    talker.given.clear()
    worker.step("thinker")
    assert talker.given == []
    assert dropped("message", "stale", 1) in worker.replies()


def test_frames_beyond_the_room_of_a_direct_edge_fail_their_session() -> None:
    config = pipeline("a", "b", "~c")
    (edge,) = (edge for edge in config.edges if edge.connector == "shm")
    memory = ShmEdge.create(edge)
    talker = Recorder()
    worker = Worker(Graph(config), {"talker": talker}, senders={"talker": ShmSender(memory)})
    worker.dispatch(ToStage("talker", 1, Open("s", 0, 0, 0)))
    talker.says = [frames(n) for n in range(edge.capacity)]
    worker.step("talker")
    assert talker.given[1:] == [Hold("s", held=True)]
    worker.replies()
    talker.says = [frames(edge.capacity)]
    worker.step("talker")
    assert talker.given[-1] == Close("s")
    (failed, full) = worker.replies()
    assert isinstance(failed, FromStage)
    assert isinstance(failed.message, SessionFailed)
    assert "told to hold" in failed.message.detail
    assert full == dropped("message", "edge_full", 1)
    memory.close()


def test_a_message_missing_on_the_edge_fails_its_session_and_no_other() -> None:
    worker, _, talker = pair("socket")
    worker.dispatch(ToStage("talker", 1, Open("t", 0, 0, 0)))
    worker.dispatch(ToStage("talker", 1, text(1), 1))
    (failed,) = worker.replies()
    assert isinstance(failed, FromStage)
    assert failed.message == SessionFailed("s", "message 0 of the edge did not come, 1 did")
    assert Close("s") in talker.given
    other = replace(text(0), fence=Fence("t", 0, 0, 0))
    worker.dispatch(ToStage("talker", 1, other, 0))
    assert talker.given[-1] == other


def test_closing_a_session_leaves_nothing_of_it_in_any_stage() -> None:
    worker, thinker, _ = pair("local")
    thinker.says = [text(0)]
    worker.step("thinker")
    for name in ("talker", "thinker"):
        worker.dispatch(ToStage(name, 1, Close("s")))
    assert all(not seats for seats in worker._seats.values())
    assert not worker._outlets["thinker"]._outlets
    assert not worker._inlets["talker"]._inlets
