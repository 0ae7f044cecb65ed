"""The codec of MiniCPM-o 4.5: codes to waveform by token2wav, in the session's voice.

A reply begins with 160 ms of silence, since the waveform is so much behind the mel frames, and with as many silence
codes as the flow looks ahead, 3: so n codes make n * 960 samples once they have come, as they have to where the next
codes come no sooner than these have been played. The last chunk has the 6720 samples more that are still to come: a
reply of n codes is 3840 + (3 + n) * 960 samples. It is the released stream where the chunks are the same; but that
has no silence before a reply that is one chunk.

Which sound a code becomes depends, a little, on how codes were cut: the flow attends both ways within a chunk. What
the vocoder makes of mel frames does not, but for the rounding of sums.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field

from duologue.engine.config import ConfigError, PipelineConfig
from duologue.engine.messages import Fence, Pcm
from duologue.engine.models.codec_stage import Chunk, CodecStage, Frames
from duologue.engine.models.minicpmo.checkpoint import Checkpoint, CheckpointOptions, load
from duologue.engine.models.minicpmo.token2wav.config import Token2wavConfig
from duologue.engine.models.minicpmo.token2wav.features import HEARING_RATE
from duologue.engine.models.minicpmo.token2wav.flow import Flow, FlowState, Voice
from duologue.engine.models.minicpmo.token2wav.hift import Hift
from duologue.engine.models.minicpmo.token2wav.prompt import Prompt, PromptReader, made
from duologue.engine.models.minicpmo.token2wav.vocoder import Vocoder, VocoderState
from duologue.engine.models.minicpmo.voices import ReferenceOptions, Voices, require
from duologue.engine.models.options import read_options
from duologue.engine.models.stored import sourced
from duologue.engine.runners.torch.runner import find_device
from duologue.metrics import DROPS

_FULL_SCALE = 32767.0
_MADE_VOICE = ""
"""Name of the voice that is made up where there is none."""


class CodecOptions(CheckpointOptions, ReferenceOptions):
    """Options of the codec."""

    device: str = "cpu"
    """``cpu``, ``cuda`` or ``cuda:N``."""
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    """What the flow computes in, and keeps of each stream; the vocoder computes in float32."""
    n_timesteps: int = Field(default=10, gt=0)
    """Steps of the flow (10 in the released class, 5 in the released demo); cost and memory are proportional."""
    threads: int = Field(default=1, gt=0)
    """CPU threads that torch may use in the stage's process."""
    max_batch: int = Field(default=8, gt=0)
    """Chunks decoded together."""


@dataclass(slots=True, eq=False)
class Stream:
    """One reply. Its tensors are its voice's until it has some of its own."""

    voice: Voice
    flow: FlowState
    vocoder: VocoderState
    pending: list[int]
    """Codes that have been looked at and not decoded."""


