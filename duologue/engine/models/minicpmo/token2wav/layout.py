"""Which tensors a token2wav folder consists of: names and shapes.

``flow.safetensors`` and ``hift.safetensors`` hold them by their released names, but for this: a convolution whose
weight is released in two factors (direction and length, arXiv 1602.07868) is stored multiplied out, as ``weight``.
"""

from __future__ import annotations

from itertools import accumulate
from math import sqrt
from operator import mul
from typing import Literal

from duologue.engine.models.minicpmo.token2wav.config import FlowConfig, HiftConfig, Token2wavConfig

Shapes = dict[str, tuple[int, ...]]

File = Literal["flow", "hift"]
FILES: tuple[File, ...] = ("flow", "hift")

TIME_WIDTH = 256
"""Sines and cosines that tell the estimator the time of the flow."""
ESTIMATOR_KERNEL = 3
F0_KERNELS = (4, 3, 3, 3, 3)
"""Of the layers that find the fundamental; the first looks ahead."""
POST_KERNEL = 7


def tensors(config: Token2wavConfig) -> Shapes:
    """Name and shape of every tensor, float32: ``flow.`` and ``hift.`` stand before the names in these files.

    Matrices are (out, in), convolutions (out, in, kernel).
    """
    return {f"{file}.{name}": shape for file in FILES for name, shape in file_tensors(file, config).items()}


def file_tensors(file: File, config: Token2wavConfig) -> Shapes:
    """Name and shape of every tensor of one file."""
    return flow_tensors(config.flow) if file == "flow" else hift_tensors(config.hift)


