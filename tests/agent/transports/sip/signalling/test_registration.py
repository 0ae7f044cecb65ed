"""Our registrar and our registration, each against the other, and against a provider that makes difficulties."""

from __future__ import annotations

import logging

import pytest
from sipmessage import Request, Response

from duologue.agent.transports.sip.calls import Credentials
from duologue.agent.transports.sip.config import SipConfig, SipLimits, SipRegistration, SipUser
from duologue.agent.transports.sip.signalling.digest import DigestClient
from duologue.agent.transports.sip.signalling.registration import Registration
from duologue.agent.transports.sip.signalling.wire import Hop
from tests.agent.transports.sip.signalling.virtual import Agent, Network, Phone, VirtualClock


def house(**limits: int) -> SipConfig:
    return SipConfig(realm="house", limits=SipLimits(**limits), users=(
        SipUser(name="alice", password="secret"), SipUser(name="bob", password="other")))  # type: ignore[arg-type]


class House:
    """A registrar and an account at it."""

    def __init__(self, password: str = "secret", expires_s: int = 600) -> None:
        self.clock = VirtualClock()
        self.network = Network(self.clock)
        self.registrar = Agent(self.network, 2, house())
        self.agent = Agent(self.network, 1)
        self.registration = Registration(self.agent.endpoint, SipRegistration(
            registrar="sip:127.0.0.1:2", user="alice", password=password,  # type: ignore[arg-type]
            expires_s=expires_s))

    @property
    def contacts(self) -> list[str]:
        return [str(binding.contact) for binding in self.registrar.endpoint.registrar.lookup("alice")]


def test_an_account_is_registered_kept_and_given_back() -> None:
    made = House()
    made.registration.start()
    made.clock.run(0.1)
    assert made.registration.active
    assert made.contacts == ["sip:alice@127.0.0.1:1"]
    made.clock.run(6000)
    assert made.contacts == ["sip:alice@127.0.0.1:1"]
    assert made.network.sent(1).count("REGISTER") > 10
    made.registration.stop()
    made.clock.run(0.1)
    assert made.contacts == []
    made.clock.run(40)
    assert made.clock.pending == 0


def test_a_refused_account_is_tried_less_and_less_often(caplog: pytest.LogCaptureFixture) -> None:
    made = House(password="wrong")
    with caplog.at_level(logging.WARNING):
        made.registration.start()
        made.clock.run(7200)
    assert not made.registration.active
    tries = made.network.sent(1).count("REGISTER") / 2  # each is challenged once
    assert 7 <= tries <= 16
    assert "sip_registration_failed" in caplog.text
    assert "wrong" not in caplog.text


def test_a_lost_provider_is_found_again() -> None:
    made = House()
    made.registration.start()
    made.clock.run(1)
    made.network.fate = lambda _data: []
    made.clock.run(700)
    assert not made.registration.active
    made.network.fate = lambda _data: [0.01]
    made.clock.run(600)
    assert made.registration.active


def test_a_provider_may_want_a_longer_interval() -> None:
    clock = VirtualClock()
    network = Network(clock)
    agent = Agent(network, 1)
    provider = Phone(network, 2, 1)
    asked: list[str] = []

    def answer(message: Request | Response) -> None:
        assert isinstance(message, Request)
        asked.append(message.headers["Expires"])
        if int(message.headers["Expires"]) < 1800:
            provider.respond(message, 423, extra="Min-Expires: 1800")
        else:
            provider.respond(message, 200, contact=False, extra="Contact: <sip:alice@127.0.0.1:1>;expires=900")

    provider.on_message = answer
    registration = Registration(agent.endpoint, SipRegistration(
        registrar="sip:127.0.0.1:2", user="alice", password="x"))  # type: ignore[arg-type]
    registration.start()
    clock.run(1)
    assert asked == ["600", "1800"]
    clock.run(700)
    assert asked == ["600", "1800"]
    clock.run(200)  # what was granted counts, not what was asked for
    assert asked == ["600", "1800", "1800"]


def test_a_registered_connection_is_kept_alive() -> None:
    made = House()
    made.registration.start()
    made.clock.run(1)
    pings: list[bytes] = []
    made.network.fate = lambda data: pings.append(data) or [0.01]  # type: ignore[func-returns-value]
    made.clock.run(100)
    assert 3 <= pings.count(b"\r\n\r\n") <= 5


