"""Mel frames to samples, streamed: what comes out does not depend on how the frames were cut.

A sample is made once all that it depends on is there, ``delay`` frames after its own. What networks looked at before
is computed again from the last frames and the last of the source, of which no more is kept than is looked at; only
the phase of the source goes on from frame to frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from duologue.engine.models.minicpmo.token2wav.hift import Hift


@dataclass(frozen=True, slots=True, eq=False)
class VocoderState:
    """One stream. Tensors are never written to."""

    mel: torch.Tensor
    """(bands, frames): those that have not sounded yet, and what these look back on."""
    source: torch.Tensor
    """(samples): of the first of these frames."""
    phase: torch.Tensor
    """(harmonics), float64, in cycles."""
    first: int = 0
    """Number of the first frame of ``mel`` and ``source``."""
    sounded: int = 0
    """How many of the frames have sounded."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Streams that agree in this can be decoded together."""
        return self.mel.shape[1], len(self.source), self.sounded


class Vocoder:
    """The streams' common networks; holds no stream itself."""

    def __init__(self, hift: Hift) -> None:
        self._hift = hift
        self.delay = hift.f0_ahead + hift.sound_ahead
        """Mel frames that come after a frame before it sounds (8 with the released sizes, 160 ms)."""

    def begin(self, like: torch.Tensor) -> VocoderState:
        """A new stream on the device of ``like``."""
        config = self._hift.config
        return VocoderState(like.new_zeros(config.in_channels, 0, dtype=torch.float32),
                            like.new_zeros(0, dtype=torch.float32),
                            like.new_zeros(config.nb_harmonics + 1, dtype=torch.float64))

    @torch.inference_mode()
    def step(self, mel: torch.Tensor, states: Sequence[VocoderState], *,
             last: bool) -> tuple[torch.Tensor, list[VocoderState]]:
        """Samples (batch, samples) that the frames ``mel`` (batch, bands, frames) complete, and the states after them.

        Of 1 is full scale. ``states`` must agree in their shapes. The ``last`` frames of a stream complete all.
        """
        hift, hop = self._hift, self._hift.frame_samples
        kept = torch.stack([state.mel for state in states])
        source = torch.stack([state.source for state in states])
        phase = torch.stack([state.phase for state in states])
        firsts = torch.tensor([state.first for state in states], device=mel.device)
        frames = torch.cat([kept, mel.float()], 2)
        count, known, sounded = frames.shape[2], source.shape[1] // hop, states[0].sounded
        if count - (0 if last else hift.f0_ahead) > known:
            start = max(0, known - hift.f0_behind)
            f0 = hift.fundamental(frames[:, :, start:], last=last)[:, known - start:]
            more, phase = hift.source(f0, phase, firsts + known)
            source = torch.cat([source, more], 1)
            known += f0.shape[1]
        sound = frames.new_zeros(len(states), 0)
        if (ready := known - (0 if last else hift.sound_ahead)) > sounded:
            sound = hift.sound(frames[:, :, :known], source, last=last)[:, sounded * hop:]
            sounded = ready
        drop = max(0, sounded - hift.sound_behind)
        return sound, [VocoderState(frames[i, :, drop:].clone(), source[i, drop * hop:].clone(), phase[i],
                                    state.first + drop, sounded - drop) for i, state in enumerate(states)]