def flow_tensors(config: FlowConfig) -> Shapes:
    """Tensors of the flow."""
    encoder, estimator = config.encoder, config.estimator
    size, mel = encoder.output_size, config.output_size
    shapes: Shapes = {
        "input_embedding.weight": (config.vocab_size, config.input_size),
        **_linear("spk_embed_affine_layer", mel, config.spk_embed_dim),
        **_convolution("encoder.pre_lookahead_layer.conv1", size, size, encoder.pre_lookahead_len + 1),
        **_convolution("encoder.pre_lookahead_layer.conv2", size, size, 3),
        **_convolution("encoder.up_layer.conv", size, size, 2 * encoder.up_stride + 1),
        **_norm("encoder.after_norm", size),
        **_linear("encoder_proj", mel, size),
    }
    for embed in ("encoder.embed", "encoder.up_embed"):
        shapes |= _linear(f"{embed}.out.0", size, config.input_size) | _norm(f"{embed}.out.1", size)
    for group, layers in (("encoders", encoder.num_blocks), ("up_encoders", encoder.num_up_blocks)):
        for i in range(layers):
            at = f"encoder.{group}.{i}"
            for name in ("linear_q", "linear_k", "linear_v", "linear_out"):
                shapes |= _linear(f"{at}.self_attn.{name}", size, size)
            heads = (encoder.attention_heads, size // encoder.attention_heads)
            shapes |= {f"{at}.self_attn.linear_pos.weight": (size, size), f"{at}.self_attn.pos_bias_u": heads,
                       f"{at}.self_attn.pos_bias_v": heads}
            shapes |= _linear(f"{at}.feed_forward.w_1", encoder.linear_units, size)
            shapes |= _linear(f"{at}.feed_forward.w_2", size, encoder.linear_units)
            shapes |= _norm(f"{at}.norm_ff", size) | _norm(f"{at}.norm_mha", size)
    return shapes | _estimator(config, estimator.hidden_size, estimator.num_heads * estimator.head_dim)


def _estimator(config: FlowConfig, size: int, inner: int) -> Shapes:
    estimator, at = config.estimator, "decoder.estimator"
    shapes = {**_linear(f"{at}.t_embedder.mlp.0", size, TIME_WIDTH), **_linear(f"{at}.t_embedder.mlp.2", size, size),
              **_linear(f"{at}.in_proj", size, 4 * config.output_size)}
    for i in range(estimator.depth):
        block = f"{at}.blocks.{i}"
        for name in ("to_q", "to_k", "to_v"):
            shapes |= _linear(f"{block}.attn.{name}", inner, size)
        shapes |= _norm(f"{block}.attn.q_norm", estimator.head_dim) | _norm(f"{block}.attn.k_norm", estimator.head_dim)
        shapes |= _linear(f"{block}.attn.proj", size, inner)
        shapes |= _linear(f"{block}.mlp.fc1", estimator.mlp_size, size)
        shapes |= _linear(f"{block}.mlp.fc2", size, estimator.mlp_size)
        shapes |= _convolution(f"{block}.conv.block.1", size, size, ESTIMATOR_KERNEL)
        shapes |= _norm(f"{block}.conv.block.3", size)
        shapes |= _convolution(f"{block}.conv.block.6", size, size, ESTIMATOR_KERNEL)
        shapes |= _linear(f"{block}.adaLN_modulation.1", 9 * size, size)
    shapes |= _linear(f"{at}.final_layer.adaLN_modulation.1", 2 * size, size)
    return shapes | _linear(f"{at}.final_layer.linear", config.output_size, size)


def hift_tensors(config: HiftConfig) -> Shapes:
    """Tensors of the vocoder."""
    spectrum = config.istft_params.n_fft + 2
    width = channels(config)
    shapes: Shapes = {
        **_linear("m_source.l_linear", 1, config.nb_harmonics + 1),
        **_convolution("conv_pre", width[0], config.in_channels, config.conv_pre_look_right + 1),
        **_convolution("conv_post", spectrum, width[-1], POST_KERNEL),
        **_linear("f0_predictor.classifier", 1, config.f0_channels),
    }
    for i, kernel in enumerate(F0_KERNELS):
        shapes |= _convolution(f"f0_predictor.condnet.{2 * i}", config.f0_channels,
                               config.f0_channels if i else config.in_channels, kernel)
    kernels = len(config.resblock_kernel_sizes)
    for i, factor in enumerate(source_strides(config)):
        shapes |= _convolution(f"ups.{i}", width[i + 1], width[i], config.upsample_kernel_sizes[i])
        shapes |= _convolution(f"source_downs.{i}", width[i + 1], spectrum, 2 * factor if factor > 1 else 1)
        shapes |= _residual(f"source_resblocks.{i}", width[i + 1], config.source_resblock_kernel_sizes[i],
                            len(config.source_resblock_dilation_sizes[i]))
        for j, (kernel, dilations) in enumerate(zip(config.resblock_kernel_sizes, config.resblock_dilation_sizes,
                                                    strict=True)):
            shapes |= _residual(f"resblocks.{i * kernels + j}", width[i + 1], kernel, len(dilations))
    return shapes


def channels(config: HiftConfig) -> tuple[int, ...]:
    """Channels before the first upsampling, and after each."""
    return tuple(config.base_channels >> i for i in range(len(config.upsample_rates) + 1))


def source_strides(config: HiftConfig) -> tuple[int, ...]:
    """How many spectra of the source one position of each stage stands for."""
    later = [*config.upsample_rates[1:], 1]
    return tuple(accumulate(reversed(later), mul))[::-1]


def distribution(name: str, shape: tuple[int, ...]) -> tuple[float, float]:
    """Mean and deviation of a random tensor's values, by its name in ``tensors``, so that the level stays near 1.

    The fundamental comes out at some 100 Hz, and the sound loud enough to be heard.
    """
    if name == "hift.f0_predictor.classifier.bias":
        return 120.0, 0.0
    if name == "hift.f0_predictor.classifier.weight":
        return 0.0, 40.0 / sqrt(shape[1])
    if name == "hift.conv_post.bias":
        return -2.0, 0.5
    if name.endswith("alpha"):
        return 1.0, 0.1
    if name.endswith("bias"):
        return 0.0, 0.02
    if len(shape) == 1:
        return 1.0, 0.1
    if name.endswith("embedding.weight"):
        return 0.0, 1.0
    if name.endswith(("pos_bias_u", "pos_bias_v")):
        return 0.0, 0.1
    fan_in = shape[1] * (shape[2] if len(shape) == 3 else 1)
    gain = 0.3 if "resblocks" in name or "adaLN_modulation" in name else 1.0
    return 0.0, gain / sqrt(fan_in)


def _residual(name: str, width: int, kernel: int, count: int) -> Shapes:
    shapes: Shapes = {}
    for i in range(count):
        shapes |= _convolution(f"{name}.convs1.{i}", width, width, kernel)
        shapes |= _convolution(f"{name}.convs2.{i}", width, width, kernel)
        shapes |= {f"{name}.activations1.{i}.alpha": (width,), f"{name}.activations2.{i}.alpha": (width,)}
    return shapes


def _linear(name: str, out: int, into: int) -> Shapes:
    return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}


def _convolution(name: str, out: int, into: int, kernel: int) -> Shapes:
    return {f"{name}.weight": (out, into, kernel), f"{name}.bias": (out,)}


def _norm(name: str, width: int) -> Shapes:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}
