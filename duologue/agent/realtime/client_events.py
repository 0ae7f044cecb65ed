"""What a client may send, under OpenAI's GA names. Fields we do not read are accepted: clients send more than that."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class ClientEvent(BaseModel):
    """Base of what a client sends."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str
    event_id: str | None = None


class SessionUpdate(ClientEvent):
    """A deep partial merge into the session."""

    type: Literal["session.update"]
    session: dict[str, Any]


class InputContent(BaseModel):
    """One part of a message the client creates."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str
    text: str | None = Field(default=None, max_length=4096)


class InputItem(BaseModel):
    """An item the client creates."""

    model_config = ConfigDict(extra="allow", frozen=True)

    id: str | None = Field(default=None, min_length=1, max_length=64)
    type: str = "message"
    role: str = "user"
    content: tuple[InputContent, ...] = ()
    call_id: str | None = Field(default=None, max_length=64)
    name: str | None = Field(default=None, max_length=64)
    arguments: str | None = Field(default=None, max_length=16_384)
    output: str | None = Field(default=None, max_length=32_768)


class ItemCreate(ClientEvent):
    """A message, or what a tool answered."""

    type: Literal["conversation.item.create"]
    item: InputItem


class ItemNamed(ClientEvent):
    """Ask for an item as it stands now, or have it forgotten."""

    type: Literal["conversation.item.retrieve", "conversation.item.delete"]
    item_id: str


class ItemTruncate(ClientEvent):
    """Say how much of a reply the caller heard, in milliseconds of its audio."""

    type: Literal["conversation.item.truncate"]
    item_id: str
    audio_end_ms: int = Field(ge=0)


class ResponseOptions(BaseModel):
    """What is asked of one reply."""

    model_config = ConfigDict(extra="allow", frozen=True)

    instructions: str | None = Field(default=None, max_length=16_384)
    metadata: dict[str, str] | None = None


class ResponseCreate(ClientEvent):
    """Ask for a reply."""

    type: Literal["response.create"]
    response: ResponseOptions | None = None


class AudioAppend(ClientEvent):
    """The caller's next audio, base64, in the session's input format.

    ``sample_rate_hz`` is vLLM-Omni's: it says another rate for PCM.
    """

    type: Literal["input_audio_buffer.append"]
    audio: str
    sample_rate_hz: int | None = None


class Plain(ClientEvent):
    """An event whose type says everything we need; the last three are vLLM-Omni's."""

    type: Literal["response.cancel", "output_audio_buffer.clear", "input_audio_buffer.commit",
                  "input_audio_buffer.clear", "session.close", "session.heartbeat", "playback.ack"]
