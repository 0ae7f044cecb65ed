"""The embedded codec stage: codec frames to the reply's waveform, by the streaming vocoder.

Chunks follow the pipeline's chunking: a short first one, so that speech begins early, longer ones after it.
One ``step`` decodes one chunk for each of some sessions together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duologue.engine.chunking import ChunkPlanner, Window
from duologue.engine.config import ChunkingConfig, ConfigError, PipelineConfig
from duologue.engine.messages import (
    Close,
    CodecFrames,
    Fence,
    Interrupt,
    Open,
    Pcm,
    ReplyAudio,
    StageInput,
    StageOutput,
    TextSpan,
)
from duologue.engine.models.embedded.vocoder import Vocoder, VocoderState
from duologue.engine.models.embedded.voice_format import (
    FRAME_VECTORS,
    SAMPLE_RATE,
    VECTOR_WIDTH,
)
from duologue.metrics import DROPS

GAIN = 1.4
"""Brings the voice to an active speech level of about -20 dB of full scale (ITU-T P.56; peaks reach 0.7)."""
MAX_WAITING_FRAMES = 4500
"""Frames of one reply that may wait to be decoded (three minutes, 4.5 MB); more are dropped."""
_BATCH = 8
"""Sessions decoded in one step (8 chunks of 400 ms are about 25 ms of work)."""


class _Reply:
    """One reply on its way from frames to samples."""

    def __init__(self, fence: Fence, chunking: ChunkingConfig) -> None:
        self.vocoder: VocoderState = Vocoder.open(seed=fence.turn)
        self._fence = fence
        self._planner = ChunkPlanner(chunking)
        self._frames: deque[NDArray[np.float32]] = deque()
        self._windows: deque[Window] = deque()
        self._spans: deque[TextSpan] = deque()
        self._finished = False
        self._samples = 0
        self._seq = 0

    @property
    def ready(self) -> bool:
        return bool(self._windows) or self._finished

    def add(self, message: CodecFrames) -> None:
        """Take frames and plan the chunks they fill."""
        room = MAX_WAITING_FRAMES - len(self._frames)
        if len(message.frames) > room:
            DROPS.labels(what="codec_frames", reason="full").inc(len(message.frames) - room)
        fresh = message.frames[:room]
        self._frames.extend(fresh.reshape(-1, FRAME_VECTORS, VECTOR_WIDTH))
        self._windows.extend(self._planner.push(len(fresh)))
        self._spans.extend(message.spans)
        if message.last:
            self._windows.extend(self._planner.finish())
            self._finished = True

    def take(self) -> list[NDArray[np.float32]]:
        """The frames of the next chunk; none if only the end is left to say."""
        count = self._windows.popleft().frames if self._windows else 0
        return [self._frames.popleft() for _ in range(count)]

    def audio(self, pcm: Pcm) -> ReplyAudio:
        """The message for the next chunk."""
        first, self._samples = self._samples, self._samples + len(pcm)
        last = self._finished and not self._windows
        spans = []
        while self._spans and (last or self._spans[0].end_sample <= self._samples):
            spans.append(self._spans.popleft())
        fence = Fence(self._fence.session, self._fence.epoch, self._fence.turn, self._seq)
        self._seq += 1
        return ReplyAudio(fence, first, pcm, tuple(spans), last)


class _Session:
    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.replies: dict[int, _Reply] = {}
        self.spoken = -1
        """The last turn that has been decoded to its end."""

    @property
    def ready(self) -> bool:
        """Replies are decoded one after the other."""
        return bool(self.replies) and next(iter(self.replies.values())).ready


class Codec:
    """The stage; all streams share one vocoder's tables."""

    def __init__(self, chunking: ChunkingConfig) -> None:
        self._chunking = chunking
        self._vocoder = Vocoder()
        self._sessions: dict[str, _Session] = {}

    def receive(self, message: StageInput) -> None:
        """File a message; frames of an older epoch, or of a reply already decoded, are dropped."""
        if isinstance(message, Open):
            self._sessions[message.session] = _Session(message.epoch)
        elif isinstance(message, Close):
            self._sessions.pop(message.session, None)
        elif isinstance(message, Interrupt):
            if session := self._sessions.get(message.session):
                session.epoch = message.epoch
                session.replies.clear()
        elif isinstance(message, CodecFrames):
            self._add(message)

    def _add(self, message: CodecFrames) -> None:
        fence = message.fence
        session = self._sessions.get(fence.session)
        if session is None:
            return
        if fence.epoch != session.epoch or fence.turn <= session.spoken:
            DROPS.labels(what="codec_frames", reason="stale").inc(len(message.frames))
            return
        if fence.turn not in session.replies:
            session.replies[fence.turn] = _Reply(fence, self._chunking)
        session.replies[fence.turn].add(message)

    @property
    def ready(self) -> bool:
        """Whether any session has a chunk to decode or a reply to end."""
        return any(session.ready for session in self._sessions.values())

    def step(self) -> Sequence[StageOutput]:
        """Decode one chunk for each of the sessions that have waited longest."""
        names = list(islice((name for name, session in self._sessions.items() if session.ready), _BATCH))
        replies = []
        for name in names:
            session = self._sessions.pop(name)
            self._sessions[name] = session  # to the end of the row
            replies.append(next(iter(session.replies.values())))
        outputs = [reply.audio(pcm) for reply, pcm in zip(replies, self._decode(replies), strict=True)]
        for output in outputs:
            if output.last:
                session = self._sessions[output.fence.session]
                del session.replies[output.fence.turn]
                session.spoken = output.fence.turn
        return outputs

    def _decode(self, replies: Sequence[_Reply]) -> list[Pcm]:
        """The next chunk of each reply, frame by frame for all that still have one."""
        chunks = [reply.take() for reply in replies]
        pieces: list[list[Pcm]] = [[] for _ in replies]
        for place in range(max(map(len, chunks), default=0)):
            live = [i for i, chunk in enumerate(chunks) if place < len(chunk)]
            sound = self._vocoder.step([replies[i].vocoder for i in live],
                                       np.stack([chunks[i][place] for i in live]))
            for i, pcm in zip(live, to_pcm(sound), strict=True):
                pieces[i].append(pcm)
        return [np.concatenate(piece) if piece else np.empty(0, np.int16) for piece in pieces]


def to_pcm(sound: NDArray[np.float32]) -> Pcm:
    """Samples of the voice at its level in a call."""
    scaled = np.rint(sound * np.float32(GAIN * 32768))
    pcm: Pcm = np.clip(scaled, -32768, 32767).astype(np.int16)
    return pcm


def create(options: Mapping[str, Any], pipeline: PipelineConfig) -> Codec:
    """The codec of the embedded pipeline; it has no options."""
    if options:
        raise ConfigError(f"the embedded codec has no options; remove {', '.join(sorted(options))}")
    if pipeline.output_rate != SAMPLE_RATE:
        raise ConfigError(f"the embedded voice speaks at {SAMPLE_RATE} Hz: set output_rate to {SAMPLE_RATE}")
    if pipeline.chunking.codec_left_context_frames:
        raise ConfigError("the embedded codec keeps its own state: set codec_left_context_frames to 0")
    return Codec(pipeline.chunking)
