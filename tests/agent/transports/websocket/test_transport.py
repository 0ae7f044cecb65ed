"""A real WebSocket to a real server with a scripted engine: what goes wrong harms nobody and leaves nothing behind."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import aiohttp
import numpy as np
import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application, Request, WebSocketResponse

from duologue.agent.http.host import Drain
from duologue.agent.realtime.formats import AudioFormat
from duologue.agent.server import build_app
from duologue.agent.switchboard import Switchboard
from duologue.agent.transports.base import Speak
from duologue.agent.transports.websocket.outbox import MAX_CHARS
from duologue.agent.transports.websocket.transport import MAX_MESSAGE, WebSocketTransport
from duologue.engine import Pcm, Refused
from tests.agent.test_call import PIPELINE, ScriptedSession
from tests.agent.test_switchboard import FakeEngine, board_of

pytestmark = pytest.mark.component

Client = TestClient[Request, Application]
URL = "/v1/realtime"
UNIT = PIPELINE.unit_samples


class House:
    """A server and its engine."""

    def __init__(self) -> None:
        self.engine = FakeEngine()
        self.board: Switchboard = board_of(self.engine)
        self.drain = Drain()

    @property
    def session(self) -> ScriptedSession:
        return self.engine.sessions[-1]

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for what the server does on its own clock."""
        for _ in range(2000):
            if condition():
                return
            await asyncio.sleep(0.01)
        raise TimeoutError


@pytest.fixture
def house() -> House:
    return House()


@pytest.fixture
async def client(house: House) -> AsyncIterator[Client]:
    async with TestClient(TestServer(build_app(house.board, drain=house.drain))) as client:
        yield client
        await house.board.close()


