"""The embedded codec: codec frames to the reply's waveform, by the streaming vocoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from duologue.engine.config import ConfigError, PipelineConfig
from duologue.engine.messages import Fence, Pcm
from duologue.engine.models.codec_stage import Chunk, CodecStage, Frames
from duologue.engine.models.embedded.vocoder import Vocoder, VocoderState
from duologue.engine.models.embedded.voice import weights
from duologue.engine.models.embedded.voice.codec import TrainedDecoder
from duologue.engine.models.embedded.voice.decoder import CodeDecoder
from duologue.engine.models.embedded.voice_format import (
    FRAME_SAMPLES,
    FRAME_VECTORS,
    FRAME_WIDTH,
    SAMPLE_RATE,
    VECTOR_WIDTH,
)
from duologue.engine.models.options import read_options
from duologue.strict import Strict

GAIN = 1.4
"""Brings the voice to an active speech level of about -20 dB of full scale (ITU-T P.56; peaks reach 0.7)."""
_TOGETHER = 4
"""Streams in one step of the vocoder. On one core a frame costs 0.19 ms alone, 0.15 by four, 0.21 by eight, whose
tables no longer fit the cache beside the spectra."""


class VocoderDecoder:
    """Decodes with a vocoder, which keeps its own state from frame to frame and looks back on none."""

    frame_samples = FRAME_SAMPLES
    sample_rate = SAMPLE_RATE
    delay_samples = 0
    most_chunks = 8
    """8 chunks of 400 ms are about 25 ms of work."""

    def __init__(self) -> None:
        self._vocoder = Vocoder()

    def begin(self, fence: Fence, voice: str) -> VocoderState:
        """A new stream; a turn has its own noise. There is one voice."""
        return Vocoder.open(seed=fence.turn)

    def check(self, frames: Frames) -> Frames:
        """The frames themselves, float32 (frames, FRAME_WIDTH); raises ``ValueError`` for any other."""
        if frames.dtype != np.float32 or frames.shape[1:] != (FRAME_WIDTH,):
            raise ValueError(f"the embedded codec reads float32 frames of {FRAME_WIDTH}, "
                             f"not {frames.dtype} of {frames.shape[1:]}")
        return frames

    def decode(self, chunks: Sequence[Chunk[VocoderState]]) -> list[Pcm]:
        """The samples of each chunk, frame by frame for all that still have one."""
        pieces: list[list[Pcm]] = [[] for _ in chunks]
        frames = [chunk.frames.reshape(-1, FRAME_VECTORS, VECTOR_WIDTH) for chunk in chunks]
        for place in range(max(map(len, frames), default=0)):
            live = [i for i, chunk in enumerate(frames) if place < len(chunk)]
            for group in (live[at:at + _TOGETHER] for at in range(0, len(live), _TOGETHER)):
                sound = self._vocoder.step([chunks[i].state for i in group],
                                           np.stack([frames[i][place] for i in group]))
                for i, pcm in zip(group, to_pcm(sound), strict=True):
                    pieces[i].append(pcm)
        return [np.concatenate(piece) for piece in pieces]


def to_pcm(sound: NDArray[np.float32]) -> Pcm:
    """Samples of the voice at its level in a call."""
    scaled = np.rint(sound * np.float32(GAIN * 32768))
    pcm: Pcm = np.clip(scaled, -32768, 32767).astype(np.int16)
    return pcm


class CodecOptions(Strict):
    """Options of the embedded codec."""

    voice: Literal["rms", "trained"] = "trained"
    """The talker's."""
    pitch: float = Field(default=1.0, ge=0.5, le=2.0)
    """Of the trained voice: 1 is its own, 0.8 lower by a fifth."""

    @model_validator(mode="after")
    def _pitch_is_read(self) -> Self:
        if self.voice == "rms" and self.pitch != 1.0:
            raise ValueError("only the trained voice has a pitch: set voice to trained")
        return self


def create(options: Mapping[str, Any], pipeline: PipelineConfig) -> CodecStage[Any]:
    """The codec of the embedded pipeline; its options are :class:`CodecOptions`."""
    wanted = read_options(CodecOptions, options, "embedded codec")
    if pipeline.output_rate != SAMPLE_RATE:
        raise ConfigError(f"the embedded voice speaks at {SAMPLE_RATE} Hz: set output_rate to {SAMPLE_RATE}")
    if pipeline.chunking.codec_left_context_frames:
        raise ConfigError("the embedded codec keeps its own state: set codec_left_context_frames to 0")
    if wanted.voice == "rms":
        return CodecStage(VocoderDecoder(), pipeline.chunking)
    codes = CodeDecoder(weights.load(weights.FOLDER, "codec"))
    return CodecStage(TrainedDecoder(codes, VocoderDecoder(), wanted.pitch), pipeline.chunking)
