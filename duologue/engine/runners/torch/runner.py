"""The own autoregressive runner's arithmetic on PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import torch

from duologue.engine.config import ConfigError
from duologue.engine.models.duplex.config import DecoderConfig
from duologue.engine.runners.base import Generated, Rows
from duologue.engine.runners.sampling import choose
from duologue.engine.runners.stepped import SteppedOptions, SteppedRunner, Work
from duologue.engine.runners.torch.batch import Batch
from duologue.engine.runners.torch.decoder import Decoder
from duologue.engine.runners.torch.graphs import DecodeGraphs
from duologue.engine.runners.torch.kv import KvPool


class TorchOptions(SteppedOptions):
    """What the runner may take of the machine."""

    device: str = "cpu"
    """``cpu``, ``cuda`` or ``cuda:N``."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Of weights, KV and activations."""


class TorchRunner(SteppedRunner[KvPool, torch.Tensor]):
    """A ``Runner``. Tensors come by the names that ``Decoder`` takes, in any type; others are passed over.

    Raises ``ConfigError`` when a tensor is missing, the device is absent, or ``options`` do not fit the model.
    """

    def __init__(self, config: DecoderConfig, tensors: Iterable[tuple[str, torch.Tensor]],
                 options: TorchOptions) -> None:
        self._device, dtype = find_device(options.device), getattr(torch, options.dtype)
        with torch.inference_mode():
            super().__init__(config, options, KvPool(
                config.num_hidden_layers, config.num_key_value_heads, config.head_dim, options.positions,
                options.block, self._device, dtype))
            self._decoder = Decoder(config, tensors, options.max_length, self._device, dtype)
            self._graphs = DecodeGraphs(self._decoder, self._kv, options.max_sessions, options.max_length) \
                if self._device.type == "cuda" else None

    @torch.inference_mode()
    def step(self) -> Sequence[Generated]:
        """See ``Runner``."""
        return super().step()

    def _forward(self, works: Sequence[Work]) -> torch.Tensor:
        batch = Batch(works, self._kv, self._device)
        if self._graphs is None:
            return self._decoder.forward(batch.inputs(self._decoder), batch.positions, batch.attention(pad=False))
        if batch.generates_only:
            return self._graphs.forward(batch)
        return self._decoder.forward(batch.inputs(self._decoder), batch.positions, batch.attention(pad=True))

    def _finite(self, states: torch.Tensor) -> list[bool]:
        finite: list[bool] = states.isfinite().all(dim=-1).tolist()
        return finite

    def _choose(self, works: Sequence[Work], states: torch.Tensor) -> list[int]:
        logits = self._decoder.logits(states[[work.rows.stop - 1 for work in works]])
        return choose(logits, [work.progress.sampling for work in works], [work.progress.tokens for work in works])

    def _rows(self, states: torch.Tensor, rows: slice) -> Rows:
        copied: Rows = states[rows].float().cpu().numpy().copy()
        return copied


def find_device(name: str) -> torch.device:
    """Give the device of that name; raises ``ConfigError`` when it is none, or absent."""
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"device is {name!r}, must be cpu, cuda or cuda:N") from None
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"device is {name!r}, must be cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"device is {name!r}, but {torch.cuda.device_count()} GPUs can be used here")
    return device
