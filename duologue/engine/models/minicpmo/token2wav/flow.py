"""Codes to mel frames: flow matching (arXiv 2210.02747) by an Euler solver, in a voice, streamed.

A stream begins with what the networks kept of the voice's prompt, and goes on with what they keep of its own frames.
Of these the newest are kept, as released: the encoder sees the prompt and the last ``KEPT_FRAMES`` frames; the
estimator, whose newest frames come first, sees as many of them as the prompt has, and the prompt's last
``KEPT_FRAMES``. A chunk attends to itself in both directions, so what a code sounds like depends, a little, on where
its chunk ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi

import torch
from torch.nn.functional import linear, normalize

from duologue.engine.models.minicpmo.token2wav.config import FlowConfig
from duologue.engine.models.minicpmo.token2wav.encoder import Encoder, EncoderState, Tensors
from duologue.engine.models.minicpmo.token2wav.estimator import LOOK_BACK, Estimator

KEPT_FRAMES = 100
"""Mel frames beside the prompt's that are kept (minicpmo-utils 1.0.7)."""
NOISE_FRAMES = 3000
"""Frames of noise there are, the same for all streams. The release draws its own anew at every start."""


@dataclass(frozen=True, slots=True, eq=False)
class FlowState:
    """What is kept of one stream. Tensors are never written to, so that streams may share them."""

    encoder: EncoderState
    """Of a batch of 1."""
    convs: tuple[torch.Tensor, ...]
    """For each step, (blocks, 2, 2 * size, 2): with and without code and voice."""
    frames: tuple[torch.Tensor, ...]
    """For each step, (blocks, 2, heads, frames, 2 * head size): keys and values, newest chunk first."""

    @property
    def length(self) -> int:
        """Mel frames that are kept."""
        return self.frames[0].shape[3]


@dataclass(frozen=True, slots=True, eq=False)
class Voice:
    """A prompt as the flow has heard it; streams that speak in its voice begin with it."""

    speaker: torch.Tensor
    """(bands)."""
    state: FlowState
    prompt_frames: int


