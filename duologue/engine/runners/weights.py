"""Where a runner has a decoder's tensors from."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

Weights = Callable[[torch.device], Iterator[tuple[str, torch.Tensor]]]
"""Gives names and tensors on a device, one after the other, read or made as they are asked for.

Names are those of ``Qwen3ForCausalLM`` or ``LlamaForCausalLM``. It can be pickled: vLLM calls it in a process
of its own.
"""
