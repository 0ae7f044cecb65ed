"""Token2wav at its tiny size: weights, a prompt and codes, the same wherever numpy is."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from duologue.engine.models.minicpmo.token2wav import layout
from duologue.engine.models.minicpmo.token2wav.config import TINY
from duologue.engine.models.minicpmo.token2wav.flow import Flow, Voice
from duologue.engine.models.minicpmo.token2wav.hift import Hift
from duologue.engine.models.minicpmo.token2wav.vocoder import Vocoder

STEPS = 5
PROMPT_CODES = 10
NOISE_FRAMES = 800
SOURCE_NOISE = 24_000


def draw(name: str, *size: int) -> torch.Tensor:
    """Normal numbers, float32, that ``name`` stands for."""
    seed = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(size, np.float32))


@cache
def tensors() -> dict[str, torch.Tensor]:
    """All tensors, by the names of ``layout.tensors``."""
    made = {}
    for name, size in layout.tensors(TINY).items():
        mean, deviation = layout.distribution(name, size)
        made[name] = draw(name, *size) * deviation + mean
    return made


def part(file: layout.File) -> dict[str, torch.Tensor]:
    """Those of one file."""
    return {name.removeprefix(f"{file}."): tensor for name, tensor in tensors().items() if name.startswith(f"{file}.")}


def noise() -> torch.Tensor:
    """Noise of the flow, (frames, bands)."""
    return draw("noise", NOISE_FRAMES, TINY.flow.output_size)


def source_noise() -> torch.Tensor:
    """Noise of the source, (samples, harmonics), from 0 to 1."""
    return draw("source noise", SOURCE_NOISE, TINY.hift.nb_harmonics + 1).abs() % 1


def codes(name: str, count: int) -> list[int]:
    """Codes that ``name`` stands for."""
    return [int(code) for code in (draw(name, count).abs() * 1e4).long() % TINY.flow.vocab_size]


@dataclass(frozen=True)
class PromptParts:
    """A prompt: codes (n), mel (2 n, bands), speaker (192)."""

    codes: torch.Tensor
    mel: torch.Tensor
    speaker: torch.Tensor


def prompt(name: str = "prompt", count: int = PROMPT_CODES) -> PromptParts:
    """A prompt of ``count`` codes."""
    return PromptParts(torch.tensor(codes(name, count)), draw(f"{name} mel", 2 * count, TINY.flow.output_size),
                       draw(f"{name} speaker", TINY.flow.spk_embed_dim))


def flow() -> Flow:
    """The flow."""
    return Flow(TINY.flow, part("flow"), STEPS, noise())


def voice(made: Flow, name: str = "prompt", count: int = PROMPT_CODES) -> Voice:
    """A voice as ``made`` hears it."""
    given = prompt(name, count)
    return made.voice(given.codes, given.mel, given.speaker)


def vocoder() -> Vocoder:
    """The vocoder."""
    return Vocoder(Hift(TINY.hift, part("hift"), source_noise()))
