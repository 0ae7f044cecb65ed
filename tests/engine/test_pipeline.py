from __future__ import annotations

import os

import pytest
from pydantic import ValidationError

from duologue.engine import ConfigError
from duologue.engine.config import EdgeConfig, SupervisionConfig
from duologue.engine.connectors import ShmEdge
from duologue.engine.pipeline import Graph
from duologue.engine.supervisor import RestartBudget, StageProcess, stage_processes
from duologue.engine.wire import ToHub, ToWorker
from tests.engine.scripted import pipeline


def test_the_graph_knows_places_and_edges() -> None:
    graph = Graph(pipeline("mind", "voice", "voice"))
    assert graph.processes == {"mind": ("thinker",), "voice": ("talker", "codec")}
    assert [(node.successor, node.direct) for node in graph.nodes.values()] == [
        ("talker", False), ("codec", True), (None, False)]


def test_voice_stages_are_rebuilt_together_and_the_thinker_apart() -> None:
    graph = Graph(pipeline("a", "b", "c"))
    assert graph.rebuilt_with("thinker") == ("thinker",)
    assert graph.rebuilt_with("talker") == graph.rebuilt_with("codec") == ("talker", "codec")


def test_a_thinker_that_talks_to_its_talker_past_the_hub_is_rebuilt_with_it() -> None:
    assert Graph(pipeline("a", "a", "b")).rebuilt_with("codec") == ("thinker", "talker", "codec")


def test_a_thinker_that_shares_memory_with_its_talker_is_rebuilt_with_it() -> None:
    assert Graph(pipeline("a", "~b", "c")).rebuilt_with("codec") == ("thinker", "talker", "codec")
    assert Graph(pipeline("a", "b", "~c")).rebuilt_with("codec") == ("talker", "codec")


@pytest.mark.parametrize(("places", "lanes"), [
    (("a", "a", "a"), [("a",)]), (("a", "b", "c"), [("a",), ("b",), ("c",)]), (("a", "~b", "c"), [("a", "b"), ("c",)]),
    (("a", "b", "~c"), [("a",), ("b", "c")]), (("a", "~b", "~c"), [("a", "b", "c")]), (("a", "b", "~a"), [("a", "b")])])
def test_processes_that_share_memory_are_one_lane(places: tuple[str, ...], lanes: list[tuple[str, ...]]) -> None:
    assert [lane.processes for lane in Graph(pipeline(*places)).lanes] == lanes


def test_lanes_have_the_replicas_of_their_processes() -> None:
    graph = Graph(pipeline("a", "b", "~c", processes={"b": {"replicas": 2}, "c": {"replicas": 2}}))
    assert [lane.replicas for lane in graph.lanes] == [1, 2]
    assert graph.replicas == {"a": 1, "b": 2, "c": 2}


def test_shared_memory_joins_equal_numbers_of_replicas() -> None:
    with pytest.raises(ValidationError, match=r"'b' has 2 replicas and 'c' 1; give both the same number"):
        pipeline("a", "b", "~c", processes={"b": {"replicas": 2}})
    pipeline("a", "b", "c", processes={"b": {"replicas": 2}})


@pytest.mark.parametrize(("places", "conditions"), [(("a", "a", "b"), True), (("a", "~b", "b"), True),
                                                    (("a", "b", "b"), False)])
def test_a_talker_can_tell_whether_it_is_given_hidden_states(places: tuple[str, ...], conditions: bool) -> None:
    assert pipeline(*places).conditions_talker == conditions


class Deaf:
    """A watcher that nothing is told."""

    def process_up(self, process: StageProcess) -> None: ...
    def process_down(self, process: StageProcess, detail: str) -> None: ...
    def process_given_up(self, process: StageProcess, detail: str) -> None: ...
    def process_said(self, process: StageProcess, message: ToWorker | ToHub) -> None: ...


async def test_replicas_are_named_by_number_and_joined_one_to_one() -> None:
    config = pipeline("a", "b", "~c", processes={"b": {"replicas": 2}, "c": {"replicas": 2}})
    before = len(os.listdir("/proc/self/fd"))
    processes = stage_processes(config, Graph(config), Deaf())
    assert {place: process.name for place, process in processes.items()} == {
        ("a", 0): "a", ("b", 0): "b/0", ("b", 1): "b/1", ("c", 0): "c/0", ("c", 1): "c/1"}
    memory = {place: [os.fstat(edge.memory).st_ino for edge in process._edges] for place, process in processes.items()}
    assert memory["a", 0] == []
    assert memory["b", 0] == memory["c", 0] != memory["b", 1] == memory["c", 1]
    for process in processes.values():
        await process.stop()
        await process.stop()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_pipeline_whose_memory_cannot_be_had_leaves_no_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    config = pipeline("a", "~b", "~c")
    made: list[ShmEdge] = []

    def create(edge: EdgeConfig) -> ShmEdge:
        if made:
            raise ConfigError("no memory")
        made.append(real(edge))
        return made[0]

    real = ShmEdge.create
    monkeypatch.setattr(ShmEdge, "create", create)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ConfigError):
        stage_processes(config, Graph(config), Deaf())
    assert len(os.listdir("/proc/self/fd")) == before


def test_restarts_are_limited_within_the_window_and_come_back_after_it() -> None:
    budget = RestartBudget(SupervisionConfig(max_restarts=2, restart_window_s=10))
    assert [budget.take(now) for now in (0, 1, 2, 9.9, 10, 10.5, 11)] == [
        True, True, False, False, True, False, True]
