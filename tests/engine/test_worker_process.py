"""The loop of a stage process, over a real socket and real descriptors, turn by turn."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from duologue.engine import CallerWords
from duologue.engine.messages import Open, StageInput, StageOutput
from duologue.engine.pipeline import Graph
from duologue.engine.stage import KvBudget
from duologue.engine.wire import CannotStart, Decoder, FromStage, Ready, Setup, ToHub, ToStage, encode
from duologue.engine.worker import Worker
from duologue.engine.worker_process import Channel, Loop, load, serve
from tests.engine import scripted
from tests.engine.scripted import pipeline
from tests.engine.scripted.holding import CLOSED, Holding


class Busy:
    """A stage that always has something to do."""

    def __init__(self) -> None:
        self.given: list[StageInput] = []
        self.steps = 0
        self.ready = True

    def receive(self, message: StageInput) -> None:
        self.given.append(message)

    def step(self) -> Sequence[StageOutput]:
        self.steps += 1
        return []


class Elsewhere(Busy):
    """A stage whose work goes on in another thread or process, which says through a pipe that some is done."""

    def __init__(self) -> None:
        super().__init__()
        self.ready = False
        self.wake_fd, self.other = os.pipe()

    def step(self) -> Sequence[StageOutput]:
        os.read(self.wake_fd, 1)
        self.steps += 1
        return [CallerWords("s", 0, f"step {self.steps}", True, 0, 0)]


@pytest.fixture
def hub() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(10)
        yield ours, theirs


def read(sock: socket.socket) -> list[ToHub]:
    return [message for message in Decoder().feed(sock.recv(1 << 20))
            if isinstance(message, FromStage | Ready | CannotStart)]


def test_a_stage_that_is_always_ready_starves_neither_another_nor_the_socket(
        hub: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = hub
    busy, other = Busy(), Busy()
    loop = Loop(Worker(Graph(pipeline("a", "a", "a")), {"thinker": busy, "talker": other}), Channel(theirs))
    for _ in range(3):
        loop.turn()
    assert (busy.steps, other.steps) == (3, 3)
    ours.sendall(encode(ToStage("talker", 1, Open("s", 0, 0, 0))))
    loop.turn()
    assert other.given == [Open("s", 0, 0, 0)]


def test_a_stage_whose_work_goes_on_elsewhere_is_stepped_when_it_says_so(
        hub: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = hub
    stage = Elsewhere()
    loop = Loop(Worker(Graph(pipeline("a", "b", "b")), {"thinker": stage}), Channel(theirs))
    ours.sendall(encode(ToStage("thinker", 1, Open("s", 0, 0, 0))))
    loop.turn()
    assert stage.steps == 0
    for count in (1, 2):
        os.write(stage.other, b"x")
        loop.turn()
        assert stage.steps == count
        (said,) = read(ours)
        assert isinstance(said, FromStage)
        assert isinstance(said.message, CallerWords)
        assert said.message.text == f"step {count}"


def test_the_loop_ends_with_the_hub(hub: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = hub
    loop = Loop(Worker(Graph(pipeline("a", "b", "b")), {"thinker": Elsewhere()}), Channel(theirs))
    ours.close()
    loop.run()


def setup(**options: Any) -> Setup:
    config = pipeline("a", "b", "b").model_dump(mode="json")
    config["stages"][0] |= {"model": f"{scripted.PACKAGE}.holding", "options": options}
    return Setup(type(pipeline("a", "b", "b")).model_validate(config).model_dump_json(), ("thinker",))


def test_a_process_says_what_kv_its_stages_hold_and_closes_them_at_the_end(
        hub: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = hub
    CLOSED.clear()
    ours.sendall(encode(setup()))
    ours.shutdown(socket.SHUT_WR)
    serve(theirs)
    assert read(ours) == [Ready({"thinker": KvBudget(4096, 1024, 3)})]
    assert CLOSED == ["thinker"]


def test_a_stage_that_was_made_is_closed_when_the_next_one_cannot_be(
        hub: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = hub
    CLOSED.clear()
    config = pipeline("a", "a", "b").model_dump(mode="json")
    config["stages"][0]["model"] = f"{scripted.PACKAGE}.holding"
    config["stages"][1]["model"] = "nonesuch"
    broken = type(pipeline("a", "b", "b")).model_validate(config)
    ours.sendall(encode(Setup(broken.model_dump_json(), ("thinker", "talker"))))
    serve(theirs)
    (refusal,) = read(ours)
    assert isinstance(refusal, CannotStart)
    assert "there is no model 'nonesuch'" in refusal.message
    assert CLOSED == ["thinker"]


def test_a_hub_that_goes_before_it_asked_for_anything_is_no_error(
        hub: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = hub
    ours.close()
    serve(theirs)


def test_stages_are_closed_in_the_reverse_of_the_order_they_were_made_in() -> None:
    CLOSED.clear()
    config = pipeline("a", "a", "a")
    stages = [stage.model_copy(update={"model": f"{scripted.PACKAGE}.holding", "options": {"name": stage.name}})
              for stage in config.stages]
    config = config.model_copy(update={"stages": tuple(stages)})
    with ExitStack() as stack:
        made = load(Setup("", ("thinker", "talker")), config, stack)
        assert all(isinstance(stage, Holding) for stage in made.values())
        assert CLOSED == []
    assert CLOSED == ["talker", "thinker"]
