"""Calls with sipp as the other end: what it sends and expects is written in ``scenarios``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from duologue.agent.transports.sip.calls import Credentials, Ended, NotAcceptable, SipCall
from duologue.agent.transports.sip.config import SipConfig, SipListen, SipUser
from duologue.agent.transports.sip.user_agent import UserAgent
from tests.agent.transports.sip.signalling.sipp import free_port, sipp

pytestmark = pytest.mark.component


def answer_to(offer: str) -> str:
    """A stub of the media side: PCMU only, the direction turned round."""
    if "RTP/AVP 0" not in offer:
        raise NotAcceptable("only PCMU is spoken here")
    direction = "recvonly" if "a=sendonly" in offer else "sendrecv"
    return ("v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
            f"m=audio 40000 RTP/AVP 0\r\na={direction}\r\n")


class Owner:
    def __init__(self) -> None:
        self.offers: list[str] = []
        self.answers: list[str] = []
        self.ends: list[Ended] = []
        self.answered = asyncio.Event()
        self.over = asyncio.Event()

    async def on_offer(self, sdp: str) -> str:
        self.offers.append(sdp)
        return answer_to(sdp)

    def on_answered(self, sdp: str) -> None:
        self.answers.append(sdp)
        self.answered.set()

    def on_digits(self, digits: str) -> None:
        raise AssertionError(digits)

    def on_ended(self, ended: Ended) -> None:
        self.ends.append(ended)
        self.over.set()


class Line:
    """A user agent that answers at once or slowly, rings for ever, or only tries."""

    def __init__(self, agent_config: SipConfig, manner: str) -> None:
        self.agent = UserAgent(agent_config, self._on_invite)
        self.manner = manner
        self.calls: list[tuple[SipCall, Owner]] = []

    @property
    def port(self) -> int:
        return self.agent.endpoint.locals[0].port

    async def _on_invite(self, call: SipCall) -> None:
        owner = Owner()
        call.attach(owner)
        self.calls.append((call, owner))
        assert call.offer is not None
        if self.manner == "slow":
            await asyncio.sleep(0.5)
        if self.manner != "try":
            call.ring()
        if self.manner in ("answer", "slow"):
            call.answer(answer_to(call.offer))
        else:
            await owner.over.wait()

    async def quiet(self) -> None:
        async with asyncio.timeout(10):
            for _, owner in self.calls:
                await owner.over.wait()
        assert self.agent.live == 0


@asynccontextmanager
async def line(manner: str = "answer", *, tcp: bool = False, users: bool = False) -> AsyncIterator[Line]:
    config = SipConfig(
        listen=(SipListen(transport="tcp" if tcp else "udp", port=0),),
        users=(SipUser(name="alice", password="secret"),) if users else ())  # type: ignore[arg-type]
    made = Line(config, manner)
    await made.agent.start()
    try:
        yield made
    finally:
        await made.agent.close()


@pytest.mark.parametrize(("scenario", "manner", "reason", "tcp"), [
    *((*case, tcp) for tcp in (False, True) for case in (
        ("cancel_trying", "try", "cancelled"), ("cancel_ringing", "ring", "cancelled"),
        ("cancel_answered", "answer", "hung up"), ("hold", "answer", "hung up"),
        ("unknown_codec", "answer", "refused"))),
    ("repeated", "slow", "hung up", False)])
async def test_a_caller_and_we_agree_on_every_step(scenario: str, manner: str, reason: str, tcp: bool,
                                                   tmp_path: Path) -> None:
    async with line(manner, tcp=tcp) as made:
        ran = await sipp(scenario, tmp_path, to=made.port, tcp=tcp)
        assert ran.status == 0, ran.errors
        await made.quiet()
        [(_, owner)] = made.calls
        assert [ended.reason for ended in owner.ends] == [reason]
        if scenario == "hold":
            assert ["a=sendonly" in offer for offer in owner.offers] == [True, False]


async def test_a_cancel_of_nothing_is_told_so(tmp_path: Path) -> None:
    async with line() as made:
        ran = await sipp("cancel_unknown", tmp_path, to=made.port)
        assert ran.status == 0, ran.errors
        assert not made.calls


@pytest.mark.parametrize(("scenario", "password", "calls"), [
    ("right_password", "secret", 1), ("wrong_password", "guess", 0)])
async def test_only_who_knows_the_password_gets_through(scenario: str, password: str, calls: int,
                                                        tmp_path: Path) -> None:
    async with line(users=True) as made:
        ran = await sipp(scenario, tmp_path, to=made.port, password=password)
        assert ran.status == 0, ran.errors
        await made.quiet()
        assert [call.user for call, _ in made.calls] == ["alice"] * calls


async def test_an_answer_is_sent_again_until_a_late_ack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with line() as made:
        sent = spy(made.agent, monkeypatch)
        ran = await sipp("lost_ack", tmp_path, to=made.port)
        assert ran.status == 0, ran.errors
        await made.quiet()
        [(_, owner)] = made.calls
        assert [ended.reason for ended in owner.ends] == ["hung up"]
        assert sum(b"CSeq: 1 INVITE" in data and data.startswith(b"SIP/2.0 200") for data in sent) == 3


def spy(agent: UserAgent, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    sent: list[bytes] = []
    send: Callable[..., None] = agent._sockets.send

    def noted(data: bytes, hop: object) -> None:
        sent.append(data)
        send(data, hop)

    monkeypatch.setattr(agent._sockets, "send", noted)
    return sent


async def test_a_desk_phone_registers_and_is_called_by_its_name(tmp_path: Path) -> None:
    async with line(users=True) as made:
        ran = await sipp("register", tmp_path, to=made.port, port=free_port())
        assert ran.status == 0, ran.errors
        [binding] = made.agent.endpoint.registrar.lookup("alice")
        phone = asyncio.ensure_future(sipp("callee", tmp_path, port=binding.source.port))
        owner = Owner()
        call = made.agent.dial("alice", answer_to("RTP/AVP 0"), owner)
        await talk(call, owner)
        assert (await phone).status == 0


async def talk(call: SipCall, owner: Owner) -> None:
    async with asyncio.timeout(20):
        await owner.answered.wait()
    call.hang_up()
    assert [ended.reason for ended in owner.ends] == ["closed"]


@pytest.mark.parametrize("tcp", [False, True])
async def test_we_call_a_phone_and_hang_up(tcp: bool, tmp_path: Path) -> None:
    async with line(tcp=tcp) as made:
        port = free_port()
        phone = asyncio.ensure_future(sipp("callee", tmp_path, port=port, tcp=tcp))
        await listening(port, tcp)
        owner = Owner()
        call = made.agent.dial(f"sip:line@127.0.0.1:{port}", answer_to("RTP/AVP 0"), owner)
        await talk(call, owner)
        ran = await phone
        assert ran.status == 0, ran.errors


async def test_a_phone_finds_our_digest_right(tmp_path: Path) -> None:
    async with line() as made:
        port = free_port()
        phone = asyncio.ensure_future(sipp("callee_challenge", tmp_path, port=port))
        owner = Owner()
        call = made.agent.dial(f"sip:line@127.0.0.1:{port}", answer_to("RTP/AVP 0"), owner,
                               credentials=Credentials("alice", "secret"))
        await talk(call, owner)
        ran = await phone
        assert ran.status == 0, ran.errors


async def test_a_phone_that_we_give_up_hears_a_cancel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with line() as made:
        port = free_port()
        phone = asyncio.ensure_future(sipp("callee_cancelled", tmp_path, port=port))
        owner = Owner()
        call = made.agent.dial(f"sip:line@127.0.0.1:{port}", answer_to("RTP/AVP 0"), owner)
        sent = spy(made.agent, monkeypatch)
        await asyncio.sleep(0.3)
        call.hang_up()
        ran = await phone
        assert ran.status == 0, ran.errors
        assert sum(data.startswith(b"CANCEL") for data in sent) >= 1


async def listening(port: int, tcp: bool) -> None:
    """Wait until sipp takes connections; datagrams are sent again anyway."""
    if not tcp:
        return
    async with asyncio.timeout(10):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return
