"""What an endpoint answers to single messages of a phone that may know the rules or not."""

from __future__ import annotations

from typing import Literal

import pytest
from sipmessage import Request, Response

from duologue.agent.transports.sip.calls import OfferRefused, TransferOutcome
from duologue.agent.transports.sip.config import SipConfig, SipLimits, SipUser
from duologue.agent.transports.sip.signalling.leg_in import IncomingLeg
from duologue.agent.transports.sip.signalling.leg_out import OutgoingLeg
from duologue.agent.transports.sip.signalling.wire import Hop
from tests.agent.transports.sip.signalling.virtual import Agent, Network, Phone, VirtualClock, name


class Line:
    """One endpoint and one phone."""

    def __init__(self, config: SipConfig | None = None) -> None:
        self.clock = VirtualClock()
        self.network = Network(self.clock)
        self.agent = Agent(self.network, 2, config)
        self.phone = Phone(self.network, 7, 2)

    def ask(self, *args: object, **kwargs: object) -> Response:
        """Send a request and return the last response."""
        self.phone.request(*args, **kwargs)  # type: ignore[arg-type]
        self.clock.run(0.05)
        response = self.phone.last()
        assert isinstance(response, Response)
        return response

    def call(self) -> tuple[IncomingLeg, str]:
        """Call, be answered, acknowledge; returns the leg and its tag."""
        response = self.ask("INVITE", body="offer")
        assert response.code == 200
        tag = response.to_address.parameters["tag"] or ""
        self.phone.request("ACK", branch="ack", to_tag=tag)
        self.clock.run(0.05)
        leg = self.agent.incoming[-1]
        assert leg.confirmed
        return leg, tag

    def dialled(self) -> tuple[OutgoingLeg, Request]:
        """Be called; returns the leg and the INVITE that came."""
        leg = self.agent.dial(7)
        self.clock.run(0.05)
        invite = self.phone.last()
        assert isinstance(invite, Request)
        assert invite.method == "INVITE"
        return leg, invite


@pytest.mark.parametrize(("method", "extra", "status", "header"), [
    ("OPTIONS", "", 200, ("Allow", "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, NOTIFY")),
    ("OPTIONS", "Require: teleport", 420, ("Unsupported", "teleport")),
    ("INVITE", "Require: 100rel, timer", 420, ("Unsupported", "100rel")),
    ("BYE", "", 481, None),
    ("INFO", "", 481, None),
    ("UPDATE", "", 481, None),
    ("CANCEL", "", 481, None),
    ("SUBSCRIBE", "", 405, ("Allow", "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, NOTIFY")),
    ("MESSAGE", "", 405, None),
    ("REFER", "", 405, None),
    ("REGISTER", "", 405, None),
    ("LEVITATE", "", 501, None),
    ("INVITE", "Session-Expires: 60\nSupported: timer", 422, ("Min-SE", "90")),
    ("INVITE", "Session-Expires: soon", 400, None),
    ("INVITE", "Max-Forwards: -1", 400, None),
])
def test_a_request_outside_a_call_has_its_answer(method: str, extra: str, status: int,
                                                 header: tuple[str, str] | None) -> None:
    line = Line()
    if extra.startswith("Max-Forwards"):
        line.phone.send("INVITE sip:x@127.0.0.1 SIP/2.0\nVia: SIP/2.0/UDP 127.0.0.1:7;branch=z9hG4bK1\n"
                        "From: <sip:a@b>;tag=1\nTo: <sip:x@127.0.0.1>\nCall-ID: c\nCSeq: 1 INVITE\n"
                        f"Contact: <sip:a@127.0.0.1:7>\n{extra}\n\n")
        line.clock.run(0.05)
        response = line.phone.last()
        assert isinstance(response, Response)
    else:
        response = line.ask(method, extra=extra)
    assert response.code == status
    assert response.to_address.parameters.get("tag")
    if header is not None:
        assert response.headers[header[0]] == header[1]
    assert not line.agent.incoming


@pytest.mark.parametrize("transport", ["mailto:a@b", "sip:a@b SIP/7.0"])
def test_a_first_line_that_is_not_ours_is_refused(transport: str) -> None:
    line = Line()
    version = "" if " SIP" in transport else " SIP/2.0"
    line.phone.send(f"INVITE {transport}{version}\nVia: SIP/2.0/UDP 127.0.0.1:7;branch=z9hG4bK1\n"
                    "From: <sip:a@b>;tag=1\nTo: <sip:x@127.0.0.1>\nCall-ID: c\nCSeq: 1 INVITE\n\n")
    line.clock.run(0.05)
    assert line.phone.names == ["416 INVITE" if "mailto" in transport else "505 INVITE"]


