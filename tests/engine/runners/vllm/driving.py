"""Segments from end to end."""

from __future__ import annotations

from duologue.engine.runners.base import Generated, Runner, Segment
from tests.engine.runners.torch_reference import Told
from tests.engine.runners.vllm.waiting import wait


def hear(runner: Runner, told: dict[str, Told]) -> list[Generated]:
    """Wait for one step and file what was said."""
    wait(runner)
    said = list(runner.step())
    for one in said:
        told.setdefault(one.session, Told()).hear(one)
    return said


def finish(runner: Runner, *segments: Segment) -> dict[str, Told]:
    """Submit segments and step until all are over."""
    told = {segment.session: Told() for segment in segments}
    for segment in segments:
        runner.submit(segment)
    while any(one.finish is None for one in told.values()):
        hear(runner, told)
    return told