class Token2wavDecoder:
    """Decodes the chunks of many replies, together where their streams are equally far."""

    def __init__(self, config: Token2wavConfig, flow: Flow, vocoder: Vocoder, voice: Callable[[str], Voice], *,
                 most_chunks: int, tail_codes: int | None) -> None:
        """``voice`` gives the voice for what a session asked for.

        ``tail_codes``: replies' last chunks are padded to these many codes, so that a GPU sees few shapes; None
        leaves them as they are.
        """
        self.frame_samples = config.code_samples
        self.sample_rate = config.hift.sampling_rate
        self.delay_samples = flow.lookahead * self.frame_samples + vocoder.delay * config.hift.frame_samples
        self.most_chunks = most_chunks
        self._config = config
        self._flow = flow
        self._vocoder = vocoder
        self._voice = voice
        self._tail_codes = tail_codes

    def begin(self, fence: Fence, voice: str) -> Stream:
        """A new stream in the voice asked for."""
        found = self._voice(voice)
        return Stream(found, found.state, self._vocoder.begin(found.speaker),
                      [self._config.silence_code] * self._flow.lookahead)

    def check(self, frames: Frames) -> Frames:
        """The frames themselves, int32 (frames, 1); raises ``ValueError`` for any other, and for unknown codes."""
        if frames.dtype != np.int32 or frames.shape[1:] != (1,):
            raise ValueError(f"token2wav reads int32 frames of one code, not {frames.dtype} of {frames.shape[1:]}")
        if len(frames) and not 0 <= frames.min() <= frames.max() < self._config.flow.vocab_size:
            raise ValueError(f"the codes {frames.min()} to {frames.max()} are not all in the codebook of "
                             f"{self._config.flow.vocab_size}")
        return frames

    def decode(self, chunks: Sequence[Chunk[Stream]]) -> list[Pcm]:
        """The samples of each chunk; those that agree in shape go through the networks together."""
        codes = [chunk.state.pending + [int(code) for code in chunk.frames[chunk.left_context:, 0]]
                 for chunk in chunks]
        alike: dict[object, list[int]] = defaultdict(list)
        for i, chunk in enumerate(chunks):
            size = len(codes[i]) if self._tail_codes is None or not chunk.last else None
            alike[chunk.last, size, chunk.state.flow.length, chunk.state.voice.prompt_frames].append(i)
        mels: dict[int, torch.Tensor] = {}
        for group in alike.values():
            streams = [chunks[i].state for i in group]
            mels.update(zip(group, self._to_mel(streams, [codes[i] for i in group], chunks[group[0]].last),
                            strict=True))
        alike.clear()
        for i, chunk in enumerate(chunks):
            alike[chunk.last, mels[i].shape, chunk.state.vocoder.shape].append(i)
        sounds: dict[int, Pcm] = {}
        for group in alike.values():
            streams = [chunks[i].state for i in group]
            sound, states = self._vocoder.step(torch.stack([mels[i] for i in group]),
                                               [stream.vocoder for stream in streams], last=chunks[group[0]].last)
            for stream, state in zip(streams, states, strict=True):
                stream.vocoder = state
            sounds.update(zip(group, _to_pcm(sound), strict=True))
        return [self._after_silence(chunk, sounds[i]) for i, chunk in enumerate(chunks)]

    def _after_silence(self, chunk: Chunk[Stream], sound: Pcm) -> Pcm:
        """``sound`` with the silence before it that makes it as long as it has to be."""
        length = (len(chunk.frames) - chunk.left_context) * self.frame_samples
        if chunk.last:
            length += self.delay_samples
        return np.pad(sound, (length - len(sound), 0))

    def _to_mel(self, streams: Sequence[Stream], codes: Sequence[list[int]], last: bool) -> list[torch.Tensor]:
        """Mel frames (bands, n) of each stream's codes."""
        lengths = [len(row) for row in codes]
        size = max(lengths)
        if last and self._tail_codes is not None:
            size = max(size, self._tail_codes)
        rows = torch.zeros(len(codes), size, dtype=torch.int64)
        for row, each in zip(rows, codes, strict=True):
            row[:len(each)] = torch.tensor(each)
        padded = min(lengths) < size
        mel, states = self._flow.step(rows, [stream.flow for stream in streams],
                                      [stream.voice for stream in streams], last=last,
                                      lengths=lengths if padded else None)
        for stream, state, row in zip(streams, states, codes, strict=False):
            stream.flow, stream.pending = state, row[-self._flow.lookahead:]
        stride = self._config.flow.encoder.up_stride
        return [one[:, :length * stride] for one, length in zip(mel, lengths, strict=True)]

    def warm_up(self, first: int, chunk: int) -> None:
        """Decode a reply, so that no caller waits for kernels to be chosen and memory to be had."""
        stream = self.begin(Fence("", 0, 0, 0), "")
        for count, last in ((first, False), (chunk, False), (chunk, False), (chunk - 1, True)):
            self.decode([Chunk(np.zeros((count, 1), np.int32), 0, stream, last)])