def test_noise_is_dropped_and_the_line_goes_on() -> None:
    line = Line()
    for noise in (b"", b"\r\n\r\n", b"\0" * 20, b"\xff" * 900, b"GET / HTTP/1.1\r\n\r\n"):
        line.agent.endpoint.receive(noise, Hop("udp", "127.0.0.1", 7))
    assert line.ask("OPTIONS").code == 200


@pytest.mark.parametrize(("body", "kind", "extra"), [
    ("hello", "text/plain", ""), ("offer", "application/sdp", "Content-Encoding: gzip")])
def test_a_body_that_is_no_sdp_is_refused(body: str, kind: str, extra: str) -> None:
    response = Line().ask("INVITE", body=body, kind=kind, extra=extra)
    assert response.code == 415
    assert response.headers["Accept"] == "application/sdp"


def test_trying_comes_at_once_and_ringing_when_it_rings() -> None:
    line = Line()
    line.agent.on_call = lambda leg: None
    line.phone.request("INVITE", body="offer")
    line.clock.run(0.03)
    assert line.phone.names == ["100 INVITE"]
    line.agent.incoming[0].ring()
    line.clock.run(0.03)
    assert line.phone.names == ["100 INVITE", "180 INVITE"]


@pytest.mark.parametrize("state", ["trying", "ringing", "refused", "answered", "up"])
def test_cancel_is_right_in_every_state(state: str) -> None:
    line = Line()
    line.agent.on_call = lambda leg: None
    line.phone.request("INVITE", body="offer")
    line.clock.run(0.03)
    leg = line.agent.incoming[0]
    if state in ("ringing", "answered", "up"):
        leg.ring()
    if state in ("answered", "up"):
        leg.answer("answer")
    if state == "up":
        line.phone.request("ACK", branch="ack", to_tag=leg.dialog.local_tag)
    if state == "refused":
        leg.refuse(486, "Busy Here")
    line.clock.run(0.03)
    line.phone.got.clear()
    line.phone.request("CANCEL", branch="c1INVITE1")
    line.clock.run(0.03)
    owner = line.agent.owners[leg]
    if state in ("trying", "ringing"):
        assert sorted(line.phone.names) == ["200 CANCEL", "487 INVITE"]
        assert {message.to_address.parameters["tag"] for message in line.phone.got} == {leg.dialog.local_tag}
        assert owner.ends == ["cancelled"]
    else:
        assert line.phone.names == ["200 CANCEL"]
        assert owner.ends == (["refused"] if state == "refused" else [])


def test_a_bye_of_a_caller_who_was_not_answered_is_a_cancel() -> None:
    line = Line()
    line.agent.on_call = lambda leg: leg.ring()
    line.phone.request("INVITE", body="offer")
    line.clock.run(0.03)
    leg = line.agent.incoming[0]
    line.phone.request("BYE", cseq=2, to_tag=leg.dialog.local_tag)
    line.clock.run(0.03)
    assert {"200 BYE", "487 INVITE"} <= set(line.phone.names)
    assert line.agent.owners[leg].ends == ["cancelled"]


def test_an_invite_that_comes_by_two_ways_is_one_call() -> None:
    line = Line()
    line.call()
    assert line.ask("INVITE", branch="other", body="offer").code == 482
    assert len(line.agent.incoming) == 1


def test_a_delayed_offer_is_answered_in_the_ack() -> None:
    line = Line()
    line.agent.on_call = lambda leg: leg.answer("our offer")
    response = line.ask("INVITE")
    assert response.body == b"our offer"
    leg = line.agent.incoming[0]
    assert leg.offer is None
    line.phone.request("ACK", branch="ack", to_tag=leg.dialog.local_tag, body="their answer")
    line.clock.run(0.05)
    assert line.agent.owners[leg].heard == [("answered", "their answer")]


def test_a_delayed_offer_that_is_not_answered_ends_the_call() -> None:
    line = Line()
    leg, _ = _answered_without_offer(line)
    assert line.agent.owners[leg].ends == ["media fault"]
    assert line.phone.names[-1] == "BYE"


