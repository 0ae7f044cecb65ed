"""OpenAI's text to speech: ``POST /v1/audio/speech``."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from aiohttp import web
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from duologue.agent.http.admission import check_model, check_open, say_refused, ticket_of
from duologue.agent.http.body import read_json
from duologue.agent.http.errors import CORS, ApiError
from duologue.agent.http.host import HOST
from duologue.agent.logs import EventLog
from duologue.agent.media.sound_file import FORMATS, SoundFile, SoundFormat
from duologue.agent.speech import Speech, SpeechFailed
from duologue.engine import Refused
from duologue.strict import faults

SPEECH = "/v1/audio/speech"

MOST_CHARS = 4096
"""Characters of one input, as many as OpenAI takes."""

WRITE_TIMEOUT_S = 20.0
"""How long a client may read nothing before it is given up."""

_log = EventLog(__name__)


def _name(voice: object) -> object:
    """A voice is named by a text, or by an object with an ``id``."""
    return voice.get("id", voice) if isinstance(voice, dict) else voice


class SpeechRequest(BaseModel):
    """The body. Fields that OpenAI has beside these, ``instructions`` among them, are not heeded."""

    model_config = ConfigDict(frozen=True, strict=True)

    model: str | None = None
    input: str = Field(min_length=1, max_length=MOST_CHARS)
    voice: Annotated[str, BeforeValidator(_name)] = ""
    response_format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm"] = "mp3"
    speed: float = Field(default=1.0, ge=0.5, le=2.0, allow_inf_nan=False)
    stream_format: Literal["audio"] = "audio"


async def speak(request: web.Request) -> web.StreamResponse:
    """Answer with the sound of a text, sent as it is made: 200 once there is some."""
    check_open(request)
    wanted = await _read(request)
    host = request.app[HOST]
    check_model(wanted.model, "model", host.models)
    try:
        speech = host.speak(wanted.input, wanted.voice, wanted.speed, ticket_of(request))
    except Refused as refused:
        raise say_refused(refused) from refused
    except ValueError as bad:
        raise ApiError(400, "cannot_speak", str(bad), param="model") from bad
    try:
        return await _answer(request, speech, FORMATS[wanted.response_format])
    finally:
        await speech.close()


async def _read(request: web.Request) -> SpeechRequest:
    body = await read_json(request)
    if not isinstance(body, dict):
        raise ApiError(400, "malformed_body", "the body is not a JSON object")
    try:
        return SpeechRequest.model_validate(body)
    except ValidationError as bad:
        raise ApiError(400, "invalid_value", faults(bad), param=str(bad.errors()[0]["loc"][0])) from bad


async def _answer(request: web.Request, speech: Speech, kind: SoundFormat) -> web.StreamResponse:
    response = web.StreamResponse(headers={**CORS, "Content-Type": kind.mime})
    file = SoundFile(kind, speech.sample_rate)
    try:
        async for pcm in speech.sound():
            if not response.prepared:
                await response.prepare(request)
            await _write(response, file.add(pcm))
        if not response.prepared:
            raise ApiError(400, "nothing_to_say", "there is nothing in the input that the voice can say", param="input")
        await _write(response, file.finish())
        await response.write_eof()
    except SpeechFailed as failed:
        _log.warning("speech_failed", reason=str(failed))
        if not response.prepared:
            raise ApiError(503, "speech_failed", f"the input could not be said: {failed}") from failed
        _cut_off(request)
    except (ConnectionError, TimeoutError):
        _cut_off(request)
    return response


async def _write(response: web.StreamResponse, data: bytes) -> None:
    """Send ``data``; raises ``TimeoutError`` for a client that reads nothing."""
    async with asyncio.timeout(WRITE_TIMEOUT_S):
        await response.write(data)


def _cut_off(request: web.Request) -> None:
    """Drop the connection, so that nobody takes what was sent for the whole."""
    if request.transport is not None:
        request.transport.abort()


def add_routes(app: web.Application) -> None:
    """Add this module's route."""
    app.router.add_post(SPEECH, speak)
