"""The vocoder's networks: mel frames to a fundamental, a source signal, and a waveform.

HiFT (arXiv 2309.09493) as CosyVoice 3 has it: all convolutions look back only, but for the first of the fundamental's
and the first of the waveform's, which look ahead. Sines of the fundamental and noise are the source; the frames,
upsampled, and the spectra of the source become spectra of the waveform.
"""

from __future__ import annotations

from math import ceil, pi

import torch
from torch.nn.functional import conv1d, elu, leaky_relu, linear, pad

from duologue.engine.models.minicpmo.token2wav.config import HiftConfig
from duologue.engine.models.minicpmo.token2wav.encoder import Tensors
from duologue.engine.models.minicpmo.token2wav.layout import F0_KERNELS, POST_KERNEL, source_strides

NOISE_S = 4
"""Length of the source's noise, in seconds; it is used again after that."""
_MOST_MAGNITUDE = 100.0
_SNAKE_EPSILON = 1e-9


class Hift:
    """The networks. They compute in single precision, but for the fundamental: its rounding adds up in the phase."""

    def __init__(self, config: HiftConfig, tensors: Tensors, noise: torch.Tensor | None = None) -> None:
        """``tensors`` are those of ``layout.hift_tensors``, float32, on one device.

        ``noise`` is (samples, nb_harmonics + 1), from 0 to 1; if there is none, it is made.
        """
        if noise is None:
            noise = torch.rand(NOISE_S * config.sampling_rate, config.nb_harmonics + 1,
                               generator=torch.Generator().manual_seed(0))
        self.config = config
        self.frame_samples = config.frame_samples
        self.f0_ahead = F0_KERNELS[0] - 1
        """Mel frames after a frame that its fundamental depends on."""
        self.f0_behind = sum(kernel - 1 for kernel in F0_KERNELS[1:])
        self.sound_ahead = config.conv_pre_look_right + 1
        """Mel frames after a frame that its sound depends on, and the one in which the last spectra overlap."""
        self.sound_behind = _reach(config)
        self._tensors = tensors
        like = tensors["conv_pre.weight"]
        self._noise = noise.to(like)
        self._window = torch.hann_window(config.istft_params.n_fft, device=like.device)
        self._f0 = {name: tensor.double() for name, tensor in tensors.items() if name.startswith("f0_predictor.")}
        self._strides = source_strides(config)

    def fundamental(self, mel: torch.Tensor, *, last: bool) -> torch.Tensor:
        """The fundamental in Hz, (batch, n), of ``mel`` (batch, bands, frames).

        ``n`` is ``f0_ahead`` less than the frames, unless they are the ``last``.
        """
        x = mel.double()
        for i, kernel in enumerate(F0_KERNELS):
            sides = (kernel - 1, 0) if i else (0, self.f0_ahead if last else 0)
            name = f"f0_predictor.condnet.{2 * i}"
            x = elu(conv1d(pad(x, sides), self._f0[f"{name}.weight"], self._f0[f"{name}.bias"]))
        x = linear(x.transpose(1, 2), self._f0["f0_predictor.classifier.weight"],
                   self._f0["f0_predictor.classifier.bias"])
        return x[..., 0].abs().to(mel)

    def source(self, f0: torch.Tensor, phase: torch.Tensor, first: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The source, (batch, n * frame_samples), of ``f0`` (batch, n), and the phase after it.

        ``phase`` (batch, harmonics), float64, is in cycles; ``first`` (batch) the numbers of the first frames. A
        sine keeps its value for a whole frame, as released; what moves within a frame is noise.
        """
        config, hop = self.config, self.frame_samples
        harmonics = torch.arange(1, config.nb_harmonics + 2, device=f0.device, dtype=f0.dtype)
        cycles = (f0[..., None] * harmonics / config.sampling_rate).remainder(1).double().cumsum(1) * hop
        cycles = (cycles + phase[:, None]).remainder(1)
        voiced = (f0 > config.nsf_voiced_threshold).to(f0)[..., None, None]
        sine = (cycles * (2 * pi)).sin().to(f0)[:, :, None]
        places = first[:, None] * hop + torch.arange(f0.shape[1] * hop, device=f0.device)
        noise = self._noise[places % len(self._noise)].view(*f0.shape, hop, -1)
        level = voiced * config.nsf_sigma + (1 - voiced) * (config.nsf_alpha / 3)
        mixed = linear(sine * config.nsf_alpha * voiced + level * noise, self._tensors["m_source.l_linear.weight"],
                       self._tensors["m_source.l_linear.bias"])
        return torch.tanh(mixed).flatten(1), cycles[:, -1]

    def sound(self, mel: torch.Tensor, source: torch.Tensor, *, last: bool) -> torch.Tensor:
        """Samples (batch, n * frame_samples), of which 1 is full scale, of ``mel`` (batch, bands, frames).

        ``source`` is (batch, frames * frame_samples); n is ``sound_ahead`` less than the frames, unless they are the
        ``last``. The first ``sound_behind`` frames are right only at the beginning of a stream.
        """
        config, transform = self.config, self.config.istft_params
        spectra = torch.stft(source, transform.n_fft, transform.hop_len, window=self._window, return_complex=True)
        if not last:
            spectra = spectra[..., :-config.positions * config.conv_pre_look_right]
        spectra = torch.cat([spectra.real, spectra.imag], 1)
        x = self._convolve(pad(mel, (0, config.conv_pre_look_right if last else 0)), "conv_pre")
        kernels = len(config.resblock_kernel_sizes)
        for i, (rate, stride) in enumerate(zip(config.upsample_rates, self._strides, strict=True)):
            x = leaky_relu(x, config.lrelu_slope).repeat_interleave(rate, 2)
            x = self._convolve(pad(x, (config.upsample_kernel_sizes[i] - 1, 0)), f"ups.{i}")
            if stride == 1:  # There is one spectrum more than hops.
                x = pad(x, (1, 0), mode="reflect")
            side = self._convolve(pad(spectra, (stride - 1, 0)), f"source_downs.{i}", stride=stride)
            x = x + self._residual(side, f"source_resblocks.{i}", config.source_resblock_dilation_sizes[i])
            parts = [self._residual(x, f"resblocks.{i * kernels + j}", dilations)
                     for j, dilations in enumerate(config.resblock_dilation_sizes)]
            x = torch.stack(parts).sum(0) / kernels
        x = self._convolve(pad(leaky_relu(x), (POST_KERNEL - 1, 0)), "conv_post")
        magnitude, angle = x.chunk(2, 1)
        wave = torch.istft(torch.polar(magnitude.exp().clamp(max=_MOST_MAGNITUDE), angle.sin()), transform.n_fft,
                           transform.hop_len, window=self._window)
        if not last:
            wave = wave[:, :-self.frame_samples]
        return wave.clamp(-config.audio_limit, config.audio_limit)

    def _residual(self, x: torch.Tensor, name: str, dilations: tuple[int, ...]) -> torch.Tensor:
        for i, dilation in enumerate(dilations):
            y = self._back(self._snake(x, f"{name}.activations1.{i}"), f"{name}.convs1.{i}", dilation)
            x = x + self._back(self._snake(y, f"{name}.activations2.{i}"), f"{name}.convs2.{i}", 1)
        return x

    def _snake(self, x: torch.Tensor, name: str) -> torch.Tensor:
        """Snake, x + sin^2(alpha x) / alpha (arXiv 2006.08195)."""
        alpha = self._tensors[f"{name}.alpha"][:, None]
        return x + (x * alpha).sin().square() / (alpha + _SNAKE_EPSILON)

    def _back(self, x: torch.Tensor, name: str, dilation: int) -> torch.Tensor:
        weight = self._tensors[f"{name}.weight"]
        return conv1d(pad(x, (dilation * (weight.shape[2] - 1), 0)), weight, self._tensors[f"{name}.bias"],
                      dilation=dilation)

    def _convolve(self, x: torch.Tensor, name: str, stride: int = 1) -> torch.Tensor:
        return conv1d(x, self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"], stride=stride)


def _reach(config: HiftConfig) -> int:
    """Mel frames before a frame that its sound depends on, at most."""
    transform = config.istft_params.n_fft // config.istft_params.hop_len
    """Hops one spectrum is made of."""
    reach = 0
    """In hops, walking from the frames to the waveform."""
    for i, stride in enumerate(source_strides(config)):
        side = transform + 2 * stride + stride * _residual_reach(config.source_resblock_kernel_sizes[i],
                                                                 config.source_resblock_dilation_sizes[i])
        reach = max(reach + stride * (config.upsample_kernel_sizes[i] - 1), side)
        reach += stride * max(_residual_reach(kernel, dilations) for kernel, dilations in zip(
            config.resblock_kernel_sizes, config.resblock_dilation_sizes, strict=True))
    return ceil((reach + 1 + POST_KERNEL + transform) / config.positions) + 1


def _residual_reach(kernel: int, dilations: tuple[int, ...]) -> int:
    return (kernel - 1) * sum(dilation + 1 for dilation in dilations)