def _answered_without_offer(line: Line) -> tuple[IncomingLeg, str]:
    line.agent.on_call = lambda leg: leg.answer("our offer")
    line.ask("INVITE")
    leg = line.agent.incoming[0]
    line.phone.request("ACK", branch="ack", to_tag=leg.dialog.local_tag)
    line.clock.run(0.05)
    return leg, leg.dialog.local_tag


def test_a_reinvite_without_an_offer_is_given_one() -> None:
    line = Line()
    leg, tag = line.call()
    response = line.ask("INVITE", cseq=2, to_tag=tag)
    assert response.body == b"later answer"
    line.phone.request("ACK", cseq=2, branch="ack2", to_tag=tag, body="their answer")
    line.clock.run(0.05)
    assert line.agent.owners[leg].heard == [("offer", ""), ("answered", "their answer")]


def test_a_second_offer_while_the_first_is_being_answered_is_told_to_come_back() -> None:
    line = Line()
    leg, tag = line.call()
    line.agent.owners[leg].answer = None
    line.phone.request("INVITE", cseq=2, to_tag=tag, body="hold")
    line.clock.run(0.05)
    response = line.ask("INVITE", cseq=3, to_tag=tag, body="resume")
    assert response.code == 500
    assert 1 <= int(response.headers["Retry-After"]) <= 10


def test_a_reinvite_may_be_cancelled_and_its_answer_is_not_sent() -> None:
    line = Line()
    leg, tag = line.call()
    line.agent.owners[leg].answer = None
    line.phone.request("INVITE", cseq=2, to_tag=tag, body="hold")
    line.clock.run(0.05)
    line.phone.request("CANCEL", cseq=2, to_tag=tag, branch="c1INVITE2")
    line.clock.run(0.05)
    assert "487 INVITE" in line.phone.names
    leg.accept_offer("too late")
    line.clock.run(0.05)
    assert line.agent.owners[leg].heard == [("offer", "hold"), ("withdrawn", "")]
    assert leg.ended is None


def test_a_reinvite_moves_the_target() -> None:
    line = Line()
    leg, tag = line.call()
    moved = Phone(line.network, 8, 2)
    moved.request("INVITE", cseq=2, to_tag=tag, body="moved")
    line.clock.run(0.05)
    moved.request("ACK", cseq=2, to_tag=tag, branch="ack2")
    line.clock.run(0.05)
    leg.hang_up()
    line.clock.run(0.05)
    assert moved.names[-1] == "BYE"


def test_a_bye_that_crosses_ours_changes_nothing() -> None:
    line = Line()
    response = line.ask("INVITE", body="offer")
    [leg] = line.agent.incoming
    leg.hang_up()  # waits for the ACK
    assert line.ask("BYE", cseq=2, to_tag=response.to_address.parameters["tag"] or "").code == 200
    assert line.agent.owners[leg].ends == ["closed"]
    line.clock.run(80)
    assert line.agent.idle
    assert "BYE" not in line.phone.names


def test_an_offer_that_is_only_acknowledged_for_now_ends_the_call_in_the_end() -> None:
    line = Line()
    leg, _ = line.call()
    outcomes: list[object] = []
    leg.reoffers.offer("hold", outcomes.append)
    line.clock.run(0.05)
    reinvite = line.phone.last()
    assert isinstance(reinvite, Request)
    line.phone.respond(reinvite, 100)
    line.clock.run(31)
    assert not outcomes
    line.clock.run(2)
    assert isinstance(outcomes[0], OfferRefused)
    assert outcomes[0].status == 408
    assert line.agent.owners[leg].ends == ["lost"]


def test_a_refresh_that_is_refused_until_the_interval_is_over_ends_the_call() -> None:
    line = Line()

    def answer(message: Request | Response) -> None:
        if isinstance(message, Request) and message.method == "UPDATE":
            line.phone.respond(message, 500)

    line.phone.on_message = answer
    line.phone.request("INVITE", body="offer", extra="Session-Expires: 90;refresher=uas\nAllow: UPDATE")
    line.clock.run(0.05)
    [leg] = line.agent.incoming
    line.phone.request("ACK", branch="ack", to_tag=leg.dialog.local_tag)
    line.clock.run(85)
    assert leg.ended is None
    assert line.phone.names.count("UPDATE") >= 3
    line.clock.run(10)
    assert line.agent.owners[leg].ends == ["lost"]