class Caller:
    """One end of a socket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.events: list[dict[str, Any]] = []

    async def tell(self, kind: str, **fields: object) -> None:
        await self.socket.send_json({"type": kind, **fields})

    async def say(self, pcm: Pcm, **fields: object) -> None:
        await self.tell("input_audio_buffer.append", audio=base64.b64encode(pcm.tobytes()).decode(), **fields)

    async def hear(self, kind: str) -> dict[str, Any]:
        """Read on to the next event of this type."""
        while True:
            event: dict[str, Any] = json.loads(await self.socket.receive_str(timeout=20))
            self.events.append(event)
            if event["type"] == kind:
                return event


@asynccontextmanager
async def calling(client: Client, **options: Any) -> AsyncIterator[Caller]:
    async with client.ws_connect(URL, **options) as socket:
        caller = Caller(socket)
        await caller.hear("session.created")
        yield caller


async def test_a_browsers_client_gets_its_subprotocol_and_no_compression(client: Client) -> None:
    protocols = ("realtime", "openai-insecure-api-key.x", "openai-agents-sdk.0.20.0")
    async with calling(client, protocols=protocols, compress=15) as caller:
        assert caller.socket.protocol == "realtime"
        assert caller.socket.compress == 0


async def test_audio_at_24_khz_becomes_units_at_16_khz(client: Client, house: House) -> None:
    async with calling(client) as caller:
        for _ in range(4):
            await caller.say(np.full(2400, 1000, np.int16))
        await house.until(lambda: len(house.session.units) == 5)
        assert np.array_equal(np.unique(house.session.units[-1].pcm), [1000])


async def test_a_reply_comes_as_audio_between_its_events(client: Client, house: House) -> None:
    async with calling(client) as caller:
        house.session.say(1, 20)
        await caller.hear("response.done")
        deltas = [event for event in caller.events if event["type"] == "response.output_audio.delta"]
        pcm = np.frombuffer(b"".join(base64.b64decode(event["delta"]) for event in deltas), np.int16)
        assert pcm.size == 20 * 480
        assert np.array_equal(np.unique(pcm[480:]), [1000])
        ids = {event["event_id"] for event in caller.events}
        assert len(ids) == len(caller.events)


@pytest.mark.parametrize(("into", "rate"), [
    ({"type": "audio/pcmu"}, 8000), ({"type": "audio/pcm", "rate": 16000}, 16000)])
async def test_other_formats_hold_from_the_update_on(client: Client, house: House, into: dict[str, Any],
                                                     rate: int) -> None:
    async with calling(client) as caller:
        await caller.tell("session.update", session={"type": "realtime", "audio": {
            "input": {"format": into}, "output": {"format": into}}})
        session = (await caller.hear("session.updated"))["session"]
        assert session["audio"]["input"]["format"] == into
        silence = b"\xff" * (rate // 10) if "rate" not in into else bytes(rate // 5)
        await caller.tell("input_audio_buffer.append", audio=base64.b64encode(silence * 4).decode())
        await house.until(lambda: len(house.session.units) == 5)
        house.session.say(1, 10)
        await caller.hear("response.done")
        size = sum(len(base64.b64decode(event["delta"])) for event in caller.events
                   if event["type"] == "response.output_audio.delta")
        assert size == rate // 5 * (2 if "rate" in into else 1)


async def test_a_piece_may_say_its_own_rate(client: Client, house: House) -> None:
    async with calling(client) as caller:
        await caller.say(np.zeros(16_000, np.int16), sample_rate_hz=16_000, format="pcm16", duration_ms=1000)
        await house.until(lambda: len(house.session.units) == 12)
        await caller.say(np.zeros(100, np.int16), sample_rate_hz=11_025)
        assert (await caller.hear("error"))["error"]["code"] == "invalid_audio"


@pytest.mark.parametrize(("message", "code"), [
    ("{", "invalid_json"), ("[]", "bad_event"), ('{"type":"make.tea"}', "unknown_event"),
    ('{"type":"input_audio_buffer.append"}', "bad_event"),
    ('{"type":"input_audio_buffer.append","audio":7}', "bad_event"),
    ('{"type":"input_audio_buffer.append","audio":"?"}', "invalid_audio"),
    ('{"type":"input_audio_buffer.append","audio":"AAAAA==="}', "invalid_audio"),
    ('{"type":"session.update","session":{"audio":{"input":{"format":{"type":"audio/mp3"}}}}}', "invalid_value"),
    ('{"type":"session.update","session":{"x":"' + "y" * 70_000 + '"}}', "event_too_large"),
    ("[" * 100_000, "invalid_json")])
async def test_what_cannot_be_used_is_refused_and_the_call_goes_on(
        client: Client, house: House, message: str, code: str) -> None:
    async with calling(client) as caller:
        await caller.socket.send_str(message)
        error = await caller.hear("error")
        assert error["error"]["code"] == code
        assert error["event_id"]
        house.session.say(1, 1)
        await caller.hear("response.done")


async def test_binary_messages_are_refused(client: Client, house: House) -> None:
    async with calling(client) as caller:
        await caller.socket.send_bytes(bytes(10))
        await caller.hear("error")
        house.session.say(1, 1)
        await caller.hear("response.done")


async def test_a_message_that_is_too_long_ends_the_call(client: Client, house: House) -> None:
    async with calling(client) as caller:
        await caller.socket.send_str("x" * (MAX_MESSAGE + 1))
        message = await caller.socket.receive(timeout=20)
        assert message.type is aiohttp.WSMsgType.CLOSE
        assert message.data == 1009
        await house.until(lambda: house.engine.held == 0)


async def test_a_sender_that_is_too_fast_is_held_back_and_loses_nothing(client: Client, house: House) -> None:
    async with calling(client) as caller:
        pcm = np.repeat(np.arange(1, 51, dtype=np.int16), 1920)  # 4 s, every 80 ms another value
        await caller.say(pcm)
        await house.until(lambda: len(house.session.units) >= 12)
        assert len(house.session.units) < 40  # a second at once, the rest at twice its pace
        await house.until(lambda: len(house.session.units) == 50)
        assert [int(unit.pcm[UNIT // 2]) for unit in house.session.units] == list(range(1, 51))


async def test_a_client_that_is_lost_leaves_nothing_behind(client: Client, house: House) -> None:
    async with calling(client) as caller:
        house.session.say(1, 200)
        await caller.hear("response.output_audio.delta")
        response = caller.socket._response
        assert response.connection is not None
        assert response.connection.transport is not None
        response.connection.transport.abort()
        await house.until(lambda: house.engine.held == 0)


async def test_a_client_that_closes_leaves_nothing_behind(client: Client, house: House) -> None:
    async with calling(client) as caller:
        await caller.socket.close()
        await house.until(lambda: house.engine.held == 0)
        assert caller.socket.close_code == 1000


async def test_a_call_that_the_server_ends_is_closed_after_its_last_event(client: Client, house: House) -> None:
    async with calling(client) as caller:
        house.session.full = True
        await caller.say(np.zeros(4800, np.int16))
        assert (await caller.hear("error"))["error"]["code"] == "server_overloaded"
        message = await caller.socket.receive(timeout=20)
        assert message.type is aiohttp.WSMsgType.CLOSE
        await house.until(lambda: house.engine.held == 0)


async def test_session_close_is_answered_and_closes(client: Client, house: House) -> None:
    async with calling(client) as caller:
        await caller.tell("session.close")
        await caller.hear("session.closed")
        assert (await caller.socket.receive(timeout=20)).type is aiohttp.WSMsgType.CLOSE
        await house.until(lambda: house.engine.held == 0)


async def test_our_own_events_are_sent_to_those_that_ask_in_the_address(client: Client, house: House) -> None:
    async with calling(client, params={"duplex": "1", "autostart": "0"}) as caller:
        await caller.say(np.zeros(1920, np.int16))
        await house.until(lambda: len(house.session.units) == 1)
        house.session.decide()
        assert (await caller.hear("duologue.decision"))["choice"] == "listen"
    async with calling(client) as caller:
        await caller.say(np.zeros(1920, np.int16))
        await house.until(lambda: len(house.session.units) == 1)
        house.session.decide()
        house.session.say(1, 1)
        await caller.hear("response.done")
        assert not [event for event in caller.events if event["type"].startswith("duologue.")]


# --- turn mode ------------------------------------------------------------------------------------------------


@asynccontextmanager
async def turn_mode(client: Client) -> AsyncIterator[Caller]:
    async with calling(client) as caller:
        await caller.tell("session.update", session={"type": "realtime", "audio": {"input": {"turn_detection": None}}})
        await caller.hear("session.updated")
        yield caller


async def test_in_turn_mode_the_models_clock_goes_on_in_silence_until_the_reply_is_written(
        client: Client, house: House) -> None:
    async with turn_mode(client) as caller:
        assert not house.session.briefs[-1].auto_respond
        await caller.say(np.full(1920 + 480, 1000, np.int16))  # a unit and a quarter
        await caller.tell("input_audio_buffer.commit")
        await caller.hear("input_audio_buffer.committed")
        await house.until(lambda: len(house.session.units) == 3)  # the tail made whole, and one more
        assert not house.session.units[-1].pcm.any()
        await asyncio.sleep(0.4)
        assert len(house.session.units) == 3  # nothing is asked for
        await caller.tell("response.create")
        await house.until(lambda: len(house.session.units) >= 5)
        house.session.say(1, 2, last=False)
        await caller.hear("response.created")
        units = len(house.session.units)
        await house.until(lambda: len(house.session.units) >= units + 3)
        house.session.say(1, 2)
        await caller.hear("response.done")
        units = len(house.session.units)
        await asyncio.sleep(0.4)
        assert len(house.session.units) == units


async def test_a_commit_waits_until_what_was_sent_before_it_was_heard(client: Client, house: House) -> None:
    async with turn_mode(client) as caller:
        await caller.say(np.full(2 * 24_000, 1000, np.int16))
        await caller.tell("input_audio_buffer.commit")
        await caller.tell("response.create")
        await caller.hear("input_audio_buffer.committed")
        assert sum(bool(unit.pcm.any()) for unit in house.session.units) >= 25
        await house.until(lambda: house.session.asked == [""])


async def test_a_cleared_buffer_is_not_heard(client: Client, house: House) -> None:
    async with turn_mode(client) as caller:
        await caller.say(np.full(24_000 * 5 // 2, 1000, np.int16))
        await caller.tell("input_audio_buffer.clear")
        await caller.hear("input_audio_buffer.cleared")
        await asyncio.sleep(0.1)
        assert len(house.session.units) < 31  # 2.5 s would be 31 units


# --- who may connect ------------------------------------------------------------------------------------------


async def refused(client: Client, **params: str) -> aiohttp.WSServerHandshakeError:
    with pytest.raises(aiohttp.WSServerHandshakeError) as failure:
        await client.ws_connect(URL, params=params)
    return failure.value


async def test_a_full_server_refuses_the_upgrade_and_says_when_to_come_back(client: Client, house: House) -> None:
    house.engine.refusal = Refused("capacity", "full", position=2, eta_s=3.2, ticket="t")
    failure = await refused(client)
    assert failure.status == 503
    assert failure.headers is not None
    assert failure.headers["Retry-After"] == "4"
    # A plain request that looks like an upgrade shows the body, which handshakes hide.
    headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode()}
    response = await client.get(URL, headers=headers)
    body = await response.json()
    assert body["error"]["code"] == "capacity"
    assert body["queue"] == {"ticket": "t", "position": 2, "eta_s": 3.2}


async def test_a_draining_server_refuses_the_upgrade(client: Client, house: House) -> None:
    house.drain.draining = True
    assert (await refused(client)).status == 503
    assert house.engine.sessions == []


async def test_other_models_and_plain_requests_are_told_what_is_wrong(client: Client, house: House) -> None:
    assert (await refused(client, model="gpt-9")).status == 404
    response = await client.get(URL)
    assert (response.status, (await response.json())["error"]["code"]) == (426, "upgrade_required")
    assert house.engine.sessions == []
    async with calling(client, params={"model": PIPELINE.name}):
        pass


async def test_a_server_that_stops_closes_its_sockets(client: Client, house: House) -> None:
    async with calling(client) as caller:
        await house.board.close()
        assert (await caller.socket.receive(timeout=20)).type is aiohttp.WSMsgType.CLOSE
        assert house.engine.held == 0


# --- a client that takes nothing ------------------------------------------------------------------------------


class StuckSocket:
    """A socket whose other end reads nothing."""

    close_code = None

    def __init__(self) -> None:
        self.sent: list[str] = []
        self._gone = asyncio.Event()

    async def send_str(self, message: str) -> None:
        self.sent.append(message)
        await self._gone.wait()

    async def close(self, code: int = 1000, message: bytes = b"") -> None:
        raise AssertionError("there is no saying goodbye to it")

    def drop(self) -> None:
        self._gone.set()

    def __aiter__(self) -> StuckSocket:
        return self

    async def __anext__(self) -> None:
        await self._gone.wait()
        raise StopAsyncIteration


class Talker:
    """A call that says one thing for ever."""

    output_rate = 16_000
    formats = (AudioFormat(), AudioFormat())
    sounding = True
    silence_due = 0
    awaits_time = False

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def feed(self, pcm: Pcm, concealed: int = 0) -> None:
        raise AssertionError("nobody spoke")

    def pull(self) -> Pcm:
        raise AssertionError("the audio goes among the events")

    def speak(self, ahead: int, out: Speak) -> Pcm:
        pcm = np.ones(320, np.int16)
        out("resp_1", "item_1", pcm)
        return pcm

    def receive(self, message: str) -> None:
        raise AssertionError("nobody spoke")

    def dtmf(self, key: str) -> None:
        raise AssertionError("there are no keys")

    def connected(self, *, voice_in_events: bool = False) -> None:
        assert voice_in_events

    def gone(self, reason: str) -> None:
        self.reasons.append(reason)


async def test_a_client_that_takes_nothing_is_let_go_and_not_waited_for() -> None:
    call, socket = Talker(), StuckSocket()
    transport = WebSocketTransport("ws_test", cast(WebSocketResponse, socket), socket.drop, call)
    running = asyncio.ensure_future(transport.run())
    await asyncio.sleep(0.05)
    for _ in range(MAX_CHARS // 1000 + 1):
        transport.send("x" * 1000)
    assert call.reasons == ["slow reader"]
    await transport.close()
    await asyncio.wait_for(running, 20)
    assert len(socket.sent) == 1
    assert call.reasons == ["slow reader"]
