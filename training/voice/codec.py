"""The codec: acoustic vectors at 200 Hz to 12 digits at 25 Hz, and causally back.

``python -m training.voice.codec OUT`` trains on ``OUT/corpus.npz`` into ``OUT/codec.pt``; it goes on where it stopped.
Digits are those of finite scalar quantization (arXiv 2309.15505), three of 8 levels to a codebook of 512. The encoder
is for training only, and looks ahead; the decoder is what ships.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import gelu, pad

from duologue.engine.models.embedded.voice.network import DIGITS, LEVELS
from duologue.engine.models.embedded.voice_format import BANDS, CEPSTRA, FRAME_VECTORS
from training import command, device
from training.course import Course, set_rate
from training.voice import corpus

WIDTH = 256
ENCODER_BLOCKS, DECODER_BLOCKS = 3, 4
KERNEL = 3
"""Of the decoder's convolutions: it looks back 2 frames a block."""
FEATURES = 2 + CEPSTRA + BANDS
"""Log f0, filled in where there is none; whether there is one; cepstra; strengths."""
FORMANTS = 10
"""Cepstra behind the energy that say where the formants are."""
CPU_MINUTES = 62.0
ENCODER_SHARE = 0.42
"""Of the time, after which the encoder rests: codes stay as they are then, so a talker can be trained on them."""
VALIDATION = 60
"""The first utterances are kept for validation."""
_BATCH, _WINDOW = 24, 64
"""Windows of 64 frames (2.56 s) a step."""
_LEARNING_RATE = 2e-3
_CHECKPOINT_S = 120.0


