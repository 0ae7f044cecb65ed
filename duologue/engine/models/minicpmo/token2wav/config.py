"""The shape of a token2wav folder, as its ``config.json`` (written by ``convert``) gives it.

The keys are those of the released ``flow.yaml`` and ``config.yaml``, and the defaults are the released values
(the flow of Step-Audio 2, the causal HiFT of CosyVoice 3).
"""

from __future__ import annotations

from math import prod
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

FRAME_RATE = 25
"""Codes a second (``speech_tokenizer_v2_25hz``)."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class EncoderConfig(_Frozen):
    """The conformer that reads codes and writes mel positions."""

    output_size: int = Field(default=512, gt=0)
    attention_heads: int = Field(default=8, gt=0)
    linear_units: int = Field(default=2048, gt=0)
    num_blocks: int = Field(default=6, ge=0)
    """Layers before the upsampling."""
    num_up_blocks: int = Field(default=4, ge=0)
    pre_lookahead_len: int = Field(default=3, gt=0)
    """Codes after a code that it depends on."""
    up_stride: Literal[2] = 2
    """Mel frames of one code."""
    key_bias: Literal[True] = True
    normalize_before: Literal[True] = True

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.output_size % (2 * self.attention_heads):
            raise ValueError(f"encoder.output_size ({self.output_size}) must be an even multiple of attention_heads "
                             f"({self.attention_heads})")
        return self


class EstimatorConfig(_Frozen):
    """The diffusion transformer that says where noise flows to."""

    hidden_size: int = Field(default=512, gt=0)
    depth: int = Field(default=16, gt=0)
    num_heads: int = Field(default=8, gt=0)
    head_dim: int = Field(default=64, gt=0)
    mlp_ratio: float = Field(default=4.0, gt=0)

    @property
    def mlp_size(self) -> int:
        """Width of the feed-forward layers."""
        return int(self.hidden_size * self.mlp_ratio)


class FlowConfig(_Frozen):
    """``flow.yaml``: codes and a voice to mel frames."""

    vocab_size: int = Field(default=6561, gt=0)
    input_size: int = Field(default=512, gt=0)
    """Width of a code's embedding."""
    output_size: int = Field(default=80, gt=0)
    """Bands of a mel frame."""
    spk_embed_dim: int = Field(default=192, gt=0)
    encoder: EncoderConfig = EncoderConfig()
    estimator: EstimatorConfig = EstimatorConfig()
    inference_cfg_rate: float = Field(default=0.7, gt=0)
    """How far the flow is pushed from what it would be without code and voice (classifier-free guidance)."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.input_size != self.encoder.output_size:
            raise ValueError(f"flow.input_size ({self.input_size}) must be encoder.output_size "
                             f"({self.encoder.output_size}): the layer after the upsampling has both")
        return self


class IstftConfig(_Frozen):
    """The transform at the vocoder's end, in samples."""

    n_fft: int = Field(default=16, gt=0, multiple_of=4)
    hop_len: int = Field(default=4, gt=0)

    @model_validator(mode="after")
    def _overlaps(self) -> Self:
        if self.n_fft != 4 * self.hop_len:
            raise ValueError(f"istft_params: n_fft ({self.n_fft}) must be 4 * hop_len ({self.hop_len})")
        return self


