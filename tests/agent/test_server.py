"""The HTTP face, asked as clients ask it."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import FormData
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application, Request

from duologue.agent.http import calls
from duologue.agent.http.admission import RETRY_MOST_S
from duologue.agent.http.host import Drain, PartHealth
from duologue.agent.realtime.session import BadSessionError
from duologue.agent.server import build_app
from duologue.agent.transports.sdp import BadOffer
from duologue.agent.transports.webrtc import NoAddress
from duologue.engine import Refused
from tests.agent.fake_host import EchoHost, FakeHost
from tests.agent.transports.peer import Peer, encoded, voiced

Client = TestClient[Request, Application]

SDP = {"Content-Type": "application/sdp"}
URL = "/v1/realtime/calls"


@pytest.fixture
def host() -> FakeHost:
    return FakeHost()


@pytest.fixture
def drain() -> Drain:
    return Drain()


@pytest.fixture
def web_folder(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "main.js").write_text("export const x = 1;\n")
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "style.css").write_text("body { margin: 0 }\n")
    (tmp_path / "notes.txt").write_text("not for callers")
    return tmp_path


@pytest.fixture
async def client(host: FakeHost, drain: Drain, web_folder: Path) -> AsyncIterator[Client]:
    async with TestClient(TestServer(build_app(host, drain=drain, web_folder=web_folder))) as client:
        yield client


def multipart(body: bytes) -> dict[str, Any]:
    return {"data": body, "headers": {"Content-Type": "multipart/form-data; boundary=x"}}


def form(**parts: str) -> dict[str, Any]:
    """A multipart body as openai-python makes it: typed parts without filenames."""
    kinds = {"sdp": "application/sdp", "session": "application/json"}
    body = "".join(f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n'
                   f"Content-Type: {kinds.get(name, 'text/plain')}\r\n\r\n{text}\r\n"
                   for name, text in parts.items())
    return multipart(f"{body}--x--\r\n".encode())


async def test_an_offer_is_answered_with_the_place_of_the_call(client: Client, host: FakeHost) -> None:
    response = await client.post(URL, data="v=0\r\noffer", headers={**SDP, "Authorization": "Bearer ek_x"})
    assert response.status == 201
    assert response.content_type == "application/sdp"
    assert await response.text() == "v=0\r\n"
    assert response.headers["Location"].removeprefix(URL + "/") in host.live
    assert host.offers == [("v=0\r\noffer", None, None)]


async def test_a_multipart_offer_brings_its_session(client: Client, host: FakeHost) -> None:
    session = {"type": "realtime", "model": "embedded", "instructions": "Be brief."}
    response = await client.post(URL, **form(sdp="v=0\r\noffer", session=json.dumps(session)))
    assert response.status == 201
    assert host.offers == [("v=0\r\noffer", session, None)]


async def test_a_multipart_offer_may_lack_a_session_or_have_filenames(client: Client, host: FakeHost) -> None:
    assert (await client.post(URL, **form(sdp="v=0\r\n"))).status == 201
    data = FormData()
    data.add_field("sdp", io.BytesIO(b"v=0\r\nfile"), filename="offer.sdp", content_type="application/sdp")
    assert (await client.post(URL, data=data)).status == 201
    assert [offer[0] for offer in host.offers] == ["v=0\r\n", "v=0\r\nfile"]


@pytest.mark.parametrize("by", ["delete", "post"])
async def test_a_call_is_hung_up_once(client: Client, host: FakeHost, by: str) -> None:
    place = (await client.post(URL, data="v=0\r\n", headers=SDP)).headers["Location"]

    async def hang_up() -> int:
        if by == "delete":
            return (await client.delete(place)).status
        return (await client.post(place + "/hangup")).status

    assert await hang_up() == (204 if by == "delete" else 200)
    assert host.live == set()
    assert await hang_up() == 404


BAD = [
    ("no type", {"data": b"v=0", "headers": {"Content-Type": "text/plain"}}, 415, "unsupported_media_type"),
    ("json", {"json": {"sdp": "v=0"}}, 415, "unsupported_media_type"),
    ("not utf-8", {"data": b"v=0\xff\xfe", "headers": SDP}, 400, "malformed_body"),
    ("too large", {"data": b"v" * (calls.BODY_LIMIT + 1), "headers": SDP}, 413, "body_too_large"),
    ("multipart too large", form(sdp="v" * (calls.BODY_LIMIT + 1)), 413, "body_too_large"),
    ("no boundary", {"data": b"x", "headers": {"Content-Type": "multipart/form-data"}}, 400, "malformed_body"),
    ("garbage", multipart(b"garbage"), 400, "malformed_body"),
    ("cut", multipart(b'--x\r\nContent-Disposition: form-data; name="sdp"\r\n\r\nv=0'), 400, "malformed_body"),
    ("no sdp part", form(offer="v=0"), 400, "missing_part"),
    ("session no json", form(sdp="v=0", session="{"), 400, "malformed_session"),
    ("session too deep", form(sdp="v=0", session="[" * 50_000), 400, "malformed_session"),
    ("session a list", form(sdp="v=0", session="[]"), 400, "malformed_session"),
    ("session model", form(sdp="v=0", session='{"model": "gpt-9"}'), 404, "model_not_found"),
    ("session model no text", form(sdp="v=0", session='{"model": {"a": 1}}'), 404, "model_not_found"),
    ("query model", {"data": b"v=0", "headers": SDP, "params": {"model": "gpt-9"}}, 404, "model_not_found"),
]


@pytest.mark.parametrize(("request_", "status", "code"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
async def test_bad_requests_are_told_what_is_wrong(
        client: Client, host: FakeHost, request_: dict[str, Any], status: int, code: str) -> None:
    response = await client.post(URL, **request_)
    assert (response.status, (await response.json())["error"]["code"]) == (status, code)
    error = (await response.json())["error"]
    assert set(error) == {"type", "code", "message", "param"}
    assert error["type"] == "invalid_request_error"
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert host.offers == []


async def test_an_unknown_model_is_answered_with_the_served_ones(client: Client) -> None:
    response = await client.post(URL, data="v=0", headers=SDP, params={"model": "gpt-9"})
    assert "embedded" in (await response.json())["error"]["message"]
    assert (await client.post(URL, data="v=0", headers=SDP, params={"model": "embedded"})).status == 201


async def test_a_session_that_cannot_be_is_refused_with_its_field(client: Client, host: FakeHost) -> None:
    host.refuse = BadSessionError("session.tools", "session.tools must be a list")
    response = await client.post(URL, **form(sdp="v=0", session='{"tools": 3}'))
    error = (await response.json())["error"]
    assert (response.status, error["code"], error["param"]) == (400, "invalid_value", "session.tools")


async def test_a_bad_offer_says_why(client: Client, host: FakeHost) -> None:
    host.refuse = BadOffer("no_audio", "the offer has no audio section")
    response = await client.post(URL, data="v=0", headers=SDP)
    assert response.status == 400
    assert (await response.json())["error"] == {
        "type": "invalid_request_error", "code": "no_audio", "message": "the offer has no audio section",
        "param": "sdp"}


async def test_a_caller_who_must_wait_gets_a_place_and_keeps_it(client: Client, host: FakeHost) -> None:
    host.refuse = Refused("capacity", "busy", position=3, eta_s=2.2, ticket="t-1")
    response = await client.post(URL, data="v=0", headers=SDP)
    assert response.status == 503
    assert response.headers["Retry-After"] == "3"
    body = await response.json()
    assert body["error"]["code"] == "capacity"
    assert body["error"]["type"] == "server_error"
    assert body["queue"] == {"ticket": "t-1", "position": 3, "eta_s": 2.2}
    host.refuse = None
    await client.post(URL, data="v=0", headers={**SDP, "X-Duologue-Ticket": "t-1"})
    await client.post(URL, data="v=0", headers=SDP, params={"ticket": "t-2"})
    assert [offer[2] for offer in host.offers] == ["t-1", "t-2"]


async def test_nobody_is_told_to_come_back_after_the_ticket_has_died(client: Client, host: FakeHost) -> None:
    host.refuse = Refused("capacity", "busy", position=9, eta_s=500, ticket="t-1")
    response = await client.post(URL, data="v=0", headers=SDP)
    assert int(response.headers["Retry-After"]) == RETRY_MOST_S


async def test_a_refusal_without_a_place_has_no_queue(client: Client, host: FakeHost) -> None:
    host.refuse = Refused("queue_full", "the queue is full")
    response = await client.post(URL, data="v=0", headers=SDP)
    assert (await response.json()).keys() == {"error"}
    assert response.status == 503


async def test_a_machine_without_network_is_named(client: Client, host: FakeHost) -> None:
    host.refuse = NoAddress("no network interface")
    response = await client.post(URL, data="v=0", headers=SDP)
    assert (response.status, (await response.json())["error"]["code"]) == (503, "media_down")


async def test_a_draining_server_takes_no_call_but_lets_one_hang_up(
        client: Client, host: FakeHost, drain: Drain) -> None:
    place = (await client.post(URL, data="v=0\r\n", headers=SDP)).headers["Location"]
    drain.draining = True
    response = await client.post(URL, data="v=0", headers=SDP)
    assert (response.status, (await response.json())["error"]["code"]) == (503, "draining")
    assert (await client.delete(place)).status == 204


async def test_a_fault_of_ours_shows_an_id_and_no_trace(
        client: Client, host: FakeHost, caplog: pytest.LogCaptureFixture) -> None:
    host.refuse = RuntimeError("secret detail")
    response = await client.post(URL, data="v=0", headers=SDP)
    text = await response.text()
    assert response.status == 500
    assert "secret detail" not in text
    assert "Traceback" not in text
    record = next(record for record in caplog.records if record.message == "internal_error")
    assert record.__dict__["fields"]["id"] in text


@pytest.mark.parametrize(("method", "path", "status", "code"), [
    ("GET", "/nothing", 404, "not_found"),
    ("GET", "/v1/nothing", 404, "not_found"),
    ("GET", "/notes.txt", 404, "not_found"),
    ("GET", "/views/../../secrets.js", 404, "not_found"),
    ("GET", "/views/%2e%2e/%2e%2e/secrets.js", 404, "not_found"),
    ("PUT", URL, 405, "method_not_allowed"),
    ("POST", "/healthz", 405, "method_not_allowed"),
    ("DELETE", URL + "/rtc_0", 404, "call_not_found"),
])
async def test_unknown_places_and_methods_are_json(
        client: Client, method: str, path: str, status: int, code: str) -> None:
    response = await client.request(method, path)
    assert (response.status, (await response.json())["error"]["code"]) == (status, code)
    if status == 405:
        assert response.headers["Allow"]


async def test_a_page_of_another_origin_may_call(client: Client) -> None:
    asked = ["authorization", "content-type", "x-openai-agents-sdk", "x-duologue-ticket"]
    response = await client.options(URL, headers={
        "Origin": "https://example.org", "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": ",".join(asked)})
    assert response.status == 204
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    allowed = [name.strip() for name in response.headers["Access-Control-Allow-Headers"].split(",")]
    assert set(asked) <= set(allowed)
    assert {"POST", "DELETE"} <= set(response.headers["Access-Control-Allow-Methods"].split(", "))
    answer = await client.post(URL, data="v=0", headers={**SDP, "Origin": "https://example.org"})
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    exposed = answer.headers["Access-Control-Expose-Headers"].split(", ")
    assert {"Location", "Retry-After"} <= set(exposed)


async def test_health_names_the_part_that_fails(client: Client, host: FakeHost, drain: Drain) -> None:
    response = await client.get("/healthz")
    assert response.status == 200
    assert (await response.json())["status"] == "ok"
    host.parts["codec"] = PartHealth(False, "restarting")
    response = await client.get("/healthz")
    body = await response.json()
    assert response.status == 503
    assert body["failing"] == ["codec"]
    assert body["parts"]["codec"] == {"up": False, "detail": "restarting"}
    assert body["parts"]["thinker"]["up"]
    host.parts["codec"] = PartHealth(True)
    drain.draining = True
    response = await client.get("/healthz")
    assert (response.status, (await response.json())["status"]) == (503, "draining")


async def test_metrics_are_prometheus_text(client: Client) -> None:
    response = await client.get("/metrics")
    assert response.status == 200
    assert response.content_type == "text/plain"
    assert "duologue_calls_live" in await response.text()


async def test_models_lists_what_is_served(client: Client) -> None:
    body = await (await client.get("/v1/models")).json()
    assert body["object"] == "list"
    assert [model["id"] for model in body["data"]] == ["embedded"]


async def test_the_page_comes_with_types_policy_and_etag(client: Client) -> None:
    for path, kind in (("/", "text/html"), ("/index.html", "text/html"), ("/main.js", "text/javascript"),
                       ("/views/style.css", "text/css")):
        response = await client.get(path)
        assert response.status == 200
        assert response.content_type == kind
        assert "default-src 'self'" in response.headers["Content-Security-Policy"]
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        again = await client.get(path, headers={"If-None-Match": response.headers["ETag"]})
        assert again.status == 304


@pytest.mark.component
async def test_a_call_over_http_echoes_and_is_hung_up(web_folder: Path) -> None:
    host = EchoHost()
    sound = voiced(1.0)
    peer = Peer(encoded(sound))
    async with TestClient(TestServer(build_app(host, web_folder=web_folder))) as client:
        response = await client.post(URL, data=await peer.offer(), headers=SDP)
        assert response.status == 201
        place = response.headers["Location"]
        _, call = host.calls[place.rsplit("/", 1)[1]]
        await peer.answered(await response.text())
        async with asyncio.timeout(10):
            await call.up.wait()
        peer.track.start.set()
        await peer.until(lambda: sum(len(packet.payload) for packet in peer.got) > 2000)
        assert (await client.delete(place)).status == 204
        assert call.reasons == ["closed"]
        assert (await client.delete(place)).status == 404
    await peer.close()


@pytest.mark.component
async def test_a_real_transport_refuses_a_bad_offer_over_http(web_folder: Path) -> None:
    async with TestClient(TestServer(build_app(EchoHost(), web_folder=web_folder))) as client:
        response = await client.post(URL, data="v=0\r\ns=-\r\n", headers=SDP)
        assert (response.status, (await response.json())["error"]["code"]) == (400, "no_audio")
