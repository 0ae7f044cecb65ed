"""Waiting for a runner as a stage process does: asleep until its descriptor says so."""

from __future__ import annotations

import select

from duologue.engine.runners.base import Runner

PATIENCE_S = 60.0


def wait(runner: Runner) -> None:
    """Sleep until the runner is ready."""
    if not runner.ready:
        assert runner.wake_fd is not None
        assert select.select([runner.wake_fd], [], [], PATIENCE_S)[0], "nothing came"
