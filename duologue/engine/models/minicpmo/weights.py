"""The decoders of a checkpoint as runners want them: where their tensors come from, and by what names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from duologue.engine.models.minicpmo.checkpoint import CheckpointOptions, load
from duologue.engine.models.stored import Tensors
from duologue.engine.runners.weights import Weights

_LENGTH = "head_code.0.parametrizations.weight.original0"
_DIRECTION = "head_code.0.parametrizations.weight.original1"


def thinker_weights(options: CheckpointOptions) -> Weights:
    """Those of ``Qwen3ForCausalLM``, whatever else is in the checkpoint's files."""
    return partial(_thinker, _source(options))


def talker_weights(options: CheckpointOptions) -> Weights:
    """Those of ``LlamaForCausalLM`` over codes; the tensors that make its conditions are left out."""
    return partial(_talker, _source(options))


def _source(options: CheckpointOptions) -> CheckpointOptions:
    """Give only what says where the checkpoint comes from: it goes to another process."""
    return CheckpointOptions.model_validate(options.model_dump(include=set(CheckpointOptions.model_fields)))


def _thinker(source: CheckpointOptions, device: torch.device) -> Tensors:
    return load(source).tensors("thinker", device)


def _talker(source: CheckpointOptions, device: torch.device) -> Iterator[tuple[str, torch.Tensor]]:
    head: dict[str, torch.Tensor] = {}
    for name, tensor in load(source).tensors("talker", device):
        if name.startswith("model."):
            yield name, tensor
        elif name == "emb_code.0.weight":
            yield "model.embed_tokens.weight", tensor
        elif name in (_LENGTH, _DIRECTION):
            head[name] = tensor
    yield "lm_head.weight", merged(head[_LENGTH], head[_DIRECTION])


def merged(length: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
    """A matrix (out, in) of its rows' ``length`` (out, 1) and ``direction`` (out, in), arXiv 1602.07868; float32."""
    rows = direction.float()
    matrix: torch.Tensor = rows * (length.float() / rows.norm(dim=1, keepdim=True))
    return matrix