def _to_pcm(sound: torch.Tensor) -> Pcm:
    """Samples of which 1 is full scale, cut to 16 bits as the release does it; what overflowed before is silent."""
    samples = sound.cpu().numpy()
    if lost := samples.size - int(np.count_nonzero(np.isfinite(samples))):
        DROPS.labels(what="samples", reason="not_finite").inc(lost)
        samples = np.nan_to_num(samples, nan=0.0)
    pcm: Pcm = (samples * np.float32(_FULL_SCALE)).astype(np.int16)
    return pcm


class _VoiceBook:
    """The voices as the flow has heard them; each is heard once."""

    def __init__(self, flow: Flow, voices: Voices, prompts: Mapping[str, Prompt]) -> None:
        self._voices = voices
        self._heard = {name: flow.voice(prompt.codes, prompt.mel, prompt.speaker)
                       for name, prompt in prompts.items()}

    def find(self, asked: str) -> Voice:
        name = self._voices.resolve(asked)
        return self._heard[_MADE_VOICE if name is None else name]


def _prompts(options: CodecOptions, checkpoint: Checkpoint, voices: Voices) -> dict[str, Prompt]:
    config = checkpoint.token2wav
    if checkpoint.folder is None:
        return {name: made(config, options.seed + i) for i, name in enumerate(voices.names or (_MADE_VOICE,))}
    require(voices, checkpoint.folder)
    reader = PromptReader(checkpoint.folder / "token2wav", config)
    return {name: reader.read(voices.samples(name, HEARING_RATE), voices.samples(name, config.hift.sampling_rate),
                              str(voices.file(name))) for name in voices.names}


def create(options: Mapping[str, Any], pipeline: PipelineConfig) -> CodecStage[Stream]:
    """The codec of a MiniCPM-o 4.5 pipeline; its options are :class:`CodecOptions`."""
    wanted = read_options(CodecOptions, sourced(options, pipeline), "MiniCPM-o codec")
    checkpoint = load(wanted)
    config = checkpoint.token2wav
    chunking = pipeline.chunking
    if pipeline.output_rate != config.hift.sampling_rate:
        raise ConfigError(f"this codec's waveform has {config.hift.sampling_rate} Hz: set output_rate to "
                          f"{config.hift.sampling_rate}")
    if chunking.codec_left_context_frames:
        raise ConfigError("the MiniCPM-o codec keeps its own state: set chunking.codec_left_context_frames to 0")
    device = find_device(wanted.device)
    torch.set_num_threads(wanted.threads)
    decoder = _decoder(wanted, checkpoint, device, chunking.codec_chunk_frames)
    decoder.warm_up(chunking.initial_codec_chunk_frames, chunking.codec_chunk_frames)
    return CodecStage(decoder, chunking)


def _decoder(options: CodecOptions, checkpoint: Checkpoint, device: torch.device,
             chunk_codes: int) -> Token2wavDecoder:
    config = checkpoint.token2wav
    voices = Voices(options, checkpoint.folder)
    tensors: dict[str, dict[str, torch.Tensor]] = {"flow": {}, "hift": {}}
    dtype = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}[options.dtype]
    for name, tensor in checkpoint.token2wav_tensors(device):
        file, _, rest = name.partition(".")
        tensors[file][rest] = tensor.to(dtype if file == "flow" else torch.float32)
    flow = Flow(config.flow, tensors["flow"], options.n_timesteps)
    book = _VoiceBook(flow, voices, _prompts(options, checkpoint, voices))
    tail = chunk_codes - 1 + flow.lookahead if device.type == "cuda" else None
    return Token2wavDecoder(config, flow, Vocoder(Hift(config.hift, tensors["hift"])), book.find,
                            most_chunks=options.max_batch, tail_codes=tail)