def test_requests_out_of_order_are_refused() -> None:
    line = Line()
    _, tag = line.call()
    assert line.ask("OPTIONS", cseq=5, to_tag=tag).code == 200
    assert line.ask("INFO", cseq=4, to_tag=tag).code == 500
    assert line.ask("BYE", cseq=6, to_tag=tag).code == 200
    assert line.ask("BYE", cseq=7, to_tag=tag).code == 481


@pytest.mark.parametrize(("kind", "body", "status", "heard"), [
    ("application/dtmf-relay", "Signal=5\r\nDuration=160\r\n", 200, "5"),
    ("application/dtmf-relay", "signal = 11\r\n", 200, "#"),
    ("application/dtmf-relay", "Signal=d", 200, "D"),
    ("application/dtmf", "*", 200, "*"),
    ("application/dtmf-relay", "Duration=160", 400, None),
    ("application/dtmf-relay", "Signal=hello", 400, None),
    ("application/media_control+xml", "<x/>", 415, None),
])
def test_keys_may_be_told_by_info(kind: str, body: str, status: int, heard: str | None) -> None:
    line = Line()
    leg, tag = line.call()
    assert line.ask("INFO", cseq=2, to_tag=tag, kind=kind, body=body).code == status
    assert line.agent.owners[leg].heard == ([] if heard is None else [("digits", heard)])


@pytest.mark.parametrize(("fragments", "status"), [
    (["SIP/2.0 100 Trying", "SIP/2.0 200 OK"], 200), (["SIP/2.0 486 Busy Here"], 486), (["SIP/2.0 180 Ringing"], 408)])
def test_a_transfer_is_followed_to_its_outcome(fragments: list[str], status: int) -> None:
    line = Line()
    leg, tag = line.call()
    outcomes: list[TransferOutcome] = []
    leg.transfer("sip:carol@h.example", outcomes.append)
    line.clock.run(0.05)
    refer = line.phone.last()
    assert isinstance(refer, Request)
    assert refer.headers["Refer-To"] == "<sip:carol@h.example>"
    line.phone.respond(refer, 202)
    line.clock.run(0.05)
    for number, fragment in enumerate(fragments):
        last = number == len(fragments) - 1
        response = line.ask("NOTIFY", cseq=2 + number, to_tag=tag, kind="message/sipfrag", body=fragment,
                            extra=f"Event: refer\nSubscription-State: {'terminated' if last else 'active'}")
        assert response.code == 200
    assert [outcome.status for outcome in outcomes] == [status]
    assert leg.ended is None


def test_a_bye_after_a_transfer_was_taken_says_that_it_worked() -> None:
    line = Line()
    leg, tag = line.call()
    outcomes: list[TransferOutcome] = []
    leg.transfer("sip:carol@h.example", outcomes.append)
    line.clock.run(0.05)
    refer = line.phone.last()
    assert isinstance(refer, Request)
    line.phone.respond(refer, 202)
    line.clock.run(0.05)
    line.ask("BYE", cseq=2, to_tag=tag)
    assert [outcome.status for outcome in outcomes] == [200]


@pytest.mark.parametrize(("extra", "status"), [("Event: refer", 481), ("Event: presence", 489), ("", 489)])
def test_a_notify_that_nobody_asked_for_is_refused(extra: str, status: int) -> None:
    line = Line()
    _, tag = line.call()
    assert line.ask("NOTIFY", cseq=2, to_tag=tag, extra=extra).code == status


def test_a_fork_that_answers_too_is_acknowledged_and_hung_up() -> None:
    line = Line()
    leg, invite = line.dialled()
    line.phone.respond(invite, 180, tag="t1")
    line.phone.respond(invite, 200, tag="t1", body="answer")
    line.clock.run(0.05)
    line.phone.got.clear()
    line.phone.respond(invite, 200, tag="t2", body="another")
    line.clock.run(0.05)
    assert [(name(message), str(message.uri.user)) for message in line.phone.got if isinstance(message, Request)] == [
        ("ACK", "t2"), ("BYE", "t2")]
    assert leg.ended is None
    assert line.agent.owners[leg].heard == [("answered", "answer")]


def test_an_answer_in_a_ringing_response_holds_for_the_final_one() -> None:
    line = Line()
    leg, invite = line.dialled()
    line.phone.respond(invite, 183, body="early answer")
    line.phone.respond(invite, 200)
    line.clock.run(0.05)
    assert line.agent.owners[leg].heard == [("answered", "early answer")]


