"""A training's course over several runs, on a clock of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn

from training import course, device
from training.course import Course, Recent


@dataclass
class Clock:
    """CPU time and time, one as the other, in seconds."""

    now: float = 1000.0

    def process_time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(course, "time", made)
    monkeypatch.setattr(device, "time", made)
    return made


class Run:
    """One run of a training of a single weight."""

    def __init__(self, folder: Path, minutes: float) -> None:
        self.model = nn.Linear(1, 1)
        optimizer = torch.optim.AdamW(self.model.parameters(), 0.1)
        self.course = Course(folder / "line.pt", "line", self.model, optimizer, minutes, warm_up=4, save_s=15)

    def steps(self, clock: Clock, most: int = 1000) -> list[float]:
        """Take ``most`` steps of 10 s, or as many as there is time for: the shares of the learning rate."""
        shares = list[float]()
        while len(shares) < most and self.course.goes_on():
            shares.append(self.course.share)
            clock.now += 10
            self.course.stepped(lambda: "well")
        return shares


def test_the_learning_rate_rises_then_falls_over_the_time(tmp_path: Path, clock: Clock) -> None:
    shares = Run(tmp_path, minutes=2).steps(clock)
    assert shares == pytest.approx([min(1, (step + 1) / 4) * (1 - step / 12) for step in range(12)])


def test_a_training_that_was_stopped_goes_on_from_what_was_last_saved(
        tmp_path: Path, clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    first = Run(tmp_path, minutes=2)
    first.steps(clock, 5)
    assert capsys.readouterr().out.splitlines() == ["0.3 min, step 2: well", "0.7 min, step 4: well"]
    clock.now += 3600
    second = Run(tmp_path, minutes=2)
    assert second.course.step == 4
    assert second.model.weight.item() == first.model.weight.item()
    assert len(second.steps(clock)) == 8
    second.course.end("done")
    assert capsys.readouterr().out.splitlines()[-1] == "end: 2.0 min, step 12: done"
    assert not Run(tmp_path, minutes=2).course.goes_on()


def test_a_training_can_be_given_more_time(tmp_path: Path, clock: Clock) -> None:
    first = Run(tmp_path, minutes=1)
    first.steps(clock)
    first.course.end("done")
    longer = Run(tmp_path, minutes=2)
    assert longer.course.share == pytest.approx(0.5)
    assert len(longer.steps(clock)) == 6


def test_a_training_of_no_time_takes_no_step(tmp_path: Path, clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    none = Run(tmp_path, minutes=0)
    assert none.steps(clock) == []
    none.course.end("nothing")
    assert capsys.readouterr().out.splitlines() == ["end: 0.0 min, step 0: nothing"]


def test_losses_are_forgotten_once_reported() -> None:
    recent = Recent("near", "far")
    recent.add(1.0, 10.0)
    recent.add(2.0, 30.0)
    assert recent.means() == "near 1.500, far 20.000"
    assert recent.means() == "near nan, far nan"
