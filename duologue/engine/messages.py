"""Typed messages that cross the engine's face and travel between its stages.

Everything here is a frozen dataclass over numpy buffers and plain values: deltas only, never a cumulative
output. A message about a reply carries a :class:`Fence`; one whose epoch is older than the session's is
stale and is dropped, and the drop is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

INPUT_RATE = 16_000
"""Sample rate, in Hz, of every unit (the rate of MiniCPM-o's and Qwen3-Omni's audio encoders)."""

Pcm = NDArray[np.int16]
"""Mono signed 16-bit samples, shape (n,)."""


@dataclass(frozen=True, slots=True)
class Fence:
    """Names one piece of one reply; ``seq`` counts the messages of one kind in one turn, from 0."""

    session: str
    epoch: int
    turn: int
    seq: int


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """One fixed slice of the caller's audio.

    ``pcm`` is int16 at 16 kHz, shape (unit_samples,). ``speech`` is the highest speech probability (0..1)
    in it, ``concealed`` how many of its samples were made up by loss concealment, and ``agent_audible``
    how many of its samples were captured while the reply was being played to the caller.
    """

    index: int
    pcm: Pcm
    speech: float
    concealed: int = 0
    agent_audible: int = 0


class Choice(Enum):
    """What the thinker does with one unit."""

    LISTEN = "listen"
    SPEAK = "speak"


@dataclass(frozen=True, slots=True)
class Decision:
    """The thinker's answer to one unit: exactly one for every unit, in order.

    ``yields`` says that the thinker gives up the floor: whatever of the reply has not been played yet should
    not be. ``work_s`` is the time in seconds the unit took, from its arrival at the stage to its decision.
    ``tokens`` are what a model that thinks in tokens answered the unit with; its journal holds them, so that a
    rebuilt stage can be given them instead of asking again.
    """

    session: str
    epoch: int
    turn: int
    unit: int
    choice: Choice
    yields: bool = False
    work_s: float = 0.0
    tokens: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CallerWords:
    """What the caller was understood to say; ``text`` replaces earlier partial text of the same utterance.

    Never stale: it is a fact of the input, whatever happens to replies. ``first_unit`` and ``last_unit`` are
    the units in which the utterance's speech began and (so far) ended.
    """

    session: str
    utterance: int
    text: str
    final: bool
    first_unit: int
    last_unit: int


@dataclass(frozen=True, slots=True, eq=False)
class Conditioning:
    """What a talker is conditioned on beside the text: token ids, int32 (n,), and the thinker's hidden states of them.

    ``rows`` is float32 (n, hidden_size): row i is the state after token i was fed. ``ends`` is, of each token, where
    its text ends in the reply's whole text, int32 (n,).
    """

    tokens: NDArray[np.int32]
    rows: NDArray[np.float32]
    ends: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class ReplyText:
    """A piece of a reply's text; ``start`` is its first character's place in the reply's whole text.

    ``rate`` is how fast it should be said: 1 is the voice's own pace, 0.5 half as fast. ``conditioning`` goes to the
    next stage over an edge that joins the two directly, and nowhere else.
    """

    fence: Fence
    start: int
    text: str
    last: bool = False
    rate: float = 1.0
    conditioning: Conditioning | None = None


@dataclass(frozen=True, slots=True)
class TextSpan:
    """Characters [start, end) of a reply's text are spoken by samples [first_sample, end_sample) of it."""

    start: int
    end: int
    first_sample: int
    end_sample: int


@dataclass(frozen=True, slots=True, eq=False)
class CodecFrames:
    """Codec frames of a reply, shape (frames, width), and the spans of text they speak.

    A frame is float32 parameters or int32 codes, one a codebook. Sample positions in ``spans`` count from the start
    of the reply's audio, at the codec's output rate.
    """

    fence: Fence
    frames: NDArray[np.float32] | NDArray[np.int32]
    spans: tuple[TextSpan, ...] = ()
    last: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ReplyAudio:
    """A chunk of a reply's waveform, int16 at the pipeline's output rate, shape (n,).

    ``first_sample`` is its place in the reply's audio; ``spans`` are the words that end in or before it and
    have not been sent yet. The one with ``last`` (it may be empty) is the end of the reply's audio.
    """

    fence: Fence
    first_sample: int
    pcm: Pcm
    spans: tuple[TextSpan, ...] = ()
    last: bool = False


class TurnStatus(Enum):
    """How a reply ended."""

    DONE = "done"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """A reply's one terminal event; ``text`` is what was heard if interrupted, else all that was said."""

    session: str
    epoch: int
    turn: int
    status: TurnStatus
    text: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """A stage that serves this session went away (``up`` false) or came back."""

    stage: str
    up: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The thinker asks for a tool's work; ``call`` names it in its answer, a ``ToolResult``.

    It is no reply: what the thinker has to say of the result comes in a turn of its own. ``arguments`` is a JSON
    object as text. A fact of the session like a caller's words: it is never stale, and asked for once. The stage makes
    the ``call``, one that no other call of the session has, also none of an earlier life.
    """

    session: str
    call: str
    name: str
    arguments: str


EngineEvent = Decision | CallerWords | ReplyText | ReplyAudio | ToolCall | TurnEnd | Health
"""What a session's ``outputs()`` yields."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the thinker may call; ``parameters`` is the JSON schema of its arguments, as text."""

    name: str
    description: str = ""
    parameters: str = "{}"


