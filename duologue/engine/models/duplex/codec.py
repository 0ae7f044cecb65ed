"""The duplex codec: codes to waveform, by the causal decoder that ``codec_layout`` describes.

It keeps nothing between chunks: a chunk's frames come with the frames before them that its samples depend on. Chunks
of many replies are one padded forward pass.

Every sample is a sum whose order changes with the length of a chunk and with what is decoded beside it. In double
precision two orders differ by some 1e-16 of full scale, so that samples rounded to 16 bits are the same, however the
frames were cut and whoever else spoke. In single precision some of them differ in their last bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch.nn import functional

from duologue.engine.config import ConfigError, PipelineConfig
from duologue.engine.messages import Fence, Pcm
from duologue.engine.models.codec_stage import Chunk, CodecStage, Frames
from duologue.engine.models.duplex import codec_layout
from duologue.engine.models.duplex.checkpoint import CheckpointOptions, load
from duologue.engine.models.duplex.config import CodecConfig
from duologue.engine.models.options import read_options
from duologue.engine.models.stored import sourced

_FULL_SCALE = 32767.0


class CodecOptions(CheckpointOptions):
    """Options of the duplex codec."""

    device: str = "cpu"
    """A torch device."""
    dtype: Literal["float64", "float32"] = "float64"
    """What it computes in: ``float32`` is faster, above all on a GPU, and the last bit of a sample may then depend on
    how its frames were cut and on who else spoke."""
    threads: int = Field(default=1, gt=0)
    """CPU threads that torch may use in the stage's process."""
    max_batch: int = Field(default=4, gt=0)
    """Chunks decoded together. More than a few do not fit a CPU's cache (of the tiny codec, 10 frames cost one core
    2.0 ms alone, 2.5 by four, 6.4 by sixteen); a GPU has room for many."""


class CausalDecoder:
    """The network."""

    def __init__(self, config: CodecConfig, tensors: Mapping[str, torch.Tensor]) -> None:
        """``tensors`` are those of ``codec_layout.tensors``, of one type and on one device."""
        self._upsample = config.upsample
        self._pad = config.kernel - 1
        self._tensors = tensors
        self.device = tensors["embedding.weight"].device

    @torch.inference_mode()
    def __call__(self, codes: torch.Tensor) -> torch.Tensor:
        """Samples (batch, frames * frame_samples), of which 1 is full scale, of codes (batch, frames)."""
        weights = self._tensors
        x = functional.embedding(codes, weights["embedding.weight"]).transpose(1, 2)
        x = self._convolve(x, "conv_in")
        for i, factor in enumerate(self._upsample):
            x = functional.conv_transpose1d(functional.elu(x), weights[f"upsample.{i}.weight"],
                                            weights[f"upsample.{i}.bias"], stride=factor)[..., :-factor]
            x = x + self._convolve(functional.elu(x), f"residual.{i}")
        return torch.tanh(self._convolve(functional.elu(x), "conv_out"))[:, 0]

    def _convolve(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return functional.conv1d(functional.pad(x, (self._pad, 0)), self._tensors[f"{name}.weight"],
                                 self._tensors[f"{name}.bias"])


class BatchDecoder:
    """Decodes the chunks of many replies in one forward pass."""

    delay_samples = 0

    def __init__(self, config: CodecConfig, network: CausalDecoder, most_chunks: int) -> None:
        self.frame_samples = codec_layout.frame_samples(config)
        self.sample_rate = config.sample_rate
        self.most_chunks = most_chunks
        self._codebook_size = config.codebook_size
        self._network = network

    def begin(self, fence: Fence, voice: str) -> None:
        """Nothing is kept, and there is one voice."""

    def check(self, frames: Frames) -> Frames:
        """The frames themselves, int32 (frames, 1); raises ``ValueError`` for any other, and for unknown codes."""
        if frames.dtype != np.int32 or frames.shape[1:] != (1,):
            raise ValueError(f"the duplex codec reads int32 frames of one code, not {frames.dtype} of "
                             f"{frames.shape[1:]}")
        if len(frames) and not 0 <= frames.min() <= frames.max() < self._codebook_size:
            raise ValueError(f"the codes {frames.min()} to {frames.max()} are not all in the codebook of "
                             f"{self._codebook_size}")
        return frames

    def decode(self, chunks: Sequence[Chunk[None]]) -> list[Pcm]:
        """The samples of each chunk. It looks back only, so that padding after a chunk changes nothing in it."""
        codes = np.zeros((len(chunks), max(len(chunk.frames) for chunk in chunks)), np.int64)
        for row, chunk in zip(codes, chunks, strict=True):
            row[:len(chunk.frames)] = chunk.frames[:, 0]
        sound = to_pcm(self._network(torch.from_numpy(codes).to(self._network.device)))
        return [row[chunk.left_context * self.frame_samples:len(chunk.frames) * self.frame_samples]
                for row, chunk in zip(sound, chunks, strict=True)]


def to_pcm(sound: torch.Tensor) -> NDArray[np.int16]:
    """Samples of which 1 is full scale, rounded to 16 bits."""
    pcm: NDArray[np.int16] = (sound * _FULL_SCALE).round_().to(torch.int16).cpu().numpy()
    return pcm


def create(options: Mapping[str, Any], pipeline: PipelineConfig) -> CodecStage[None]:
    """The codec of a duplex pipeline; its options are :class:`CodecOptions`."""
    wanted = read_options(CodecOptions, sourced(options, pipeline), "duplex codec")
    checkpoint = load(wanted)
    config = checkpoint.config.codec
    if config.frame_rate * codec_layout.frame_samples(config) != config.sample_rate:
        raise ConfigError(f"config.json: codec: {config.frame_rate:g} frames a second of "
                          f"{codec_layout.frame_samples(config)} samples (the product of upsample) are not "
                          f"sample_rate {config.sample_rate}")
    if pipeline.output_rate != config.sample_rate:
        raise ConfigError(f"this codec's waveform has {config.sample_rate} Hz: set output_rate to {config.sample_rate}")
    context = codec_layout.left_context(config)
    if pipeline.chunking.codec_left_context_frames < context:
        raise ConfigError(f"this codec looks {context} frames back: set chunking.codec_left_context_frames to "
                          f"{context}")
    if wanted.device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"device: {wanted.device}: torch finds no GPU here; set device to cpu")
    torch.set_num_threads(wanted.threads)
    dtype = {"float64": torch.float64, "float32": torch.float32}[wanted.dtype]
    tensors = {name: tensor.to(dtype) for name, tensor in checkpoint.tensors("codec", wanted.device)}
    return CodecStage(BatchDecoder(config, CausalDecoder(config, tensors), wanted.max_batch), pipeline.chunking)
