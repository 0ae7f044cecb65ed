"""The thinker in torch: a decoder as Qwen3 (arXiv 2505.09388), small; its names are those of ``Qwen3ForCausalLM``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, linear, rms_norm, silu

from training import course, device
from training.thinker import meanings

FILE, NAME = "thinker.pt", "taught"
"""Where a training keeps the weights, and under which name."""
_INSIDE = "thinker."
WIDTH, INNER = 256, 768
LAYERS = 6
HEADS, KV_HEADS, HEAD = 4, 2, 64
EPSILON = 1e-6
THETA = 1e4
"""Base of the rotary positions: a session is short."""
LONGEST = 1024
_SPREAD = 0.02
_DROPPED = 0.1
"""Share of what a layer adds that training leaves out: the same templates come thousands of times."""


def config(vocabulary: int) -> dict[str, Any]:
    """``config.json`` of a thinker with that many tokens."""
    return {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": vocabulary,
            "hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD, "hidden_act": "silu",
            "max_position_embeddings": LONGEST, "rms_norm_eps": EPSILON, "rope_theta": THETA, "rope_scaling": None,
            "tie_word_embeddings": True, "attention_bias": False, "attention_dropout": 0.0, "use_cache": True,
            "bos_token_id": None, "eos_token_id": None, "torch_dtype": "float16"}


class _Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x.float(), self.weight.shape, self.weight, EPSILON)


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q_proj = nn.Linear(WIDTH, HEADS * HEAD, bias=False)
        self.k_proj = nn.Linear(WIDTH, KV_HEADS * HEAD, bias=False)
        self.v_proj = nn.Linear(WIDTH, KV_HEADS * HEAD, bias=False)
        self.o_proj = nn.Linear(HEADS * HEAD, WIDTH, bias=False)
        self.q_norm, self.k_norm = _Norm(HEAD), _Norm(HEAD)

    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor], sees: Tensor) -> Tensor:
        query = _turned(self.q_norm(_heads(self.q_proj(x))), turns)
        key = _turned(self.k_norm(_heads(self.k_proj(x))), turns)
        value = _heads(self.v_proj(x))
        key, value = (each.to(value.dtype).repeat_interleave(HEADS // KV_HEADS, 1) for each in (key, value))
        # On a CPU two products are faster than the fused kernel, which is slow with a mask.
        with device.mixed(enabled=False):
            scores = (query * HEAD**-0.5).to(value.dtype) @ key.transpose(2, 3)
            read = (scores + sees.to(value.dtype)).softmax(-1) @ value
        mixed: Tensor = self.o_proj(read.transpose(1, 2).flatten(2))
        return mixed


class _Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(WIDTH, INNER, bias=False)
        self.up_proj = nn.Linear(WIDTH, INNER, bias=False)
        self.down_proj = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.down_proj(silu(self.gate_proj(x)) * self.up_proj(x))
        return made


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = _Norm(WIDTH), _Norm(WIDTH)
        self.self_attn, self.mlp = _Attention(), _Mlp()

    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor], sees: Tensor) -> Tensor:
        x = x + dropout(self.self_attn(self.input_layernorm(x), turns, sees), _DROPPED, self.training)
        return x + dropout(self.mlp(self.post_attention_layernorm(x)), _DROPPED, self.training)


class _Decoder(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, WIDTH)
        self.layers = nn.ModuleList([_Layer() for _ in range(LAYERS)])
        self.norm = _Norm(WIDTH)


class Thinker(nn.Module):
    """``vocabulary`` is how many tokens there are."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.model = _Decoder(vocabulary)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                # As deep a sum keeps its size (GPT-2's initialisation).
                deep = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(parameter, std=_SPREAD * ((2 * LAYERS) ** -0.5 if deep else 1.0))

    def states(self, tokens: Tensor, positions: Tensor, sees: Tensor) -> Tensor:
        """Normed states (batch, length, WIDTH) of token ids and positions (batch, length).

        ``sees``, bool (batch, length, length), says which tokens each one attends to.
        """
        turns = _turns(positions)
        x = self.model.embed_tokens(tokens)
        hidden = torch.zeros(sees.shape, device=sees.device).masked_fill(~sees, -torch.inf)[:, None]
        for layer in self.model.layers:
            x = layer(x, turns, hidden)
        states: Tensor = self.model.norm(x)
        return states

    def logits(self, states: Tensor) -> Tensor:
        """Logits of the next token, for states (..., WIDTH)."""
        return linear(states, self.model.embed_tokens.weight)


class Taught(nn.Module):
    """The thinker as it is trained: it also tells what a sentence means, as ``meanings`` has it, from the state of the
    token behind which it answers."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.thinker = Thinker(vocabulary)
        self.meaning = nn.Linear(WIDTH, meanings.WIDTH)


def trained(folder: Path) -> dict[str, Tensor]:
    """The weights of the thinker that was trained in ``folder``, by name."""
    state = course.weights(folder / FILE, NAME)
    return {name.removeprefix(_INSIDE): tensor for name, tensor in state.items() if name.startswith(_INSIDE)}


def _heads(x: Tensor) -> Tensor:
    return x.view(*x.shape[:-1], -1, HEAD).transpose(1, 2)


def _turns(positions: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines, (batch, 1, length, HEAD), of the rotary positions (arXiv 2104.09864)."""
    frequencies = THETA ** -(torch.arange(0, HEAD, 2, device=positions.device) / HEAD)
    angles = (positions[..., None] * frequencies).repeat(1, 1, 2)[:, None]
    return angles.cos(), angles.sin()


def _turned(x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    cosine, sine = turns
    low, high = x.chunk(2, -1)
    return x * cosine + torch.cat([-high, low], -1) * sine
