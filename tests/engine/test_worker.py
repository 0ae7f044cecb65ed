from __future__ import annotations

import socket
from collections.abc import Sequence

import numpy as np

from duologue.engine import Decision, Fence, ReplyText
from duologue.engine.messages import AppendUnit, CodecFrames, Interrupt, Open, StageInput, StageOutput
from duologue.engine.pipeline import Graph, load_stage
from duologue.engine.wire import Dropped, FromStage, Taken, ToHub, ToStage, encode
from duologue.engine.worker import DropReport, Worker
from duologue.engine.worker_process import Channel
from duologue.metrics import DROPS
from tests.engine.scripted import pipeline, unit

CONFIG = pipeline("mind", "voice", "voice")


def thinker() -> Worker:
    worker = Worker(Graph(CONFIG), {"thinker": load_stage(CONFIG.stages[0], CONFIG)})
    worker.replies()
    return worker


def tell(worker: Worker, serial: int, *messages: StageInput) -> list[ToHub]:
    for message in messages:
        worker.dispatch(ToStage("thinker", serial, message))
    worker.step("thinker")
    return worker.replies()


def test_messages_for_an_earlier_life_of_a_session_are_dropped_and_reported() -> None:
    worker = thinker()
    tell(worker, 2, Open("s", 0, 0, 0))
    assert tell(worker, 1, AppendUnit("s", 0, unit(0))) == [Dropped("message", "stale", 1)]


def test_outputs_carry_the_life_they_belong_to() -> None:
    worker = thinker()
    said = tell(worker, 7, Open("s", 0, 0, 0), AppendUnit("s", 0, unit(0)))
    assert [(m.serial, type(m.message)) for m in said if isinstance(m, FromStage)] == [(7, Decision)]


def test_opening_a_session_again_forgets_its_earlier_life() -> None:
    worker = thinker()
    worker.dispatch(ToStage("thinker", 1, Open("s", 0, 0, 0)))
    worker.dispatch(ToStage("thinker", 1, AppendUnit("s", 0, unit(0))))
    assert tell(worker, 2, Open("s", 0, 0, 0)) == []


def test_what_a_stage_drops_reaches_the_hub_once() -> None:
    report = DropReport()
    report.changes()
    DROPS.labels(what="test_frames", reason="full").inc(3)
    assert report.changes() == [Dropped("test_frames", "full", 3)]
    assert report.changes() == []


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
    assert worker.replies() == [Taken("talker", 1, "s", 1), Dropped("message", "stale", 2)]