class HiftConfig(_Frozen):
    """``config.yaml``: mel frames to a waveform. One row of sizes and dilations a residual block."""

    in_channels: int = Field(default=80, gt=0)
    base_channels: int = Field(default=512, gt=0)
    """Channels before the first upsampling; each halves them."""
    nb_harmonics: int = Field(default=8, ge=0)
    """Sines above the fundamental in the source."""
    sampling_rate: int = Field(default=24_000, gt=0)
    nsf_alpha: float = 0.1
    """Amplitude of the source's sines."""
    nsf_sigma: float = 0.003
    """Amplitude of the noise in voiced sound."""
    nsf_voiced_threshold: float = 10.0
    """Fundamental in Hz above which a frame is voiced."""
    upsample_rates: tuple[int, ...] = (8, 5, 3)
    upsample_kernel_sizes: tuple[int, ...] = (16, 11, 7)
    istft_params: IstftConfig = IstftConfig()
    resblock_kernel_sizes: tuple[int, ...] = (3, 7, 11)
    resblock_dilation_sizes: tuple[tuple[int, ...], ...] = ((1, 3, 5), (1, 3, 5), (1, 3, 5))
    source_resblock_kernel_sizes: tuple[int, ...] = (7, 7, 11)
    source_resblock_dilation_sizes: tuple[tuple[int, ...], ...] = ((1, 3, 5), (1, 3, 5), (1, 3, 5))
    lrelu_slope: float = 0.1
    audio_limit: float = 0.99
    """Largest sample; 1 is full scale."""
    conv_pre_look_right: int = Field(default=4, gt=0)
    """Mel frames after a frame that its sound depends on."""
    f0_channels: int = Field(default=512, gt=0)
    """Width of the layers that find the fundamental (``cond_channels`` of the released predictor)."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        stages = len(self.upsample_rates)
        for name in ("upsample_kernel_sizes", "source_resblock_kernel_sizes", "source_resblock_dilation_sizes"):
            if len(getattr(self, name)) != stages:
                raise ValueError(f"hift.{name} must have {stages} entries, one for each of upsample_rates")
        if len(self.resblock_kernel_sizes) != len(self.resblock_dilation_sizes):
            raise ValueError("hift.resblock_kernel_sizes and resblock_dilation_sizes must be equally many")
        if self.base_channels % 2 ** stages:
            raise ValueError(f"hift.base_channels ({self.base_channels}) must be halved {stages} times")
        return self

    @property
    def positions(self) -> int:
        """Spectra of the last transform in one mel frame."""
        return prod(self.upsample_rates)

    @property
    def frame_samples(self) -> int:
        """Samples of one mel frame."""
        return self.positions * self.istft_params.hop_len


class Token2wavConfig(_Frozen):
    """``config.json`` of a token2wav folder."""

    model_type: Literal["duologue_token2wav"] = "duologue_token2wav"
    flow: FlowConfig = FlowConfig()
    hift: HiftConfig = HiftConfig()
    silence_code: int = Field(default=4218, ge=0)
    """The code that a reply begins with, ``encoder.pre_lookahead_len`` times (MiniCPM-o 4.5)."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.silence_code >= self.flow.vocab_size:
            raise ValueError(f"silence_code is {self.silence_code}, but flow.vocab_size is {self.flow.vocab_size}")
        if self.hift.in_channels != self.flow.output_size:
            raise ValueError(f"hift.in_channels ({self.hift.in_channels}) must be flow.output_size "
                             f"({self.flow.output_size})")
        rate = FRAME_RATE * self.code_samples
        if rate != self.hift.sampling_rate:
            raise ValueError(f"{FRAME_RATE} codes a second of {self.code_samples} samples are {rate} Hz, not "
                             f"hift.sampling_rate {self.hift.sampling_rate}")
        return self

    @property
    def code_samples(self) -> int:
        """Samples of one code."""
        return self.flow.encoder.up_stride * self.hift.frame_samples


TINY = Token2wavConfig(
    flow=FlowConfig(input_size=32, encoder=EncoderConfig(output_size=32, attention_heads=2, linear_units=64,
                                                         num_blocks=2, num_up_blocks=1),
                    estimator=EstimatorConfig(hidden_size=32, depth=2, num_heads=2, head_dim=16, mlp_ratio=2.0)),
    hift=HiftConfig(base_channels=32, nb_harmonics=4, resblock_kernel_sizes=(3, 5),
                    resblock_dilation_sizes=((1, 3), (1, 3)), source_resblock_kernel_sizes=(3, 3, 5),
                    source_resblock_dilation_sizes=((1, 3), (1, 3), (1, 3)), f0_channels=32))
"""A size for tests: what everything computes is as released, what it computes with is small."""
