"""The runners of our own, made of the same tensors."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from duologue.engine.models.duplex.config import DecoderConfig
from duologue.engine.runners.base import Runner
from duologue.engine.runners.numpy import NumpyOptions, NumpyRunner
from duologue.engine.runners.numpy.blas import one_thread
from duologue.engine.runners.torch import TorchOptions, TorchRunner
from tests.engine.runners.torch_reference import tiny


class Kind(Protocol):
    """Makes one; of the tiny random checkpoint's thinker if no other is given."""

    def __call__(self, given: tuple[DecoderConfig, dict[str, torch.Tensor]] | None = None,
                 **options: Any) -> Runner: ...


def on_torch(given: tuple[DecoderConfig, dict[str, torch.Tensor]] | None = None, **options: Any) -> TorchRunner:
    config, tensors = given or tiny()
    return TorchRunner(config, tensors.items(), TorchOptions(**options))


def on_numpy(given: tuple[DecoderConfig, dict[str, torch.Tensor]] | None = None, **options: Any) -> NumpyRunner:
    one_thread()
    config, tensors = given or tiny()
    return NumpyRunner(config, {name: tensor.float().numpy() for name, tensor in tensors.items()},
                       NumpyOptions(**options))


KINDS: dict[str, Kind] = {"torch": on_torch, "numpy": on_numpy}