@pytest.mark.parametrize(("contact", "body"), [(False, "answer"), (True, "")])
def test_an_answer_that_cannot_be_used_ends_the_call(contact: bool, body: str) -> None:
    line = Line()
    leg, invite = line.dialled()
    line.phone.respond(invite, 200, contact=contact, body=body)
    line.clock.run(0.05)
    assert len(line.agent.owners[leg].ends) == 1
    line.clock.run(80)
    assert line.agent.idle or line.phone.names.count("BYE") > 1


@pytest.mark.parametrize(("code", "reason"), [(486, "refused"), (503, "refused"), (302, "refused"), (603, "refused")])
def test_a_refusal_is_acknowledged_and_told(code: int, reason: str) -> None:
    line = Line()
    leg, invite = line.dialled()
    line.phone.respond(invite, code)
    line.clock.run(0.05)
    assert line.phone.names[-1] == "ACK"
    assert line.agent.owners[leg].ends == [reason]
    assert leg.ended is not None
    assert leg.ended.status == code
    line.clock.run(80)
    assert line.agent.idle


def test_requests_in_a_call_follow_the_route_that_proxies_recorded() -> None:
    line = Line()
    proxy = Phone(line.network, 9, 2)
    line.phone.request("INVITE", body="offer", extra="Record-Route: <sip:127.0.0.1:9;lr>, <sip:far.example;lr>")
    line.clock.run(0.05)
    answer = line.phone.last()
    assert answer.headers.getlist("Record-Route") == ["<sip:127.0.0.1:9;lr>, <sip:far.example;lr>"]
    leg = line.agent.incoming[0]
    line.phone.request("ACK", branch="ack", to_tag=leg.dialog.local_tag)
    line.clock.run(0.05)
    leg.hang_up()
    line.clock.run(0.05)
    bye = proxy.last()
    assert isinstance(bye, Request)
    assert bye.headers.getlist("Route") == ["<sip:127.0.0.1:9;lr>", "<sip:far.example;lr>"]
    assert str(bye.uri) == "sip:phone@127.0.0.1:7"


def test_a_strict_router_finds_itself_in_the_request_uri() -> None:
    line = Line()
    line.phone.request("INVITE", body="offer", extra="Record-Route: <sip:127.0.0.1:7>")
    line.clock.run(0.05)
    leg = line.agent.incoming[0]
    line.phone.request("ACK", branch="ack", to_tag=leg.dialog.local_tag)
    line.clock.run(0.05)
    leg.hang_up()
    line.clock.run(0.05)
    bye = line.phone.last()
    assert isinstance(bye, Request)
    assert str(bye.uri) == "sip:127.0.0.1:7"
    assert bye.headers.getlist("Route") == ["<sip:phone@127.0.0.1:7>"]


def test_a_contact_that_cannot_be_reached_does_no_harm() -> None:
    line = Line()
    line.phone.send("INVITE sip:x@127.0.0.1:2 SIP/2.0\nVia: SIP/2.0/UDP 127.0.0.1:7;branch=z9hG4bK1\n"
                    "From: <sip:a@b>;tag=1\nTo: <sip:x@127.0.0.1>\nCall-ID: c\nCSeq: 1 INVITE\n"
                    "Contact: <sip:a@127.0.0.1:7;transport=pigeon>\n\n")
    line.clock.run(0.05)
    [leg] = line.agent.incoming
    line.clock.run(40)
    assert line.agent.owners[leg].ends == ["lost"]
    assert line.phone.names[-1] == "BYE"


@pytest.mark.parametrize(("source", "port"), [("8.8.8.8", 7), ("192.168.1.9", 9)])
def test_a_phone_behind_nat_is_answered_where_it_speaks_from(source: str, port: int) -> None:
    line = Line()
    home = Phone(line.network, 9, 2)
    line.phone.own = Hop("udp", source, 7)
    line.phone.send("INVITE sip:x@127.0.0.1:2 SIP/2.0\nVia: SIP/2.0/UDP 192.168.1.5:9;branch=z9hG4bK1;rport\n"
                    "From: <sip:a@b>;tag=1\nTo: <sip:x@127.0.0.1>\nCall-ID: c1\nCSeq: 1 INVITE\n"
                    "Contact: <sip:a@192.168.1.5:9>\n\n")
    line.clock.run(0.05)
    [leg] = line.agent.incoming
    line.phone.request("ACK", branch="ack", to_tag=leg.dialog.local_tag, from_tag="1", body="answer")
    line.clock.run(0.05)
    leg.hang_up()
    line.clock.run(0.05)
    assert (line.phone if port == 7 else home).names[-1] == "BYE"


