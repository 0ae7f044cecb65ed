"""Hugging Face's Qwen3 and Llama, computing every position of a sequence anew: what runners are held against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

from duologue.engine.models.duplex import random
from duologue.engine.models.duplex.checkpoint import CheckpointOptions, load
from duologue.engine.models.duplex.config import DecoderConfig
from duologue.engine.runners.base import Embeddings, Finish, Generated, Piece, Rows, Runner, Sampling, Segment, Tokens
from duologue.engine.runners.torch import TorchOptions, TorchRunner

MARGIN = 1e-2
"""Logits of a golden run's tokens lie at least so far above the second: a hundred times what rounding does."""


@cache
def tiny() -> tuple[DecoderConfig, dict[str, torch.Tensor]]:
    """The thinker of the tiny random checkpoint."""
    torch.set_num_threads(1)
    checkpoint = load(CheckpointOptions(load_format="random", size="tiny", seed=SEED))
    return checkpoint.thinker, dict(checkpoint.tensors("thinker"))


SEED = 0


def tiny_weights(device: torch.device) -> Iterator[tuple[str, torch.Tensor]]:
    """Its tensors, as ``Weights``."""
    return ((name, tensor.to(device)) for name, tensor in tiny()[1].items())


def runner(**options: Any) -> TorchRunner:
    config, tensors = tiny()
    return TorchRunner(config, tensors.items(), TorchOptions(**options))


class Reference:
    """The same weights in ``Qwen3ForCausalLM`` or ``LlamaForCausalLM``."""

    def __init__(self, config: DecoderConfig, tensors: dict[str, torch.Tensor]) -> None:
        shape, model = (Qwen3Config, Qwen3ForCausalLM) if config.model_type == "qwen3" \
            else (LlamaConfig, LlamaForCausalLM)
        self._model = model(shape(**config.model_dump(exclude={"model_type", "rope_theta"}), rope_parameters={
            "rope_type": "default", "rope_theta": config.rope_theta})).eval()
        self._model.load_state_dict(tensors, strict=not config.tie_word_embeddings)
        self._model.tie_weights()

    @torch.inference_mode()
    def states(self, pieces: Iterable[Piece]) -> tuple[Rows, Rows]:
        """Hidden states and logits of every position."""
        embed = self._model.get_input_embeddings()
        rows = torch.cat([embed(torch.tensor(piece.ids)) if isinstance(piece, Tokens) else torch.from_numpy(piece.rows)
                          for piece in pieces if len(piece)])
        hidden = self._model.model(inputs_embeds=rows[None]).last_hidden_state[0]
        return hidden.numpy(), self._model.lm_head(hidden).numpy()

    def greedy(self, pieces: Sequence[Piece], count: int, stop: frozenset[int] = frozenset()) -> list[int]:
        """Tokens after ``pieces``; asserts that none was a close call."""
        tokens: list[int] = []
        while len(tokens) < count and not (tokens and tokens[-1] in stop):
            _, logits = self.states([*pieces, Tokens(tuple(tokens))])
            second, best = np.sort(logits[-1])[-2:]
            assert best - second > MARGIN, "choose another seed"
            tokens.append(int(logits[-1].argmax()))
        return tokens


@cache
def reference() -> Reference:
    return Reference(*tiny())


def embeddings(count: int, seed: int, width: int = 128) -> Embeddings:
    rows = np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)
    return Embeddings(rows, blake2b(rows.tobytes()).digest())


def tokens(count: int, seed: int, vocabulary: int = 256) -> Tokens:
    return Tokens(tuple(np.random.default_rng(seed).integers(vocabulary, size=count).tolist()))


@dataclass
class Told:
    """All that a runner said of one session's segment."""

    tokens: list[int] = field(default_factory=list)
    rows: dict[int, Rows] = field(default_factory=dict)
    finish: Finish | None = None
    cached: int = 0
    detail: str = ""

    def hear(self, said: Generated) -> None:
        assert self.finish is None, "nothing is said of a segment that is over"
        self.tokens += said.tokens
        for i, row in enumerate(said.rows if said.rows is not None else ()):
            assert said.first_row + i not in self.rows, "deltas only"
            self.rows[said.first_row + i] = row
        self.finish, self.cached, self.detail = said.finish, said.cached, said.detail


def hear(made: Runner, told: dict[str, Told]) -> list[Generated]:
    """Do one step and file what was said."""
    said = list(made.step())
    for one in said:
        told.setdefault(one.session, Told()).hear(one)
    return said


def finish(made: Runner, *segments: Segment) -> dict[str, Told]:
    """Submit segments and step until all are over."""
    told: dict[str, Told] = {}
    for segment in segments:
        made.submit(segment)
    while made.ready:
        hear(made, told)
    assert all(one.finish is not None for one in told.values())
    return told


def segment(session: str, keep: int, pieces: Sequence[Piece], max_tokens: int | None = None,
            hidden: Literal["none", "generated", "all"] = "none", stop: Iterable[int] = ()) -> Segment:
    """A greedy segment; without ``max_tokens`` nothing is generated."""
    sampling = None if max_tokens is None else Sampling(max_tokens=max_tokens, stop=frozenset(stop))
    return Segment(session, keep, tuple(pieces), sampling, hidden)


def small(**changes: Any) -> tuple[DecoderConfig, dict[str, torch.Tensor]]:
    """A decoder that is smaller still, with the distributions of a random checkpoint's."""
    torch.set_num_threads(1)
    config = DecoderConfig(**{
        "vocab_size": 40, "hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 512, **changes})
    shape = random.Shape(random.shape("tiny").config, config, config, torch.float32)
    return config, dict(random.tensors("thinker", shape, 1, torch.device("cpu")))
