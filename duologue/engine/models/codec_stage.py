"""The codec stage of every family: codec frames in, chunks of waveform out; a family gives the decoder.

Chunks follow the pipeline's chunking. One ``step`` decodes one chunk for each of the sessions that have one due:
together, as far as the decoder does that, and without waiting for more.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from duologue.engine.alarm import Alarm
from duologue.engine.chunking import NOW, ChunkPlanner, Window
from duologue.engine.config import ChunkingConfig
from duologue.engine.messages import (
    Close,
    CodecFrames,
    Fence,
    Open,
    Pcm,
    ReplyAudio,
    StageInput,
    StageOutput,
    TextSpan,
)
from duologue.engine.models.filing import Filing
from duologue.metrics import DROPS

MAX_WAITING_S = 180.0
"""Sound of one reply that may wait to be decoded; frames beyond it are dropped."""

_S = TypeVar("_S")
Frames = NDArray[Any]
"""Frames as ``CodecFrames`` has them, shape (frames, width)."""


@dataclass(frozen=True, slots=True, eq=False)
class Chunk(Generic[_S]):
    """What a decoder is to decode: ``frames``, of which the first ``left_context`` have been decoded before.

    ``state`` is what it made for the reply. After the ``last`` chunk nothing more comes; it may have no new frames.
    """

    frames: Frames
    left_context: int
    state: _S
    last: bool = False


class Decoder(Protocol[_S]):
    """Turns codec frames into samples, for many replies at once."""

    @property
    def frame_samples(self) -> int:
        """Samples one frame is decoded to."""

    @property
    def sample_rate(self) -> int:
        """Of what it decodes to, in Hz."""

    @property
    def delay_samples(self) -> int:
        """Samples of a reply before those of its first frame, where it looks ahead; it begins with silence."""

    @property
    def most_chunks(self) -> int:
        """How many chunks it can decode together in some tens of milliseconds."""

    def begin(self, fence: Fence, voice: str) -> _S:
        """What it keeps of a reply from chunk to chunk; ``voice`` is the one the session was opened with."""

    def check(self, frames: Frames) -> Frames:
        """The frames as it reads them; raises ``ValueError`` when they are none of this codec's."""

    def decode(self, chunks: Sequence[Chunk[_S]]) -> list[Pcm]:
        """The samples of each chunk, whatever is decoded beside it.

        There are ``frame_samples`` for each new frame, and ``delay_samples`` more of the last chunk.
        """


