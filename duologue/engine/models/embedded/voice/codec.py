"""The trained voice's decoder: codes to vectors, and these to samples by the vocoder of the embedded pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duologue.engine.messages import Fence, Pcm
from duologue.engine.models.codec_stage import Chunk, Decoder, Frames
from duologue.engine.models.embedded.vocoder import VocoderState
from duologue.engine.models.embedded.voice.decoder import CodeDecoder, DecoderState
from duologue.engine.models.embedded.voice.utterance import CODEBOOKS, CODES, to_digits
from duologue.engine.models.embedded.voice_format import (
    FRAME_SAMPLES,
    FRAME_VECTORS,
    FRAME_WIDTH,
    SAMPLE_RATE,
    VECTOR_WIDTH,
)


@dataclass(frozen=True, slots=True, eq=False)
class TrainedState:
    """One reply: what is kept of its codes, and of its vectors."""

    decoder: DecoderState
    vocoder: VocoderState


class TrainedDecoder:
    """Decodes codes; it looks back through its own state and never ahead."""

    frame_samples = FRAME_SAMPLES
    sample_rate = SAMPLE_RATE
    lead_samples = 0
    delay_samples = 0
    most_chunks = 8
    """8 chunks of 400 ms are about 40 ms of work."""

    def __init__(self, codes: CodeDecoder, vocoder: Decoder[VocoderState], pitch: float = 1.0) -> None:
        """``vocoder`` makes samples of frames of vectors; f0 is multiplied by ``pitch``."""
        self._codes = codes
        self._vocoder = vocoder
        self._pitch = np.float32(pitch)

    def begin(self, fence: Fence, voice: str) -> TrainedState:
        """A new stream."""
        return TrainedState(self._codes.open(), self._vocoder.begin(fence, voice))

    def check(self, frames: Frames) -> Frames:
        """The frames themselves, int32 (frames, CODEBOOKS); raises ``ValueError`` for any other."""
        if frames.dtype != np.int32 or frames.shape[1:] != (CODEBOOKS,):
            raise ValueError(f"the trained voice's codec reads int32 frames of {CODEBOOKS} codes, not {frames.dtype} "
                             f"of {frames.shape[1:]}: has the talker the same voice?")
        if not np.all((frames >= 0) & (frames < CODES)):
            raise ValueError(f"the trained voice's codes are 0 to {CODES - 1}")
        return frames

    def decode(self, chunks: Sequence[Chunk[TrainedState]]) -> list[Pcm]:
        """The samples of each chunk."""
        return self._vocoder.decode([Chunk(self._vectors(chunk), 0, chunk.state.vocoder, chunk.last)
                                     for chunk in chunks])

    def _vectors(self, chunk: Chunk[TrainedState]) -> Frames:
        frames = np.empty((len(chunk.frames), FRAME_VECTORS, VECTOR_WIDTH), np.float32)
        for frame, digits in zip(frames, to_digits(chunk.frames).astype(np.float32), strict=True):
            frame[:] = self._codes.step(chunk.state.decoder, digits)
        frames[..., 0] *= self._pitch
        return frames.reshape(-1, FRAME_WIDTH)