class Desk:
    """A desk phone that registers at a house."""

    def __init__(self, **limits: int) -> None:
        self.clock = VirtualClock()
        self.network = Network(self.clock)
        self.agent = Agent(self.network, 2, house(**limits))
        self.phone = Phone(self.network, 7, 2)
        self.digest = DigestClient(Credentials("alice", "secret"))
        self.cseq = 0

    def register(self, contact: str = "<sip:alice@127.0.0.1:7>", *, expires: str = "300", to: str = "alice",
                 call_id: str = "r1", cseq: int = 0) -> Response:
        authorization = ""
        while True:
            self.cseq = cseq or self.cseq + 1
            self.phone.send("\n".join(line for line in (
                "REGISTER sip:house SIP/2.0", f"Via: SIP/2.0/UDP 127.0.0.1:7;branch=z9hG4bK{len(self.phone.got)};rport",
                "From: <sip:alice@house>;tag=1", f"To: <sip:{to}@house>", f"Call-ID: {call_id}",
                f"CSeq: {self.cseq} REGISTER", f"Contact: {contact}" if contact else "",
                f"Expires: {expires}" if expires else "", authorization) if line) + "\n\n")
            self.clock.run(0.05)
            response = self.phone.last()
            assert isinstance(response, Response)
            if response.code != 401 or authorization:
                self.digest.accepted()
                return response
            name, value = self.digest.answer(response, "REGISTER", "sip:house")
            authorization = f"{name}: {value}"

    @property
    def contacts(self) -> list[str]:
        return [str(binding.contact) for binding in self.agent.endpoint.registrar.lookup("alice")]


def test_a_phone_is_registered_asked_after_and_forgotten_when_it_expires() -> None:
    desk = Desk()
    assert desk.register().headers.getlist("Contact") == ["<sip:alice@127.0.0.1:7>;expires=300"]
    assert desk.register("").headers.getlist("Contact") == ["<sip:alice@127.0.0.1:7>;expires=300"]
    assert desk.agent.endpoint.registrar.lookup("alice")[0].source == Hop("udp", "127.0.0.1", 7)
    desk.clock.run(301)
    assert desk.contacts == []


def test_expires_of_the_contact_counts_before_that_of_the_message_and_is_cut() -> None:
    desk = Desk()
    response = desk.register("<sip:alice@127.0.0.1:7>;expires=120, <sip:alice@127.0.0.1:8>", expires="99999")
    assert sorted(response.headers.getlist("Contact")) == [
        "<sip:alice@127.0.0.1:7>;expires=120", "<sip:alice@127.0.0.1:8>;expires=3600"]


@pytest.mark.parametrize("last", ["<sip:alice@127.0.0.1:7>", "*"])
def test_a_phone_can_be_signed_off(last: str) -> None:
    desk = Desk()
    desk.register()
    assert desk.register(last, expires="0").code == 200
    assert desk.contacts == []


@pytest.mark.parametrize(("contact", "expires", "to", "status"), [
    ("<sip:alice@127.0.0.1:7>", "30", "alice", 423), ("*", "300", "alice", 400),
    ("<sip:alice@127.0.0.1:7>", "300", "bob", 403), ("<tel:+491>", "300", "alice", 400)])
def test_a_registration_that_cannot_be_served_changes_nothing(contact: str, expires: str, to: str, status: int) -> None:
    desk = Desk()
    desk.register("<sip:alice@127.0.0.1:9>")
    assert desk.register(contact, expires=expires, to=to).code == status
    assert desk.contacts == ["sip:alice@127.0.0.1:9"]


def test_a_late_copy_of_an_older_registration_is_refused() -> None:
    desk = Desk()
    assert desk.register(cseq=10).code == 200
    assert desk.register(cseq=9).code == 500


def test_bindings_are_bounded() -> None:
    desk = Desk(bindings_per_user=2)
    for port in (7, 8):
        assert desk.register(f"<sip:alice@127.0.0.1:{port}>").code == 200
    assert desk.register("<sip:alice@127.0.0.1:9>").code == 503
    assert len(desk.contacts) == 2
    assert Desk(bindings=1).register("<sip:a@h.example>, <sip:b@h.example>").code == 503


def test_nobody_registers_without_a_password() -> None:
    desk = Desk()
    desk.digest = DigestClient(Credentials("alice", "guess"))
    assert desk.register().code == 401
    assert desk.contacts == []
