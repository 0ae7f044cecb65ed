"""User agents with real sockets on loopback."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pydantic import ValidationError

from duologue.agent.logs import JsonLines
from duologue.agent.transports.sip.calls import (
    BadTarget,
    CallEnded,
    Ended,
    NotAcceptable,
    OfferRefused,
    SipCall,
)
from duologue.agent.transports.sip.config import (
    SipConfig,
    SipLimits,
    SipListen,
    SipRegistration,
    SipTls,
    SipUser,
    TransportName,
)
from duologue.agent.transports.sip.signalling.live_call import LiveCall
from duologue.agent.transports.sip.user_agent import UserAgent

pytestmark = pytest.mark.component

Handler = Callable[[SipCall], Awaitable[None]]


class Owner:
    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.ends: list[Ended] = []
        self.answered = asyncio.Event()
        self.over = asyncio.Event()
        self.offered = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def on_offer(self, sdp: str) -> str:
        self.heard.append(("offer", sdp))
        self.offered.set()
        await self.may_answer.wait()
        if sdp == "strange":
            raise NotAcceptable("nothing in it is known")
        if sdp == "fatal":
            raise RuntimeError("the owner is broken")
        return f"answer to {sdp}"

    def on_answered(self, sdp: str) -> None:
        self.heard.append(("answered", sdp))
        self.answered.set()

    def on_digits(self, digits: str) -> None:
        self.heard.append(("digits", digits))

    def on_ended(self, ended: Ended) -> None:
        self.ends.append(ended)
        self.over.set()


class Desk:
    """A user agent that answers, and keeps what it was given."""

    def __init__(self, config: SipConfig, handler: Handler | None = None) -> None:
        self.agent = UserAgent(config, handler or self._answer)
        self.calls: list[tuple[SipCall, Owner]] = []

    async def _answer(self, call: SipCall) -> None:
        owner = Owner()
        call.attach(owner)
        self.calls.append((call, owner))
        call.ring()
        call.answer(f"answer to {call.offer}")

    @property
    def uri(self) -> str:
        local = self.agent.endpoint.locals[0]
        return f"sip:desk@{local.host}:{local.port};transport={local.transport}"


def config(transport: TransportName = "udp", **more: object) -> SipConfig:
    return SipConfig(listen=(SipListen(transport=transport, port=0),), **more)  # type: ignore[arg-type]


@asynccontextmanager
async def desks(*configs: SipConfig, handler: Handler | None = None) -> AsyncIterator[list[Desk]]:
    made = [Desk(each, handler) for each in configs]
    for desk in made:
        await desk.agent.start()
    try:
        yield made
    finally:
        for desk in made:
            await desk.agent.close()


async def wait(event: asyncio.Event) -> None:
    async with asyncio.timeout(20):
        await event.wait()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> SipTls:
    """A certificate for 127.0.0.1 that is its own authority."""
    directory = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "desk")])
    now = datetime.now(UTC)
    made = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
            .sign(key, hashes.SHA256()))
    (directory / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (directory / "key.pem").write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    return SipTls(certificate=directory / "cert.pem", key=directory / "key.pem", authorities=directory / "cert.pem")


@pytest.mark.parametrize("transport", ["udp", "tcp", "tls"])
async def test_a_call_goes_by_every_transport(transport: TransportName, certificate: SipTls) -> None:
    async with desks(*[config(transport, tls=certificate)] * 2) as (alice, bob):
        owner = Owner()
        assert alice.agent.route_to(bob.uri).secure is (transport == "tls")
        call = alice.agent.dial(bob.uri, "offer", owner)
        await wait(owner.answered)
        [(other, others)] = bob.calls
        assert other.route.transport == transport
        assert other.offer == "offer"
        assert other.headers["max-forwards"] == "70"
        assert await call.offer_again("hold") == "answer to hold"
        assert await other.offer_again("resume") == "answer to resume"
        other.hang_up()
        await wait(owner.over)
        assert [ended.reason for ended in owner.ends] == ["hung up"]
        assert [ended.reason for ended in others.ends] == ["closed"]
        assert alice.agent.live == bob.agent.live == 0


async def test_a_server_without_a_valid_certificate_is_not_spoken_to(certificate: SipTls, tmp_path: Path) -> None:
    stranger = SipTls(certificate=certificate.certificate, key=certificate.key)  # the system's authorities
    async with desks(config("tls", tls=stranger), config("tls", tls=certificate)) as (alice, bob):
        owner = Owner()
        alice.agent.dial(bob.uri, "offer", owner)
        await wait(owner.over)
        assert [(ended.reason, ended.status) for ended in owner.ends] == [("refused", 503)]
        assert not bob.calls


async def test_a_port_where_nobody_listens_is_told_at_once() -> None:
    async with desks(config("tcp")) as (alice,):
        owner = Owner()
        alice.agent.dial("sip:x@127.0.0.1:1;transport=tcp", "offer", owner)
        await wait(owner.over)
        assert [ended.status for ended in owner.ends] == [503]


async def test_a_name_that_does_not_resolve_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*_arguments: object, **_more: object) -> None:
        raise OSError("no such name")

    async with desks(config()) as (alice,):
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
        owner = Owner()
        alice.agent.dial("sip:x@nowhere.invalid", "offer", owner)
        await wait(owner.over)
        assert [ended.status for ended in owner.ends] == [503]


async def test_an_offer_that_the_owner_refuses_is_488_and_one_that_breaks_it_ends_the_call() -> None:
    async with desks(config(), config()) as (alice, bob):
        owner = Owner()
        call = alice.agent.dial(bob.uri, "offer", owner)
        await wait(owner.answered)
        with pytest.raises(OfferRefused, match="488"):
            await call.offer_again("strange")
        with pytest.raises(CallEnded):
            await call.offer_again("fatal")
        assert [ended.reason for _, others in bob.calls for ended in others.ends] == ["media fault"]


async def test_offers_are_asked_one_after_the_other_and_not_after_the_end() -> None:
    async with desks(config(), config()) as (alice, bob):
        owner = Owner()
        call = alice.agent.dial(bob.uri, "offer", owner)
        await wait(owner.answered)
        [(_, others)] = bob.calls
        others.may_answer.clear()
        waiting = asyncio.ensure_future(call.offer_again("late"))
        await wait(others.offered)
        call.hang_up()
        with pytest.raises(CallEnded):
            await waiting
        await wait(others.over)
        others.may_answer.set()
        with pytest.raises(CallEnded):
            await call.transfer(bob.uri)


async def test_an_offer_withdrawn_before_its_turn_is_not_asked() -> None:
    async with desks(config(), config()) as (alice, bob):
        owner = Owner()
        alice.agent.dial(bob.uri, "offer", owner)
        await wait(owner.answered)
        [(call, others)] = bob.calls
        assert isinstance(call, LiveCall)
        others.may_answer.clear()
        for sdp in ("first", "second"):
            call.on_offer(sdp)
            await wait(others.offered)
            call.on_offer_withdrawn()
        call.on_offer("third")
        others.offered.clear()
        others.may_answer.set()
        await wait(others.offered)
        assert others.heard == [("offer", "first"), ("offer", "third")]


@pytest.mark.parametrize(("fault", "status"), [(None, 480), (NotAcceptable("no codec"), 488), (KeyError("x"), 500)])
async def test_a_handler_that_does_not_answer_refuses(fault: Exception | None, status: int) -> None:
    async def handler(call: SipCall) -> None:
        if fault is not None:
            raise fault

    async with desks(config(), config(), handler=handler) as (alice, bob):
        owner = Owner()
        alice.agent.dial(bob.uri, "offer", owner)
        await wait(owner.over)
        assert [(ended.reason, ended.status) for ended in owner.ends] == [("refused", status)]


async def test_a_busy_line_says_when_to_come_back() -> None:
    async def handler(call: SipCall) -> None:
        owner = Owner()
        call.refuse(486, retry_after_s=7)
        call.refuse(603)
        call.answer("too late")
        call.attach(owner)
        assert [ended.reason for ended in owner.ends] == ["refused"]
        with pytest.raises(RuntimeError):
            call.attach(owner)
        with pytest.raises(ValueError):
            call.refuse(200)

    async with desks(config(), config(), handler=handler) as (alice, bob):
        owner = Owner()
        alice.agent.dial(bob.uri, "offer", owner)
        await wait(owner.over)
        assert [ended.status for ended in owner.ends] == [486]


@pytest.mark.parametrize("target", ["", "nobody", "12345", "http://h.example", "sip:", "sip:x@h.example;transport=ws",
                                    "sip:x@h.example;transport=tcp", "tel:+491"])
async def test_what_cannot_be_dialled_is_said_so(target: str) -> None:
    async with desks(config()) as (alice,):
        with pytest.raises(BadTarget):
            alice.agent.dial(target, "offer", Owner())
        with pytest.raises(BadTarget):
            alice.agent.route_to(target)


@pytest.mark.parametrize("digest", [("MD5",), ("SHA-256", "MD5"), ("SHA-256",)])
async def test_numbers_go_out_by_the_provider_with_its_credentials(digest: tuple[str, ...]) -> None:
    house = config(realm="house", digest=digest,
                   users=(SipUser(name="trunk", password="secret"),))  # type: ignore[arg-type]
    async with desks(house) as (provider,):
        port = provider.agent.endpoint.locals[0].port
        account = config(registrations=(SipRegistration(
            registrar=f"sip:127.0.0.1:{port}", user="trunk", password="secret"),))  # type: ignore[arg-type]
        async with desks(account) as (alice,):
            owner = Owner()
            alice.agent.dial("+49 30 1".replace(" ", "-"), "offer", owner)
            await wait(owner.answered)
            [(call, _)] = provider.calls
            assert call.user == "trunk"
            assert call.called == f"sip:+49301@127.0.0.1:{port}"
            assert call.caller == f"sip:trunk@127.0.0.1:{port}"
            for _ in range(1000):
                if alice.agent.registered == (True,):
                    break
                await asyncio.sleep(0.01)
            back = Owner()
            provider.agent.dial("trunk", "offer back", back)
            await wait(back.answered)
            assert [call.offer for call, _ in alice.calls] == ["offer back"]


async def test_a_draining_agent_takes_no_call_and_closing_ends_those_that_live() -> None:
    async with desks(config(), config()) as (alice, bob):
        owner = Owner()
        alice.agent.dial(bob.uri, "offer", owner)
        await wait(owner.answered)
        bob.agent.drain()
        refused = Owner()
        alice.agent.dial(bob.uri, "offer", refused)
        await wait(refused.over)
        assert [ended.status for ended in refused.ends] == [503]
        assert bob.agent.live == 1
        await bob.agent.close()
        await bob.agent.close()
        await wait(owner.over)
        assert [ended.reason for ended in owner.ends] == ["hung up"]


async def test_an_address_in_use_is_named() -> None:
    async with desks(config("tcp")) as (alice,):
        port = alice.agent.endpoint.locals[0].port
        other = UserAgent(SipConfig(listen=(SipListen(port=0), SipListen(transport="tcp", port=port))),
                          lambda call: asyncio.sleep(0))
        with pytest.raises(OSError, match=f"SIP cannot listen at tcp 127.0.0.1:{port}"):
            await other.start()


@pytest.mark.parametrize("noise", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"x" * 40_000])
async def test_a_stream_that_is_no_sip_is_closed_and_pings_are_answered(noise: bytes) -> None:
    async with desks(config("tcp")) as (alice,):
        port = alice.agent.endpoint.locals[0].port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\r\n\r\n")
        async with asyncio.timeout(20):
            assert await reader.readexactly(2) == b"\r\n"
            writer.write(noise)
            with suppress(ConnectionError):
                assert await reader.read() == b""
        writer.close()


async def test_connections_are_bounded_and_idle_ones_closed() -> None:
    limits = SipLimits(connections=2, idle_connection_s=0.2)
    async with desks(config("tcp", limits=limits)) as (alice,):
        port = alice.agent.endpoint.locals[0].port
        streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
        async with asyncio.timeout(20):
            for reader, writer in streams:
                with suppress(ConnectionError):
                    assert await reader.read() == b""
                writer.close()
        assert not alice.agent._sockets.connections


async def test_the_register_of_calls_names_nobody_unless_asked(caplog: pytest.LogCaptureFixture) -> None:
    for numbers in (False, True):
        caplog.clear()
        with caplog.at_level(logging.INFO):
            async with desks(config(log_numbers=numbers), config(log_numbers=numbers)) as (alice, bob):
                owner = Owner()
                uri = bob.uri.replace("desk@", "+4930123456@")
                call = alice.agent.dial(uri, "offer", owner)
                await wait(owner.answered)
                call.hang_up()
                await wait(bob.calls[0][1].over)
        lines = [JsonLines(log_words=False).format(record) for record in caplog.records]
        events = [json.loads(line) for line in lines]
        kinds = [event["event"] for event in events if event.get("call") == call.id]
        assert kinds == ["sip_call_started", "sip_call_answered", "sip_call_ended"]
        assert ("4930123456" in "".join(lines)) is numbers
        [ended] = [event for event in events if event.get("call") == call.id and event["event"] == "sip_call_ended"]
        assert ended["reason"] == "closed"
        assert ended["duration_s"] >= 0


@pytest.mark.parametrize("wrong", [
    {"listen": ()}, {"listen": ({"transport": "tls"},)}, {"listen": ({"host": "0.0.0.0"},)},
    {"users": ({"name": "a", "password": "x"}, {"name": "a", "password": "y"})},
    {"session_timers": {"expires_s": 100, "min_s": 200}}, {"listen": ({"host": "no address"},)}])
def test_a_config_that_cannot_work_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SipConfig.model_validate(wrong)
