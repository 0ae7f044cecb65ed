from __future__ import annotations

from duologue.engine.config import SupervisionConfig
from duologue.engine.pipeline import Graph
from duologue.engine.supervisor import RestartBudget
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


def test_restarts_are_limited_within_the_window_and_come_back_after_it() -> None:
    budget = RestartBudget(SupervisionConfig(max_restarts=2, restart_window_s=10))
    assert [budget.take(now) for now in (0, 1, 2, 9.9, 10, 10.5, 11)] == [
        True, True, False, False, True, False, True]
