"""The OpenAI-Realtime wire events Duologue sends, under OpenAI's GA names.

Field rules follow what public clients' own parsers accept: every event has an ``event_id``; an optional field that
has no value is left out, never null; item content is ``output_audio``/``input_audio``/``input_text``, a content part's
type is ``audio``. Names that begin with ``duologue.`` are ours, and are sent only to clients that asked for them.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class ServerEvent(BaseModel):
    """Base of what the server sends."""

    model_config = ConfigDict(frozen=True)

    event_id: str = ""


class Content(BaseModel):
    """One part of an item."""

    type: Literal["output_audio", "output_text", "input_audio", "input_text"]
    transcript: str | None = None
    text: str | None = None


class Item(BaseModel):
    """A message of the conversation, the call of a tool, or what the tool answered."""

    id: str
    object: Literal["realtime.item"] = "realtime.item"
    type: Literal["message", "function_call", "function_call_output"] = "message"
    status: Literal["in_progress", "completed", "incomplete"]
    role: Literal["user", "assistant", "system"] | None = None
    content: tuple[Content, ...] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: str | None = None


class Part(BaseModel):
    """A content part of a reply."""

    type: Literal["audio"] = "audio"
    transcript: str = ""


CutReason = Literal["turn_detected", "client_cancelled", "max_output_tokens"]
"""Why a reply was cut: the caller spoke, the client asked for it, it was too long."""


class StatusDetails(BaseModel):
    """Why a reply did not run to its end."""

    type: Literal["cancelled", "incomplete", "failed"]
    reason: CutReason | None = None
    error: dict[str, str] | None = None


class Response(BaseModel):
    """A reply."""

    id: str
    object: Literal["realtime.response"] = "realtime.response"
    status: Literal["in_progress", "completed", "cancelled", "incomplete", "failed"]
    status_details: StatusDetails | None = None
    output: tuple[Item, ...] = ()
    output_modalities: tuple[str, ...] = ("audio",)
    metadata: dict[str, str] | None = None


class SessionEvent(ServerEvent):
    """The session as it stands."""

    type: Literal["session.created", "session.updated"]
    session: dict[str, Any]


class SessionClosed(ServerEvent):
    """vLLM-Omni's answer to ``session.close``."""

    type: Literal["session.closed"] = "session.closed"


class SpeechStarted(ServerEvent):
    """The caller began to speak."""

    type: Literal["input_audio_buffer.speech_started"] = "input_audio_buffer.speech_started"
    item_id: str
    audio_start_ms: int


class SpeechStopped(ServerEvent):
    """The caller fell silent."""

    type: Literal["input_audio_buffer.speech_stopped"] = "input_audio_buffer.speech_stopped"
    item_id: str
    audio_end_ms: int


class DtmfReceived(ServerEvent):
    """The caller pressed a key on a telephone; ``received_at`` is in seconds of Unix time."""

    type: Literal["input_audio_buffer.dtmf_event_received"] = "input_audio_buffer.dtmf_event_received"
    event: str
    received_at: int


class Committed(ServerEvent):
    """The caller's utterance is an item of the conversation now."""

    type: Literal["input_audio_buffer.committed"] = "input_audio_buffer.committed"
    item_id: str
    previous_item_id: str | None = None


class BufferCleared(ServerEvent):
    """Audio that was not given to the model yet never will be."""

    type: Literal["input_audio_buffer.cleared"] = "input_audio_buffer.cleared"


class ItemEvent(ServerEvent):
    """An item came, is complete, or was asked for."""

    type: Literal["conversation.item.added", "conversation.item.done", "conversation.item.retrieved"]
    item: Item
    previous_item_id: str | None = None


class TranscriptionUsage(BaseModel):
    """What the transcription was billed by: its audio's length."""

    type: Literal["duration"] = "duration"
    seconds: float


class TranscriptionCompleted(ServerEvent):
    """The caller's words."""

    type: Literal["conversation.item.input_audio_transcription.completed"] = (
        "conversation.item.input_audio_transcription.completed")
    item_id: str
    content_index: int = 0
    transcript: str
    usage: TranscriptionUsage


class ItemTruncated(ServerEvent):
    """The reply's item was cut at what was heard."""

    type: Literal["conversation.item.truncated"] = "conversation.item.truncated"
    item_id: str
    content_index: int = 0
    audio_end_ms: int


class ItemDeleted(ServerEvent):
    """The item is not kept any more."""

    type: Literal["conversation.item.deleted"] = "conversation.item.deleted"
    item_id: str