class Flow:
    """The networks."""

    def __init__(self, config: FlowConfig, tensors: Tensors, steps: int, noise: torch.Tensor | None = None) -> None:
        """``tensors`` are those of ``layout.flow_tensors``, of one type and on one device.

        ``steps`` is how many steps the solver makes. ``noise`` is (frames, bands); if there is none, it is made.
        """
        like = tensors["encoder_proj.weight"]
        if noise is None:
            noise = torch.randn(NOISE_FRAMES, config.output_size, generator=torch.Generator().manual_seed(0))
        self.device = like.device
        self.lookahead = config.encoder.pre_lookahead_len
        self._config = config
        self._tensors = tensors
        self._noise = noise.to(like)
        self._times, self._widths = _schedule(steps)
        self._encoder = Encoder(config, tensors)
        self._estimator = Estimator(config, tensors, self._times)

    @torch.inference_mode()
    def voice(self, codes: torch.Tensor, mel: torch.Tensor, speaker: torch.Tensor) -> Voice:
        """Hear a prompt: ``codes`` (n), its ``mel`` (2 n, bands), the ``speaker``'s embedding (spk_embed_dim)."""
        if len(mel) != len(codes) * self._config.encoder.up_stride:
            raise ValueError(f"{len(codes)} codes and {len(mel)} mel frames are not of one prompt")
        speaker = linear(normalize(speaker.to(self._noise), dim=0), self._tensors["spk_embed_affine_layer.weight"],
                         self._tensors["spk_embed_affine_layer.bias"])
        # As released: what comes after the prompt is taken to be its beginning.
        codes = torch.cat([codes, codes[:self.lookahead]]).to(self.device)
        _, states = self._step(codes[None], [self._begin()], speaker[None], mel.to(self._noise)[None], len(mel),
                               last=False)
        return Voice(speaker, states[0], len(mel))

    @torch.inference_mode()
    def step(self, codes: torch.Tensor, states: Sequence[FlowState], voices: Sequence[Voice], *, last: bool,
             lengths: Sequence[int] | None = None) -> tuple[torch.Tensor, list[FlowState]]:
        """Mel frames (batch, bands, 2 * decoded) of ``codes`` (batch, n), int64, and the states after them.

        What ``states`` keep must be equally long, and so must the prompts of ``voices``. The last ``lookahead`` codes
        are only looked at, and come again with the next ones; of ``last`` ones, all are decoded and no state is
        returned. If those are padded, ``lengths`` says how many of each row count; what is made of the others is
        padding.
        """
        speakers = torch.stack([voice.speaker for voice in voices])
        return self._step(codes.to(self.device), states, speakers, None, voices[0].prompt_frames, last=last,
                          lengths=lengths)

    def _begin(self) -> FlowState:
        estimator, steps = self._config.estimator, len(self._times)
        convs = self._noise.new_zeros(estimator.depth, 2, 2 * estimator.hidden_size, LOOK_BACK)
        frames = self._noise.new_zeros(estimator.depth, 2, estimator.num_heads, 0, 2 * estimator.head_dim)
        return FlowState(self._encoder.begin(), (convs,) * steps, (frames,) * steps)

    def _step(self, codes: torch.Tensor, states: Sequence[FlowState], speakers: torch.Tensor,
              prompt: torch.Tensor | None, prompt_frames: int, *, last: bool,
              lengths: Sequence[int] | None = None) -> tuple[torch.Tensor, list[FlowState]]:
        counts = None if lengths is None else torch.tensor(lengths, device=self.device)
        mu, encoder = self._encoder(codes, _join([state.encoder for state in states]), last=last, lengths=counts)
        given = self._estimator.given(mu, speakers, torch.zeros_like(mu) if prompt is None else prompt)
        n, before = mu.shape[1], states[0].length
        allowed = None
        if counts is not None:
            known = torch.arange(n, device=self.device) < self._config.encoder.up_stride * counts[:, None]
            known = torch.cat([known, known.new_ones(len(states), before)], 1)
            allowed = torch.cat([known, known])[:, None, None]
        x = self._noise[torch.arange(before, before + n, device=self.device) % len(self._noise)].expand_as(mu)
        convs: list[list[torch.Tensor]] = [[] for _ in states]
        frames: list[list[torch.Tensor]] = [[] for _ in states]
        rate = self._config.inference_cfg_rate
        for step, width in enumerate(self._widths):
            velocity, conv, kv = self._estimator(step, x, given, _joined([state.convs[step] for state in states]),
                                                 _joined([state.frames[step] for state in states]), allowed)
            with_voice, without = velocity.chunk(2)
            x = x + width * ((1 + rate) * with_voice - rate * without)
            if not last:
                for each, one in zip(convs, _parted(conv, len(states)), strict=True):
                    each.append(one.contiguous())
                for each, one in zip(frames, _parted(torch.stack(kv), len(states)), strict=True):
                    each.append(_limited(one, prompt_frames, KEPT_FRAMES))
        if last:
            return x.transpose(1, 2), []
        return x.transpose(1, 2), [
            FlowState(EncoderState(encoder.look[i:i + 1].contiguous(), encoder.up[i:i + 1].contiguous(),
                                   _limited(encoder.codes[:, i:i + 1], prompt_frames // 2, KEPT_FRAMES // 2),
                                   _limited(encoder.frames[:, i:i + 1], prompt_frames, KEPT_FRAMES)),
                      tuple(convs[i]), tuple(frames[i])) for i in range(len(states))]


def _schedule(steps: int) -> tuple[list[float], list[float]]:
    """Times of the solver's steps and their widths, more densely at the noisy end (a quarter of a cosine)."""
    ends = 1 - torch.cos(torch.linspace(0, 1, steps + 1) * (0.5 * pi))
    times, widths = [ends[0]], []
    for end in ends[1:]:
        widths.append(end - times[-1])
        times.append(times[-1] + widths[-1])
    return [float(time) for time in times[:-1]], [float(width) for width in widths]


def _join(states: Sequence[EncoderState]) -> EncoderState:
    """The state of a batch, of those of its streams."""
    if len(states) == 1:
        return states[0]
    return EncoderState(torch.cat([state.look for state in states]), torch.cat([state.up for state in states]),
                        torch.cat([state.codes for state in states], 1),
                        torch.cat([state.frames for state in states], 1))


def _joined(kept: Sequence[torch.Tensor]) -> torch.Tensor:
    """What the estimator keeps of a batch, (blocks, 2 * batch, ...), of what is kept of its streams."""
    return (kept[0][:, :, None] if len(kept) == 1 else torch.stack(list(kept), 2)).flatten(1, 2)


def _parted(kept: torch.Tensor, batch: int) -> Sequence[torch.Tensor]:
    """The reverse: (blocks, 2, ...) for each stream."""
    return kept.view(kept.shape[0], 2, batch, *kept.shape[2:]).unbind(2)


def _limited(kv: torch.Tensor, first: int, last: int) -> torch.Tensor:
    """The ``first`` and the ``last`` positions of keys and values, in memory of their own."""
    if kv.shape[-2] <= first + last:
        return kv.contiguous()
    return torch.cat([kv[..., :first, :], kv[..., kv.shape[-2] - last:, :]], -2)
