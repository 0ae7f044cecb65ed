"""The thinker of MiniCPM-o 4.5: units of 1 s in, for each a decision in tokens, text with its states out.

It is the duplex thinker over the release's ears and language model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from pydantic import Field

from duologue.engine.config import ConfigError, PipelineConfig
from duologue.engine.models.duplex.mind import Model
from duologue.engine.models.duplex.thinker import SessionOptions, Thinker
from duologue.engine.models.duplex.words import Words
from duologue.engine.models.minicpmo.checkpoint import CheckpointOptions, load
from duologue.engine.models.minicpmo.format import Format, SamplingOptions
from duologue.engine.models.minicpmo.hearing.ear import Ear
from duologue.engine.models.minicpmo.voices import ReferenceOptions, Voices, require
from duologue.engine.models.minicpmo.weights import thinker_weights
from duologue.engine.models.options import read_options
from duologue.engine.models.stored import sourced
from duologue.engine.runners.base import Embeddings
from duologue.engine.runners.opening import RunnerOptions, open_runner
from duologue.engine.runners.torch.runner import find_device
from duologue.engine.runners.window import WindowConfig
from duologue.strict import Strict


class EarOptions(Strict):
    """Where the audio encoder runs."""

    device: str = "cpu"
    """``cpu``, ``cuda`` or ``cuda:N``."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Of weights and activations."""


class ThinkerOptions(CheckpointOptions, RunnerOptions, SessionOptions, ReferenceOptions):
    """Options of the MiniCPM-o thinker."""

    sampling: SamplingOptions = SamplingOptions()
    window: WindowConfig | None = Field(default=WindowConfig(rule="text"))
    ear: EarOptions = EarOptions()


def create(options: Mapping[str, Any], pipeline: PipelineConfig) -> Thinker:
    """The thinker of a MiniCPM-o 4.5 pipeline; its options are :class:`ThinkerOptions`."""
    wanted = read_options(ThinkerOptions, sourced(options, pipeline), "MiniCPM-o thinker")
    checkpoint = load(wanted)
    config = checkpoint.config
    if pipeline.unit_ms != config.unit_ms:
        raise ConfigError(f"unit_ms is {pipeline.unit_ms}, but the checkpoint's units are of {config.unit_ms} ms")
    voices = Voices(wanted, checkpoint.folder)
    if checkpoint.folder is not None:
        require(voices, checkpoint.folder)
    device = find_device(wanted.ear.device)
    ear = Ear(config, checkpoint.tensors("hearing", device), device, getattr(torch, wanted.ear.dtype))
    form = Format(config, checkpoint.tokens, checkpoint.tokenizer, wanted.sampling, references(ear, voices))
    runner = open_runner(checkpoint.thinker, thinker_weights(wanted), wanted)
    return Thinker(runner, Model(form, Words(checkpoint.tokenizer), ear, wanted.max_typed_tokens, wanted.floor),
                   wanted.window)


def references(ear: Ear, voices: Voices) -> Callable[[str], Embeddings | None]:
    """What gives the rows of the reference recording that a session has which asked for a voice."""
    clips = {name: ear.clip(pcm) for name in voices.names if (pcm := voices.load(name)) is not None}

    def rows(asked: str) -> Embeddings | None:
        name = voices.resolve(asked)
        return None if name is None else clips[name]

    return rows
