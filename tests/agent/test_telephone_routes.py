"""Keys and transfers over HTTP: for telephones only, with an answer that says what went wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application, Request

from duologue.agent.server import build_app
from duologue.agent.transports.base import TransferFailed
from tests.agent.fake_host import FakeHost

Client = TestClient[Request, Application]
URL = "/v1/realtime/calls"


class Phone:
    """Keeps what it is told; ``refusal`` is raised instead."""

    def __init__(self) -> None:
        self.pressed: list[str] = []
        self.targets: list[str] = []
        self.refusal: Exception | None = None

    def press(self, keys: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.pressed.append(keys)

    async def transfer(self, target: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.targets.append(target)


@pytest.fixture
def phone() -> Phone:
    return Phone()


@pytest.fixture
async def client(phone: Phone) -> AsyncIterator[Client]:
    host = FakeHost()
    host.live |= {"sip_1", "rtc_1"}
    host.telephones["sip_1"] = phone
    async with TestClient(TestServer(build_app(host))) as client:
        yield client


async def post(client: Client, path: str, body: object) -> tuple[int, str | None]:
    """Status and error code of an answer."""
    async with client.post(f"{URL}/{path}", json=body) as response:
        if response.status == 200:
            return 200, None
        answer: dict[str, Any] = await response.json()
        return response.status, answer["error"]["code"]


async def test_keys_are_pressed_and_a_caller_is_transferred(client: Client, phone: Phone) -> None:
    assert await post(client, "sip_1/dtmf", {"keys": "12#"}) == (200, None)
    assert await post(client, "sip_1/refer", {"target_uri": "tel:+15551234"}) == (200, None)
    assert (phone.pressed, phone.targets) == (["12#"], ["tel:+15551234"])


@pytest.mark.parametrize(("fault", "path", "answer"), [
    (ValueError("not on a telephone: x"), "dtmf", (400, "bad_keys")),
    (ValueError("write a SIP URI"), "refer", (400, "bad_target")),
    (TransferFailed("486 Busy Here"), "refer", (502, "transfer_failed"))])
async def test_what_the_telephone_refuses_is_said(
        client: Client, phone: Phone, fault: Exception, path: str, answer: tuple[int, str]) -> None:
    phone.refusal = fault
    assert await post(client, f"sip_1/{path}", {"keys": "x", "target_uri": "sip:x"}) == answer


@pytest.mark.parametrize(("path", "answer"), [("rtc_1", (409, "not_a_telephone")), ("sip_9", (404, "call_not_found"))])
async def test_only_a_telephones_call_can_be_dialled_on(client: Client, path: str, answer: tuple[int, str]) -> None:
    assert await post(client, f"{path}/dtmf", {"keys": "1"}) == answer
    assert await post(client, f"{path}/refer", {"target_uri": "tel:1"}) == answer


@pytest.mark.parametrize("body", [{}, {"keys": ""}, {"keys": 5}, [], "12", {"target_uri": None}])
async def test_a_body_without_the_word_is_refused(client: Client, phone: Phone, body: object) -> None:
    assert await post(client, "sip_1/dtmf", body) == (400, "missing_field")
    assert await post(client, "sip_1/refer", body) == (400, "missing_field")
    assert (phone.pressed, phone.targets) == ([], [])


async def test_a_body_that_is_no_json_is_refused(client: Client) -> None:
    async with client.post(f"{URL}/sip_1/dtmf", data=b"\xff{") as response:
        assert (response.status, (await response.json())["error"]["code"]) == (400, "malformed_body")