def test_a_refresh_is_taken_while_our_offer_is_out() -> None:
    line = Line()
    leg, tag = line.call()
    leg.reoffers.offer("hold", lambda _outcome: None)
    line.clock.run(0.05)
    assert line.ask("UPDATE", cseq=2, to_tag=tag).code == 200
    assert line.ask("UPDATE", cseq=3, to_tag=tag, body="offer").code == 491


def test_a_draining_endpoint_takes_no_new_call_and_keeps_the_old() -> None:
    line = Line()
    leg, tag = line.call()
    line.agent.endpoint.draining = True
    refused = line.ask("INVITE", call_id="c2", body="offer")
    assert refused.code == 503
    assert refused.headers["Retry-After"] == "5"
    assert line.ask("OPTIONS", call_id="c3").code == 503
    assert line.ask("INVITE", cseq=2, to_tag=tag, body="hold").code == 200
    assert leg.ended is None


def test_above_the_limit_of_calls_the_line_is_busy() -> None:
    line = Line(SipConfig(limits=SipLimits(calls=1)))
    line.call()
    refused = line.ask("INVITE", call_id="c2", body="offer")
    assert refused.code == 503
    assert refused.headers["Retry-After"] == "5"


def test_a_flood_is_answered_without_being_remembered() -> None:
    line = Line(SipConfig(limits=SipLimits(transactions=10)))
    leg, tag = line.call()
    line.clock.run(40)
    for number in range(500):
        line.phone.request("OPTIONS", call_id=f"flood{number}")
    line.clock.run(0.05)
    assert len(line.agent.endpoint.layer) == 10
    assert line.agent.endpoint.layer.refused == 490
    refused = line.phone.last()
    assert isinstance(refused, Response)
    assert refused.code == 503
    assert "Retry-After" in refused.headers.keys()  # noqa: SIM118
    line.clock.run(40)
    assert line.ask("BYE", cseq=2, to_tag=tag).code == 200
    assert line.agent.owners[leg].ends == ["hung up"]
    line.clock.run(40)
    assert line.agent.idle


def test_calls_out_above_the_limit_of_transactions_are_refused_to_their_owner() -> None:
    line = Line(SipConfig(limits=SipLimits(transactions=1)))
    first = line.agent.dial(99)
    second = line.agent.dial(99)
    line.clock.run(0.1)
    assert line.agent.owners[second].ends == ["refused"]
    assert first.ended is None
    line.clock.run(80)
    assert line.agent.idle


def test_an_owner_that_fails_ends_its_own_call_only() -> None:
    line = Line()
    leg, tag = line.call()

    def broken(digits: str) -> None:
        raise RuntimeError(f"broken by {digits}")

    line.agent.owners[leg].on_digits = broken  # type: ignore[method-assign]
    line.ask("INFO", cseq=2, to_tag=tag, kind="application/dtmf", body="1")
    assert line.agent.owners[leg].ends == ["media fault"]
    assert line.ask("OPTIONS", call_id="c9").code == 200


def test_trusted_networks_are_not_challenged() -> None:
    users = (SipUser(name="alice", password="secret"),)  # type: ignore[arg-type]
    assert Line(SipConfig(users=users)).ask("INVITE", body="offer").code == 401
    trusting = SipConfig(users=users, trusted=("127.0.0.0/8",))  # type: ignore[arg-type]
    assert Line(trusting).ask("INVITE", body="offer").code == 200


@pytest.mark.parametrize("hashes", [("SHA-256", "MD5"), ("MD5",)])
def test_a_challenge_offers_the_hashes_of_the_config_in_their_order(
        hashes: tuple[Literal["SHA-256", "MD5"], ...]) -> None:
    users = (SipUser(name="alice", password="secret"),)  # type: ignore[arg-type]
    response = Line(SipConfig(users=users, digest=hashes)).ask("INVITE", body="offer")
    assert [value.rpartition("=")[2] for value in response.headers.getlist("WWW-Authenticate")] == list(hashes)