class ResponseEvent(ServerEvent):
    """A reply began or ended."""

    type: Literal["response.created", "response.done"]
    response: Response


class OutputItemEvent(ServerEvent):
    """A reply's item began or ended."""

    type: Literal["response.output_item.added", "response.output_item.done"]
    response_id: str
    output_index: int = 0
    item: Item


class ContentPartEvent(ServerEvent):
    """A reply's content part began or ended."""

    type: Literal["response.content_part.added", "response.content_part.done"]
    response_id: str
    item_id: str
    output_index: int = 0
    content_index: int = 0
    part: Part


class TranscriptDelta(ServerEvent):
    """More of a reply's text."""

    type: Literal["response.output_audio_transcript.delta"] = "response.output_audio_transcript.delta"
    response_id: str
    item_id: str
    output_index: int = 0
    content_index: int = 0
    delta: str


class TranscriptDone(ServerEvent):
    """A reply's text: all of it, or what was heard of it."""

    type: Literal["response.output_audio_transcript.done"] = "response.output_audio_transcript.done"
    response_id: str
    item_id: str
    output_index: int = 0
    content_index: int = 0
    transcript: str


class AudioDelta(ServerEvent):
    """More of a reply's audio, base64, in the session's output format."""

    type: Literal["response.output_audio.delta"] = "response.output_audio.delta"
    response_id: str
    item_id: str
    output_index: int = 0
    content_index: int = 0
    delta: str


class AudioDone(ServerEvent):
    """A reply's audio is complete."""

    type: Literal["response.output_audio.done"] = "response.output_audio.done"
    response_id: str
    item_id: str
    output_index: int = 0
    content_index: int = 0


class ArgumentsDelta(ServerEvent):
    """More of the arguments a tool is called with."""

    type: Literal["response.function_call_arguments.delta"] = "response.function_call_arguments.delta"
    response_id: str
    item_id: str
    output_index: int = 0
    call_id: str
    delta: str


class ArgumentsDone(ServerEvent):
    """A tool is called: JSON text."""

    type: Literal["response.function_call_arguments.done"] = "response.function_call_arguments.done"
    response_id: str
    item_id: str
    output_index: int = 0
    call_id: str
    name: str
    arguments: str


class OutputBuffer(ServerEvent):
    """Playing of a reply began, ended, or was cut off."""

    type: Literal["output_audio_buffer.started", "output_audio_buffer.stopped", "output_audio_buffer.cleared"]
    response_id: str


class ErrorBody(BaseModel):
    """What was wrong, and what to do."""

    type: Literal["invalid_request_error", "server_error"]
    code: str
    message: str
    param: str | None = None
    event_id: str | None = None


class ErrorEvent(ServerEvent):
    """A client's event could not be used, or the server failed."""

    type: Literal["error"] = "error"
    error: ErrorBody


# --- ours, after session.update {"session": {"duologue": {"events": true}}} ---------------------------------


class StateEvent(ServerEvent):
    """Who has the floor."""

    type: Literal["duologue.state"] = "duologue.state"
    state: str
    at_ms: int


class DecisionEvent(ServerEvent):
    """What the thinker did with one unit."""

    type: Literal["duologue.decision"] = "duologue.decision"
    unit: int
    choice: Literal["listen", "speak"]
    yields: bool
    speech: float
    at_ms: int
    unit_ms: int


class PartialTranscript(ServerEvent):
    """The caller's words so far; replaces what was sent before."""

    type: Literal["duologue.transcript.partial"] = "duologue.transcript.partial"
    item_id: str
    text: str


class ReplyHeard(ServerEvent):
    """A reply was cut: ``heard_text`` of ``text`` was heard."""

    type: Literal["duologue.reply.heard"] = "duologue.reply.heard"
    item_id: str
    text: str
    heard_text: str
    interrupted: bool = True


class SpokenWord(BaseModel):
    """Characters [start, end) of a reply's text, and the milliseconds of its audio that speak them."""

    start: int
    end: int
    start_ms: int
    end_ms: int


class ReplyWords(ServerEvent):
    """Where further words of a reply are in its audio; sent ahead of that audio."""

    type: Literal["duologue.reply.words"] = "duologue.reply.words"
    item_id: str
    words: tuple[SpokenWord, ...]


class LatencyEvent(ServerEvent):
    """One measured latency of this call."""

    type: Literal["duologue.latency"] = "duologue.latency"
    kind: Literal["voice_to_voice", "stop"]
    ms: int


class HealthEvent(ServerEvent):
    """A stage this call depends on went away or came back."""

    type: Literal["duologue.health"] = "duologue.health"
    stage: str
    up: bool