@dataclass(frozen=True, slots=True)
class CallerText:
    """Text the caller typed, given to the thinker between two units."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the tool answered to ``ToolCall.call``, given to the thinker between two units."""

    call: str
    output: str


@dataclass(frozen=True, slots=True)
class Instructions:
    """From here on these are the session's instructions, in place of those it was opened with."""

    text: str


@dataclass(frozen=True, slots=True)
class Tools:
    """From here on these are the tools the thinker may call, and no others."""

    tools: tuple[Tool, ...]


Item = CallerText | ToolResult | Instructions | Tools
"""What ``inject`` takes."""


# --- the record a session is rebuilt from -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallerSaid:
    """A caller's utterance that has been understood, or text the caller typed; it came before unit ``unit``."""

    text: str
    unit: int = 0


@dataclass(frozen=True, slots=True)
class AgentSaid:
    """A reply as the caller heard it; ``open`` means it was still being said when the record was taken.

    ``cut`` is the epoch that began when it was cut, if it was.
    """

    turn: int
    text: str
    open: bool = False
    cut: int | None = None


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """A tool the thinker called in answer to unit ``unit``, and its ``output`` once it has come."""

    call: str
    name: str
    arguments: str
    output: str | None = None
    unit: int = 0


HistoryItem = CallerSaid | AgentSaid | ToolCalled


# --- hub to stage -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decided:
    """What a model that thinks in tokens answered unit ``unit`` with, in reply ``turn`` if it spoke.

    Replies begun before ``epoch``, of which ``history`` knows nothing, are void: nobody heard of them.
    """

    unit: int
    turn: int
    tokens: tuple[int, ...]
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Open:
    """Start a session in a stage, or rebuild it from its journal.

    ``next_unit`` is the index of the first unit that will be given. Units before ``decided`` are replayed for
    what was heard in them: their decisions are made, and nothing new is to be said in answer to them. A reply that is
    open in the history is gone on with: the text of turn ``turn`` where ``text`` ends. Numbers of utterances, and of
    the messages of a reply, start from 0 again. Calls in the history without their output are open still and not to be
    made again; ``instructions`` and ``tools`` are the present ones. ``outputs`` are the answers to units before
    ``decided``, as they were given: a reply that was cut later is in ``history`` as it was heard. They go further
    back than the units that are replayed, whose audio is large.
    """

    session: str
    epoch: int
    next_turn: int
    next_unit: int
    instructions: str = ""
    voice: str = ""
    tools: tuple[Tool, ...] = ()
    auto_respond: bool = True
    """Whether the thinker decides by itself when to speak; if not, it only listens until a ``Respond`` (turn mode)."""
    history: tuple[HistoryItem, ...] = ()
    decided: int = 0
    outputs: tuple[Decided, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class AppendUnit:
    """One more unit for the session's stage-0 request."""

    session: str
    epoch: int
    unit: Unit


@dataclass(frozen=True, slots=True)
class Inject:
    """An item between two units."""

    session: str
    epoch: int
    item: Item


@dataclass(frozen=True, slots=True)
class Respond:
    """Turn mode: reply to what was heard so far, beginning with the next unit; ``instructions`` are for this reply.

    A reply, or the call of a tool, is the answer to it. One that is not answered yet is taken back by an ``Interrupt``,
    and replaced by another.
    """

    session: str
    epoch: int
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class Interrupt:
    """The epoch is now ``epoch``: work of older ones is void.

    If ``turn`` is not None, that reply was cut, and of it the caller heard ``heard`` and no more. Replies after
    ``last_turn`` that the thinker has begun are void: their first words came too late, and nobody knows of them.
    """

    session: str
    epoch: int
    turn: int | None = None
    heard: str = ""
    last_turn: int = -1


@dataclass(frozen=True, slots=True)
class Hold:
    """The next stage has enough waiting: while ``held``, make no more for it of this session.

    A talker must obey, since frames that find no room fail the session. Text always finds room, so a thinker may go
    on, as it has to answer every unit.
    """

    session: str
    held: bool


@dataclass(frozen=True, slots=True)
class Close:
    """The session is over: give everything back."""

    session: str


StageInput = Open | AppendUnit | Inject | Respond | Interrupt | Hold | Close | ReplyText | CodecFrames
"""What a stage's ``receive`` takes: session control for all, and its predecessor's output."""

@dataclass(frozen=True, slots=True)
class SessionFailed:
    """A stage cannot go on with this session and has given back all it held; ``detail`` is for the log."""

    session: str
    detail: str


StageOutput = Decision | CallerWords | ReplyText | ToolCall | CodecFrames | ReplyAudio | SessionFailed
"""What a stage's ``step`` returns."""