def features(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Features, float32 (n, FEATURES), of acoustic vectors (n, VECTOR_WIDTH)."""
    f0 = vectors[:, 0].astype(np.float64)
    voiced = f0 > 0
    places = np.arange(len(f0))
    log = np.interp(places, places[voiced], np.log(f0[voiced])) if voiced.any() else np.full(len(f0), np.log(100.0))
    return np.column_stack([log, voiced, vectors[:, 1:]]).astype(np.float32)


class Block(nn.Module):
    """A depthwise convolution over time and two layers over channels (as ConvNeXt's, arXiv 2201.03545)."""

    def __init__(self, width: int, kernel: int, causal: bool) -> None:
        super().__init__()
        self.depthwise = nn.Conv1d(width, width, kernel, groups=width)
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self._pad = (kernel - 1, 0) if causal else (kernel // 2, kernel // 2)
        nn.init.normal_(self.down.weight, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, frames, width) to the same."""
        y = self.depthwise(pad(x.transpose(1, 2), self._pad)).transpose(1, 2)
        added: Tensor = self.down(gelu(self.up(self.norm(y)), approximate="tanh"))
        return x + added


class Codec(nn.Module):
    """Encoder, quantizer, decoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder_in = nn.Linear(FEATURES * FRAME_VECTORS, WIDTH)
        self.encoder = nn.Sequential(*[Block(WIDTH, 5, causal=False) for _ in range(ENCODER_BLOCKS)])
        self.encoder_out = nn.Linear(WIDTH, DIGITS)
        self.decoder_in = nn.Linear(DIGITS, WIDTH)
        self.decoder = nn.ModuleList([Block(WIDTH, KERNEL, causal=True) for _ in range(DECODER_BLOCKS)])
        self.decoder_norm = nn.LayerNorm(WIDTH)
        self.decoder_out = nn.Linear(WIDTH, FEATURES * FRAME_VECTORS)
        self.register_buffer("mean", torch.zeros(FEATURES))
        self.register_buffer("scale", _scale())
        self.mean: Tensor
        self.scale: Tensor

    def digits(self, features: Tensor) -> Tensor:
        """Digits 0..7, float (batch, frames, DIGITS), with a straight-through gradient; (batch, vectors, FEATURES)."""
        batch, vectors, _ = features.shape
        x = ((features - self.mean) / self.scale).reshape(batch, vectors // FRAME_VECTORS, -1)
        # tanh keeps the value inside (-0.5, 7.5), so that rounding gives each of the 8 levels.
        bounded = (torch.tanh(self.encoder_out(self.encoder(self.encoder_in(x)))) * (LEVELS / 2 - 1e-3)
                   + (LEVELS - 1) / 2)
        return bounded + (bounded.round() - bounded).detach()

    def decode(self, digits: Tensor) -> Tensor:
        """Features (batch, frames * FRAME_VECTORS, FEATURES) of digits (batch, frames, DIGITS)."""
        x = self.decoder_in(digits * (2 / (LEVELS - 1)) - 1)
        for block in self.decoder:
            x = block(x)
        x = self.decoder_out(self.decoder_norm(x))
        decoded: Tensor = x.reshape(len(x), -1, FEATURES) * self.scale + self.mean
        return decoded


def _scale() -> Tensor:
    scale = torch.full((FEATURES,), 0.3)
    scale[0], scale[1], scale[2], scale[3], scale[2 + CEPSTRA:] = 0.15, 0.5, 1.0, 0.5, 0.15
    return scale


def _weights() -> Tensor:
    """How much an error in each feature counts: half a semitone about as much as half a decibel of the envelope.

    The first cepstra, which are the formants, count most: after 18 more CPU minutes in which they did, a recogniser
    heard 2.8 % of the words wrong instead of 3.4 % at about the same mean distortion (the source: 2.2 %).
    """
    weights = torch.ones(FEATURES)
    weights[0], weights[1] = 100.0, 0.5
    weights[3:3 + FORMANTS], weights[3 + FORMANTS:2 + CEPSTRA] = 1.6, 0.7
    return weights


def loss(got: Tensor, wanted: Tensor) -> Tensor:
    """Squared error of the features and of their steps; pitch hardly counts where there is none."""
    weights = _weights()
    error = (got - wanted).square() * weights
    error = torch.cat([error[..., :1] * (wanted[..., 1:2] * 0.9 + 0.1), error[..., 1:]], dim=-1)
    steps = (got.diff(dim=1) - wanted.diff(dim=1)).square() * weights
    return error.sum(-1).mean() + 2 * steps.sum(-1).mean()


@torch.inference_mode()
def validate(codec: Codec, utterances: list[Tensor]) -> str:
    """Mel-cepstral distortion and errors of pitch and voicing over whole utterances."""
    distortion, pitch, voicing = list[float](), list[float](), list[float]()
    for wanted in utterances:
        got = codec.decode(codec.digits(wanted[None]))[0]
        cepstra = (got - wanted)[:, 3:2 + CEPSTRA].square().sum(-1)
        distortion.append(float((10 / np.log(10) * (2 * cepstra).sqrt()).mean()))
        voiced = wanted[:, 1] > 0.5
        pitch.append(float((got - wanted)[voiced, 0].abs().mean()) * 100)
        voicing.append(float(((got[:, 1] > 0.5) != voiced).float().mean()) * 100)
    return (f"distortion {np.mean(distortion):.3f} dB, f0 error {np.mean(pitch):.2f} %, "
            f"voicing errors {np.mean(voicing):.2f} %")


def train(folder: Path, minutes: float) -> None:
    """Train for ``minutes`` in all, those of earlier runs counted (``Course``)."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    spoken = [device.tensor(features(said.vectors)) for said in corpus.read(folder)]
    validation, data = spoken[:VALIDATION], torch.cat(spoken[VALIDATION:])
    codec = Codec()
    codec.mean.copy_(data[:200_000].mean(0))
    optimizer = torch.optim.AdamW(codec.parameters(), _LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.01)
    course = Course(folder / "codec.pt", "codec", codec, optimizer, minutes, warm_up=50, save_s=_CHECKPOINT_S)
    chosen = np.random.default_rng(course.step)
    while course.goes_on():
        set_rate(optimizer, _LEARNING_RATE * course.share)
        firsts = chosen.integers(0, len(data) // FRAME_VECTORS - _WINDOW, _BATCH) * FRAME_VECTORS
        wanted = torch.stack([data[first:first + _WINDOW * FRAME_VECTORS] for first in firsts])
        with torch.set_grad_enabled(course.gone < ENCODER_SHARE):
            digits = codec.digits(wanted)
        with device.mixed():
            decoded = codec.decode(digits)
        error = loss(decoded, wanted)
        optimizer.zero_grad()
        error.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(codec.parameters(), 1.0)
        optimizer.step()
        course.stepped(lambda: validate(codec, validation))
    course.end(validate(codec, validation))


def main() -> None:
    """Train as the command line says."""
    command.run("training.voice.codec", __doc__, train, CPU_MINUTES)


if __name__ == "__main__":
    main()
