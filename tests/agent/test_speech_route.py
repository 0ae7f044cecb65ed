"""``POST /v1/audio/speech``, asked as clients ask it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import numpy as np
import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application, Request

from duologue.agent.http import speech
from duologue.agent.http.host import Drain
from duologue.agent.server import build_app
from duologue.agent.speech import SpeechFailed
from duologue.engine import Pcm, Refused
from tests.agent.fake_host import FakeHost, FakeSpeech
from tests.agent.media.test_sound_file import read, tone

Client = TestClient[Request, Application]
URL = "/v1/audio/speech"


@pytest.fixture
def host() -> FakeHost:
    return FakeHost()


@pytest.fixture
def drain() -> Drain:
    return Drain()


@pytest.fixture
async def client(host: FakeHost, drain: Drain) -> AsyncIterator[Client]:
    async with TestClient(TestServer(build_app(host, drain=drain))) as client:
        yield client


@pytest.mark.parametrize(("name", "mime"), [("mp3", "audio/mpeg"), ("opus", "audio/ogg"), ("aac", "audio/aac"),
                                            ("flac", "audio/flac"), ("wav", "audio/wav"), ("pcm", "audio/pcm")])
async def test_a_text_is_answered_with_its_sound(client: Client, host: FakeHost, name: str, mime: str) -> None:
    host.speech = FakeSpeech(tone(0.4, 16_000), tone(0.6, 16_000))
    response = await client.post(URL, json={"model": "embedded", "input": "Hello.", "response_format": name})
    assert (response.status, response.content_type) == (200, mime)
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    samples, rate = read(name, await response.read())
    assert len(samples) / rate == pytest.approx(1.0, abs=0.15)
    assert host.speech.closed.is_set()


async def test_what_is_asked_for_reaches_the_voice(client: Client, host: FakeHost) -> None:
    for body in ({"input": "One.", "voice": "deep", "speed": 1.5, "instructions": "Whisper."},
                 {"input": "Two.", "voice": {"id": "voice_7"}, "speed": 2, "stream_format": "audio"},
                 {"input": "Three.", "model": "embedded"}):
        host.speech = FakeSpeech(tone(0.1, 16_000))
        response = await client.post(URL, json=body, headers={"X-Duologue-Ticket": "t"})
        assert (response.status, response.content_type) == (200, "audio/mpeg")
        await response.read()
    assert host.spoken == [("One.", "deep", 1.5, "t"), ("Two.", "voice_7", 2.0, "t"), ("Three.", "", 1.0, "t")]


BAD = [
    ({"json": {"model": "embedded"}}, 400, "invalid_value", "input"),
    ({"json": {"input": ""}}, 400, "invalid_value", "input"),
    ({"json": {"input": "x" * 4097}}, 400, "invalid_value", "input"),
    ({"json": {"input": ["x"]}}, 400, "invalid_value", "input"),
    ({"json": {"input": "x", "speed": 0.4}}, 400, "invalid_value", "speed"),
    ({"json": {"input": "x", "speed": 2.1}}, 400, "invalid_value", "speed"),
    ({"data": b'{"input": "x", "speed": NaN}'}, 400, "invalid_value", "speed"),
    ({"json": {"input": "x", "voice": {"name": "deep"}}}, 400, "invalid_value", "voice"),
    ({"json": {"input": "x", "response_format": "midi"}}, 400, "invalid_value", "response_format"),
    ({"json": {"input": "x", "stream_format": "sse"}}, 400, "invalid_value", "stream_format"),
    ({"json": {"input": "x", "model": "tts-1"}}, 404, "model_not_found", "model"),
    ({"json": ["x"]}, 400, "malformed_body", None),
    ({"data": b"hello"}, 400, "malformed_body", None),
    ({"data": b"x" * 70_000}, 413, "body_too_large", None),
]


@pytest.mark.parametrize(("request_", "status", "code", "param"), BAD)
async def test_bad_requests_are_told_what_is_wrong(client: Client, host: FakeHost, request_: dict[str, Any],
                                                   status: int, code: str, param: str | None) -> None:
    response = await client.post(URL, **request_)
    error = (await response.json())["error"]
    assert (response.status, error["code"], error["param"]) == (status, code, param)
    assert error["type"] == "invalid_request_error"
    assert host.spoken == []


async def test_a_format_we_do_not_have_is_answered_with_those_we_have(client: Client) -> None:
    response = await client.post(URL, json={"input": "x", "response_format": "midi"})
    message = (await response.json())["error"]["message"]
    assert all(f"'{name}'" in message for name in ("mp3", "opus", "aac", "flac", "wav", "pcm"))


async def test_a_refusal_says_when_to_ask_again(client: Client, host: FakeHost) -> None:
    host.refuse = Refused("capacity", "full", position=2, eta_s=3.0, ticket="t")
    response = await client.post(URL, json={"input": "Hello."})
    assert (response.status, response.headers["Retry-After"]) == (503, "3")
    assert (await response.json())["queue"]["ticket"] == "t"


async def test_a_pipeline_that_cannot_speak_says_so(client: Client, host: FakeHost) -> None:
    host.refuse = ValueError("the pipeline 'embedded' has no talker")
    response = await client.post(URL, json={"input": "Hello."})
    assert (response.status, (await response.json())["error"]["code"]) == (400, "cannot_speak")


async def test_a_draining_server_begins_no_speech(client: Client, host: FakeHost, drain: Drain) -> None:
    drain.draining = True
    assert (await client.post(URL, json={"input": "Hello."})).status == 503
    assert host.spoken == []


async def test_a_text_without_a_sound_is_the_clients_fault(client: Client, host: FakeHost) -> None:
    response = await client.post(URL, json={"input": "..."})
    assert (response.status, (await response.json())["error"]["code"]) == (400, "nothing_to_say")
    assert host.speech.closed.is_set()


async def test_a_speech_that_fails_before_its_first_sound_is_an_error(client: Client, host: FakeHost) -> None:
    host.speech = FakeSpeech(fault=SpeechFailed("the codec died"))
    response = await client.post(URL, json={"input": "Hello."})
    error = (await response.json())["error"]
    assert (response.status, error["code"], error["type"]) == (503, "speech_failed", "server_error")
    assert "the codec died" in error["message"]
    assert host.speech.closed.is_set()


async def test_a_speech_that_fails_later_is_never_taken_for_whole(client: Client, host: FakeHost) -> None:
    host.speech = FakeSpeech(tone(0.5, 16_000), fault=SpeechFailed("the codec died"))
    response = await client.post(URL, json={"input": "Hello.", "response_format": "wav"})
    assert response.status == 200
    with pytest.raises((aiohttp.ClientPayloadError, aiohttp.ClientConnectionError)):
        await response.read()
    assert host.speech.closed.is_set()


class EndlessSpeech(FakeSpeech):
    """Goes on until nobody takes it."""

    async def sound(self) -> AsyncIterator[Pcm]:
        noise = np.random.default_rng(0)
        while True:
            await asyncio.sleep(0)
            yield noise.integers(-9000, 9000, 16_000).astype(np.int16)


async def test_a_client_that_leaves_gives_the_session_back(client: Client, host: FakeHost) -> None:
    host.speech = EndlessSpeech()
    response = await client.post(URL, json={"input": "Hello.", "response_format": "wav"})
    await response.content.readexactly(1000)
    response.close()
    async with asyncio.timeout(10):
        await host.speech.closed.wait()


async def test_a_client_that_reads_nothing_gives_the_session_back(
        client: Client, host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech, "WRITE_TIMEOUT_S", 0.2)
    host.speech = EndlessSpeech()
    response = await client.post(URL, json={"input": "Hello.", "response_format": "wav"})
    async with asyncio.timeout(10):
        await host.speech.closed.wait()
    with pytest.raises((aiohttp.ClientPayloadError, aiohttp.ClientConnectionError)):
        await response.read()
