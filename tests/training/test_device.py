"""What a training computes on. No GPU is needed: torch's fake tensors tell which device each would be on, and refuse to
mix two of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from duologue.engine.models.embedded.hearing.features import FRAME_WIDTH
from duologue.engine.models.embedded.voice.network import DIGITS
from duologue.engine.models.embedded.voice_format import FRAME_VECTORS
from training import command, device
from training.command import Step
from training.hearing.model import Encoder
from training.hearing.rows import LENGTH, PHONES, Row
from training.hearing.train import losses as hearing_losses
from training.thinker import meanings
from training.thinker.model import Taught
from training.thinker.pool import MEANINGS, SHORT
from training.thinker.train import losses as thinker_losses
from training.voice import codec, letters, talker
from training.voice.model import Talker
from training.voice.sequence import NOTHING

GPU = torch.device("cuda:0")


@pytest.fixture
def gpu() -> Iterator[None]:
    """A GPU that computes nothing."""
    with FakeTensorMode(allow_non_fake_inputs=True), GPU:
        yield


def thinkers() -> tuple[Tensor, ...]:
    """The losses of one batch."""
    kinds = np.arange(2 * SHORT).reshape(2, SHORT) % 3
    rows: dict[str, Any] = dict.fromkeys(("tokens", "positions", "learnt", "meant"), kinds)
    rows |= {"parts": np.zeros_like(kinds), "sees": np.ones_like(kinds)}
    return thinker_losses(Taught(500), rows | {MEANINGS: np.zeros((3, meanings.WIDTH), np.float16)})


def encoders() -> tuple[Tensor, ...]:
    """The losses of one batch."""
    silence = Row(np.zeros((LENGTH, FRAME_WIDTH), np.float32), np.zeros(LENGTH, np.int64), np.zeros(LENGTH, np.int64))
    return hearing_losses(Encoder(50, len(PHONES)), [silence, silence])


def codecs() -> tuple[Tensor, ...]:
    """The loss of one batch."""
    made, wanted = codec.Codec(), device.tensor(np.zeros((2, 4 * FRAME_VECTORS, codec.FEATURES), np.float32))
    return (codec.loss(made.decode(made.digits(wanted)), wanted),)


def readers() -> tuple[Tensor, ...]:
    """What is read of one batch."""
    return (letters.Reader()(*letters.slots(["ab", "abc"])),)


def talkers() -> tuple[Tensor, ...]:
    """The losses of one batch, of streams of different lengths."""
    items = [SimpleNamespace(symbol=np.array([1, 2, NOTHING, 3][:length]), pointer=np.ones((length, 3), np.int64),
                             advance=np.array([NOTHING, 1, 0, NOTHING][:length]),
                             digits=np.zeros((length, DIGITS), np.int64)) for length in (4, 3)]
    return talker.losses(Talker(), cast("list[talker.Item]", items), disturbed=True)


@pytest.mark.filterwarnings("ignore:CUDA is not available")
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("losses", [thinkers, encoders, codecs, readers, talkers])
def test_all_of_a_step_is_computed_on_the_device(losses: Callable[[], tuple[Tensor, ...]]) -> None:
    with device.mixed():
        assert {loss.device for loss in losses()} == {GPU}


def test_the_device_of_the_command_line_is_what_is_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = list[tuple[Path, float, torch.device]]()
    monkeypatch.setattr(sys, "argv", ["train", str(tmp_path), "--device", "meta", "--minutes", "3"])
    command.run("train", None, lambda folder, minutes: found.append((folder, minutes, torch.get_default_device())), 9)
    assert found == [(tmp_path, 3, torch.device("meta"))]
    assert torch.get_default_device() == torch.device("cpu")


@pytest.mark.parametrize("name", ["tpu", "cuda:99"])
def test_a_device_that_is_not_there_is_named(name: str, monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["train", "folder", "--device", name])
    with pytest.raises(SystemExit):
        command.run("train", None, lambda folder, minutes: None, 9)
    assert f"there is no {name} here" in capsys.readouterr().err


def test_all_steps_are_done_and_only_trainings_are_told_the_device(tmp_path: Path,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[list[str]]()
    monkeypatch.setattr(subprocess, "run", lambda line, check: done.append(line[2:]))
    monkeypatch.setattr(sys, "argv", ["part", str(tmp_path), "--device", "meta"])
    (tmp_path / "there.npz").touch()
    command.every("part", None, [Step("corpus", made="there.npz"), Step("pool"), Step("train", trains=True),
                                 Step("evaluate", folder=False)])
    assert done == [["part.pool", str(tmp_path)], ["part.train", str(tmp_path), "--device", "meta"], ["part.evaluate"]]
