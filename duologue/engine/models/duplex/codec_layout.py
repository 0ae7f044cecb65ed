"""What is in ``codec/model.safetensors`` of a duplex checkpoint, and how far back the codec looks.

The decoder is a causal SEANet decoder (EnCodec, arXiv 2210.13438, without its LSTM) over one codebook:

* a code's row of ``embedding``, then ``conv_in``;
* for each upsampling factor f: ELU, a transposed convolution of stride f and kernel 2f of which the last f samples
  are left off (``upsample.i``; output t sees inputs t // f and t // f - 1), then ELU and a convolution, added to what
  it was made from (``residual.i``);
* ELU, ``conv_out``, tanh: samples of which 1 is full scale.

Convolutions have the kernel of the config and are padded with zeros on the left only, so that frame n of the codes
is samples [n, n + 1) * frame_samples and no sample depends on a later frame.
"""

from __future__ import annotations

from math import ceil, prod

from duologue.engine.models.duplex.config import CodecConfig

MIN_CHANNELS = 4
"""Channels are halved at each upsampling, down to this."""


def frame_samples(config: CodecConfig) -> int:
    """Samples of one frame."""
    return prod(config.upsample)


def channels(config: CodecConfig) -> tuple[int, ...]:
    """Channels before the first upsampling, and after each."""
    return tuple(max(config.hidden_size >> i, MIN_CHANNELS) if i else config.hidden_size
                 for i in range(len(config.upsample) + 1))


def tensors(config: CodecConfig) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor, all float32: convolutions (out, in, kernel), transposed ones (in, out, kernel).

    Rows drawn with a deviation of 1 (``embedding``) and 1 / sqrt(in * kernel) (the rest; for a transposed one
    1 / sqrt(2 * in)) keep the level through the layers, so that random weights are loud enough to be heard.
    """
    width = channels(config)
    shapes: dict[str, tuple[int, ...]] = {
        "embedding.weight": (config.codebook_size, width[0]),
        "conv_in.weight": (width[0], width[0], config.kernel),
        "conv_in.bias": (width[0],),
    }
    for i, factor in enumerate(config.upsample):
        shapes[f"upsample.{i}.weight"] = (width[i], width[i + 1], 2 * factor)
        shapes[f"upsample.{i}.bias"] = (width[i + 1],)
        shapes[f"residual.{i}.weight"] = (width[i + 1], width[i + 1], config.kernel)
        shapes[f"residual.{i}.bias"] = (width[i + 1],)
    shapes["conv_out.weight"] = (1, width[-1], config.kernel)
    shapes["conv_out.bias"] = (1,)
    return shapes


def left_context(config: CodecConfig) -> int:
    """Frames before a sample's own that it depends on, at most; a decoder given them makes the sample exactly."""
    back = config.kernel - 1
    """Positions at the rate of the layer at hand, walking from the waveform to the codes."""
    for factor in reversed(config.upsample):
        back = ceil((back + config.kernel - 1) / factor) + 1
    return back + config.kernel - 1
