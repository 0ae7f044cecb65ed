"""What the flow is told of a voice: the codes, the mel frames and the speaker of a reference recording.

Codes are found by the speech tokenizer that the talker's codes are of, the speaker by CAM++ (arXiv 2303.00332). Both
come with the release as ONNX files.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray

from duologue.engine.config import ConfigError
from duologue.engine.models.minicpmo.token2wav.config import FRAME_RATE, Token2wavConfig
from duologue.engine.models.minicpmo.token2wav.features import (
    Samples,
    code_frames,
    prompt_frames,
    speaker_frames,
)

TOKENIZER = "speech_tokenizer_v2_25hz.onnx"
SPEAKER = "campplus.onnx"
ONNX_FILES = (TOKENIZER, SPEAKER)
"""Files of a token2wav folder that hear a reference."""

_MADE_S = 2
"""Length of a prompt that is made up, in seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """A reference as the flow is given it."""

    codes: torch.Tensor
    """(n), int64."""
    mel: torch.Tensor
    """(2 n, bands), float32."""
    speaker: torch.Tensor
    """(spk_embed_dim), float32."""


class PromptReader:
    """Hears references."""

    def __init__(self, folder: Path, config: Token2wavConfig) -> None:
        """``folder`` is the token2wav folder. Raises ``ConfigError`` when its networks cannot be opened."""
        self._config = config
        self._tokenizer, self._speaker = (_open(folder / name) for name in ONNX_FILES)

    def read(self, hearing: Samples, speaking: Samples, name: str) -> Prompt:
        """Hear one recording at 16 kHz, ``hearing``, and at the vocoder's rate, ``speaking``.

        Raises ``ConfigError`` that names it, by ``name``, when the networks make nothing of it.
        """
        config = self._config
        frames = code_frames(hearing).T[None]
        codes = _run(self._tokenizer, name, frames, np.array([frames.shape[2]], np.int32)).ravel()
        speaker = _run(self._speaker, name, speaker_frames(hearing)[None]).ravel()
        if not len(codes) or not 0 <= codes.min() <= codes.max() < config.flow.vocab_size:
            raise ConfigError(f"{name}: {TOKENIZER} makes no codes of it that the flow knows; is it the tokenizer of "
                              f"this checkpoint?")
        if len(speaker) != config.flow.spk_embed_dim:
            raise ConfigError(f"{SPEAKER}: tells speakers apart by {len(speaker)} numbers, but flow.spk_embed_dim is "
                              f"{config.flow.spk_embed_dim}")
        mel = prompt_frames(speaking, config.hift.sampling_rate, config.hift.frame_samples, config.flow.output_size)
        frames_wanted = len(codes) * config.flow.encoder.up_stride
        mel = np.pad(mel[:frames_wanted], ((0, max(0, frames_wanted - len(mel))), (0, 0)), mode="edge")
        return Prompt(torch.from_numpy(codes.astype(np.int64)), torch.from_numpy(mel),
                      torch.from_numpy(speaker.astype(np.float32)))


def made(config: Token2wavConfig, seed: int) -> Prompt:
    """Make up a prompt, for weights that are made up as well."""
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(config.flow.vocab_size, (_MADE_S * FRAME_RATE,), generator=generator)
    return Prompt(codes, torch.randn(len(codes) * config.flow.encoder.up_stride, config.flow.output_size,
                                     generator=generator),
                  torch.randn(config.flow.spk_embed_dim, generator=generator))


def _open(file: Path) -> onnxruntime.InferenceSession:
    if not file.is_file():
        raise ConfigError(f"{file}: absent. It hears the reference recordings; copy it from assets/token2wav of the "
                          f"release")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # The library's exceptions have no base of their own.
        raise ConfigError(f"{file}: no ONNX network: {error}") from None


def _run(session: onnxruntime.InferenceSession, name: str, *inputs: NDArray[Any]) -> NDArray[Any]:
    wanted = [each.name for each in session.get_inputs()]
    try:
        output: NDArray[Any] = session.run(None, dict(zip(wanted, inputs, strict=True)))[0]
    except Exception as error:  # As above.
        raise ConfigError(f"{name}: cannot be heard as a voice: {error}") from None
    return output