class _Reply(Generic[_S]):
    """One reply on its way from frames to samples."""

    def __init__(self, fence: Fence, voice: str, decoder: Decoder[_S], chunking: ChunkingConfig,
                 clock: Callable[[], float]) -> None:
        frame_s = decoder.frame_samples / decoder.sample_rate
        self.fence = fence
        self._decoder = decoder
        self._state = decoder.begin(fence, voice)
        self._clock = clock
        self._planner = ChunkPlanner(chunking, frame_s)
        self._most_waiting = round(MAX_WAITING_S / frame_s)
        self._context = chunking.codec_left_context_frames
        self._largest = chunking.codec_chunk_frames
        self._window: Window | None = None
        """The window being decoded."""
        self._none: Frames | None = None
        """No frames, once there have been some."""
        self._kept_back = decoder.delay_samples > 0
        """Whether sound of decoded frames is still to come."""
        self._frames: deque[Frames] = deque()
        self._base = 0
        """Number of the first of ``_frames``."""
        self._spans: deque[TextSpan] = deque()
        self._finished = False
        self._samples = 0
        self._seq = 0

    @property
    def due(self) -> float | None:
        """From when on there is work to do, by the clock; None if not before more frames have come."""
        return NOW if self._planner.done else self._planner.due()

    @property
    def ready(self) -> bool:
        return (due := self.due) is not None and (due == NOW or due <= self._clock())

    def add(self, message: CodecFrames) -> None:
        """Take frames; raises ``ValueError`` when they are not this codec's."""
        room = self._most_waiting - self._planner.waiting
        if len(message.frames) > room:
            DROPS.labels(what="codec_frames", reason="full").inc(len(message.frames) - room)
        fresh = self._decoder.check(message.frames[:room])
        self._frames.extend(fresh)
        if len(fresh):
            self._none = fresh[:0]
        self._planner.push(len(fresh))
        delay = self._decoder.delay_samples
        self._spans.extend(replace(span, first_sample=span.first_sample + delay, end_sample=span.end_sample + delay)
                           for span in message.spans)
        if message.last:
            self._planner.finish()
            self._finished = True

    def take(self) -> Chunk[_S] | None:
        """What is to be decoded now; None if only the end is left to say.

        What was kept back is decoded with the last window, or after it where that is as large as windows are.
        """
        self._window = window = self._planner.cut(self._clock())
        if window is None:
            if not self._kept_back or self._none is None:
                return None
            self._kept_back = False
            return Chunk(self._none, 0, self._state, last=True)
        first = window.start - window.left_context - self._base
        frames = np.stack([self._frames[i] for i in range(first, window.end - self._base)])
        self._forget(window)
        last = self._planner.done and not (self._kept_back and window.frames == self._largest)
        self._kept_back = self._kept_back and not last
        return Chunk(frames, window.left_context, self._state, last)

    def _forget(self, window: Window) -> None:
        """Keep only what later windows look back on."""
        while self._base < window.end - self._context:
            self._frames.popleft()
            self._base += 1

    def audio(self, pcm: Pcm | None) -> ReplyAudio:
        """The message for the chunk that was taken and decoded to ``pcm``, or for the end that was left to say."""
        if self._window is not None:
            self._planner.sent(self._clock())
        if pcm is None:
            pcm = np.empty(0, np.int16)
        first, self._samples = self._samples, self._samples + len(pcm)
        last = self._planner.done and not (self._kept_back and self._none is not None)
        spans = []
        while self._spans and (last or self._spans[0].end_sample <= self._samples):
            spans.append(self._spans.popleft())
        fence = Fence(self.fence.session, self.fence.epoch, self.fence.turn, self._seq)
        self._seq += 1
        return ReplyAudio(fence, first, pcm, tuple(spans), last)


class CodecStage(Generic[_S]):
    """The stage; all streams share one decoder. ``clock`` tells seconds of ``time.monotonic``, or a test's."""

    def __init__(self, decoder: Decoder[_S], chunking: ChunkingConfig,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._decoder = decoder
        self._alarm = Alarm()
        self._voices: dict[str, str] = {}
        self._replies: Filing[CodecFrames, _Reply[_S]] = Filing(
            CodecFrames, lambda message: _Reply(message.fence, self._voices[message.fence.session], decoder, chunking,
                                                clock))

    def receive(self, message: StageInput) -> None:
        """File a message; frames of an older epoch, or of a reply already decoded, are dropped."""
        if isinstance(message, Open):
            self._voices[message.session] = message.voice
        elif isinstance(message, Close):
            self._voices.pop(message.session, None)
        self._replies.receive(message)
        self._set_alarm()

    @property
    def ready(self) -> bool:
        """Whether any session has a chunk to decode or a reply to end."""
        return self._replies.ready

    @property
    def wake_fd(self) -> int:
        """Becomes readable when a chunk is due that waited for more frames."""
        return self._alarm.fd

    def step(self) -> Sequence[StageOutput]:
        """Decode one chunk for each of the sessions that have waited longest."""
        self._alarm.clear()
        replies = self._replies.take(self._decoder.most_chunks)
        chunks = [reply.take() for reply in replies]
        ready = [chunk for chunk in chunks if chunk is not None]
        sounds = iter(self._decoder.decode(ready) if ready else ())
        outputs = [reply.audio(next(sounds) if chunk is not None else None)
                   for reply, chunk in zip(replies, chunks, strict=True)]
        for output in outputs:
            if output.last:
                self._replies.end(output.fence)
        self._set_alarm()
        return outputs

    def _set_alarm(self) -> None:
        times = [due for reply in self._replies.current() if (due := reply.due) is not None and due != NOW]
        self._alarm.set(min(times, default=None))

    def close(self) -> None:
        """Free the alarm; idempotent."""
        self._alarm.close()
