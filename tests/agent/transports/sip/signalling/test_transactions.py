"""RFC 3261 section 17 and RFC 6026, machine by machine, on a clock that is a number."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sipmessage import URI, CSeq, Request, Response

from duologue.agent.transports.sip.signalling.transactions import (
    Effect,
    InviteClient,
    InviteServer,
    NonInviteClient,
    NonInviteServer,
    Pass,
    State,
    TimedOut,
    Transmit,
)
from duologue.agent.transports.sip.signalling.wire import reply

Machine = InviteClient | NonInviteClient | InviteServer | NonInviteServer


def request(method: str = "INVITE") -> Request:
    made = Request(method, URI(scheme="sip", host="h.example", user="b"))
    made.headers.set("Via", "SIP/2.0/UDP h.example;branch=z9hG4bKx;rport")
    made.headers.set("From", "<sip:a@h.example>;tag=f")
    made.headers.set("To", "<sip:b@h.example>")
    made.headers.set("Route", "<sip:proxy.example;lr>")
    made.call_id = "c"
    made.cseq = CSeq(sequence=5, method=method)
    return made


def answer(code: int, method: str = "INVITE") -> Response:
    return reply(request(method), code, to_tag="t")


def told(effects: list[Effect]) -> list[str]:
    """``>`` sent, ``^`` passed to the user."""
    names = []
    for effect in effects:
        if isinstance(effect, TimedOut):
            names.append("timeout")
        else:
            message = effect.message
            mark = ">" if isinstance(effect, Transmit) else "^"
            names.append(mark + (message.method if isinstance(message, Request) else str(message.code)))
    return names


def state_of(machine: Machine) -> State:
    return machine.state


def let_pass(machine: Machine, until: float) -> list[tuple[float, str]]:
    """Let all timers fire up to a time; returns when what happened."""
    found: list[tuple[float, str]] = []
    while machine.deadline is not None and machine.deadline <= until:
        at = machine.deadline
        found += [(at, what) for what in told(machine.expire(at))]
    return found


def test_an_invite_is_sent_again_with_doubling_intervals_until_timer_b() -> None:
    machine = InviteClient(request(), reliable=False)
    assert told(machine.start(0)) == [">INVITE"]
    assert let_pass(machine, 100) == [
        *((at, ">INVITE") for at in (0.5, 1.5, 3.5, 7.5, 15.5, 31.5)), (32, "timeout")]
    assert state_of(machine) is State.TERMINATED


def test_another_request_is_sent_again_at_most_every_t2_until_timer_f() -> None:
    machine = NonInviteClient(request("BYE"), reliable=False)
    machine.start(0)
    assert let_pass(machine, 100) == [
        *((at, ">BYE") for at in (0.5, 1.5, 3.5, 7.5, 11.5, 15.5, 19.5, 23.5, 27.5, 31.5)), (32, "timeout")]


@pytest.mark.parametrize("kind", [InviteClient, NonInviteClient])
def test_a_reliable_transport_needs_no_retransmission(kind: type[InviteClient | NonInviteClient]) -> None:
    machine = kind(request("INVITE" if kind is InviteClient else "BYE"), reliable=True)
    machine.start(0)
    assert let_pass(machine, 100) == [(32, "timeout")]


def test_a_provisional_response_stops_retransmission_of_an_invite_for_good() -> None:
    machine = InviteClient(request(), reliable=False)
    machine.start(0)
    assert told(machine.receive(answer(100), 0.2)) == ["^100"]
    assert told(machine.receive(answer(180), 0.3)) == ["^180"]
    assert machine.deadline is None


def test_a_provisional_response_slows_retransmission_of_others_to_t2() -> None:
    machine = NonInviteClient(request("BYE"), reliable=False)
    machine.start(0)
    machine.receive(answer(100, "BYE"), 1.0)
    assert let_pass(machine, 12) == [(5, ">BYE"), (9, ">BYE")]
    assert let_pass(machine, 40)[-1] == (32, "timeout")


def test_a_refusal_is_acknowledged_each_time_and_told_once() -> None:
    machine = InviteClient(request(), reliable=False)
    machine.start(0)
    effects = machine.receive(answer(486), 1)
    assert told(effects) == [">ACK", "^486"]
    assert isinstance(effects[0], Transmit)
    ack = effects[0].message
    assert isinstance(ack, Request)
    assert ack.headers["Via"] == request().headers["Via"]
    assert ack.headers["Route"] == "<sip:proxy.example;lr>"
    assert ack.headers["To"].endswith(";tag=t")
    assert str(ack.cseq) == "5 ACK"
    assert told(machine.receive(answer(486), 2)) == [">ACK"]
    assert let_pass(machine, 32.9) == []
    assert state_of(machine) is State.COMPLETED
    let_pass(machine, 33)
    assert state_of(machine) is State.TERMINATED


def test_every_2xx_reaches_the_user_until_timer_m() -> None:
    machine = InviteClient(request(), reliable=True)
    machine.start(0)
    assert told(machine.receive(answer(200), 1)) == ["^200"]
    assert told(machine.receive(answer(200), 2)) == ["^200"]
    assert told(machine.receive(answer(486), 3)) == []
    let_pass(machine, 32.9)
    assert state_of(machine) is State.ACCEPTED
    let_pass(machine, 33)
    assert state_of(machine) is State.TERMINATED


@pytest.mark.parametrize(("reliable", "state"), [(True, State.TERMINATED), (False, State.COMPLETED)])
def test_a_final_response_to_others_is_told_once(reliable: bool, state: State) -> None:
    machine = NonInviteClient(request("BYE"), reliable)
    machine.start(0)
    assert told(machine.receive(answer(200, "BYE"), 1)) == ["^200"]
    assert state_of(machine) is state
    assert told(machine.receive(answer(200, "BYE"), 2)) == []
    let_pass(machine, 6)
    assert state_of(machine) is State.TERMINATED


def test_a_refusal_is_sent_again_until_its_ack() -> None:
    machine = InviteServer(request(), reliable=False)
    assert told(machine.receive(request(), 0)) == []
    assert told(machine.respond(answer(180), 0)) == [">180"]
    assert told(machine.receive(request(), 0.1)) == [">180"]
    assert told(machine.respond(answer(487), 1)) == [">487"]
    assert let_pass(machine, 10) == [(1.5, ">487"), (2.5, ">487"), (4.5, ">487"), (8.5, ">487")]
    assert told(machine.receive(request(), 10)) == [">487"]
    machine.receive(request("ACK"), 11)
    assert state_of(machine) is State.CONFIRMED
    assert told(machine.receive(request(), 11)) == []
    assert let_pass(machine, 20) == []
    assert state_of(machine) is State.TERMINATED


def test_a_refusal_without_an_ack_is_given_up_by_timer_h() -> None:
    machine = InviteServer(request(), reliable=True)
    machine.respond(answer(487), 0)
    assert let_pass(machine, 100) == [(32, "timeout")]


def test_an_accepted_invite_is_absorbed_and_its_2xx_repeated_by_the_user() -> None:
    machine = InviteServer(request(), reliable=False)
    assert told(machine.respond(answer(200), 0)) == [">200"]
    assert told(machine.receive(request(), 1)) == []
    assert told(machine.respond(answer(200), 1)) == [">200"]
    assert told(machine.respond(answer(500), 1)) == []
    assert let_pass(machine, 100) == []
    assert state_of(machine) is State.TERMINATED


@pytest.mark.parametrize("reliable", [True, False])
def test_another_request_is_answered_the_same_each_time(reliable: bool) -> None:
    machine = NonInviteServer(request("BYE"), reliable)
    assert told(machine.receive(request("BYE"), 0)) == []
    assert told(machine.respond(answer(100, "BYE"), 0)) == [">100"]
    assert told(machine.receive(request("BYE"), 0)) == [">100"]
    assert told(machine.respond(answer(200, "BYE"), 1)) == [">200"]
    if not reliable:
        assert told(machine.receive(request("BYE"), 2)) == [">200"]
        assert told(machine.respond(answer(500, "BYE"), 2)) == []
        let_pass(machine, 33)
    assert state_of(machine) is State.TERMINATED


steps = st.lists(st.tuples(st.floats(0, 20), st.sampled_from([100, 180, 200, 200, 302, 486, 500, 603])), max_size=12)


@settings(deadline=None)
@given(steps, st.booleans(), st.booleans())
def test_a_client_tells_one_outcome_and_always_ends(given_steps: list[tuple[float, int]], reliable: bool,
                                                    invite: bool) -> None:
    method = "INVITE" if invite else "BYE"
    machine = (InviteClient if invite else NonInviteClient)(request(method), reliable)
    effects = machine.start(0)
    now = 0.0
    for pause, code in given_steps:
        now += pause
        effects += machine.expire(now)
        effects += machine.receive(answer(code, method), now)
        assert machine.deadline is None or machine.deadline >= now
    if machine.state is State.PROCEEDING and invite:
        effects += machine.receive(answer(487), now)  # what its user's CANCEL brings about
    effects += machine.expire(now + 100)
    assert state_of(machine) is State.TERMINATED
    assert machine.deadline is None
    finals = [each for each in effects if isinstance(each, TimedOut)
              or (isinstance(each, Pass) and isinstance(each.message, Response) and each.message.code >= 200)]
    refused = [each for each in finals if isinstance(each, Pass) and isinstance(each.message, Response)
               and each.message.code >= 300]
    assert len(finals) >= 1
    assert len(finals) == 1 or (invite and not refused), "only a 2xx to INVITE is told more than once"
    acks = sum(isinstance(each, Transmit) and isinstance(each.message, Request) and each.message.method == "ACK"
               for each in effects)
    assert (acks > 0) is (invite and bool(refused))


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 20), st.sampled_from(["again", "ack", "180", "200", "486"])), max_size=12),
       st.booleans(), st.booleans())
def test_a_server_sends_one_answer_and_always_ends(given_steps: list[tuple[float, str]], reliable: bool,
                                                   invite: bool) -> None:
    method = "INVITE" if invite else "BYE"
    machine = (InviteServer if invite else NonInviteServer)(request(method), reliable)
    effects: list[Effect] = []
    now = 0.0
    for pause, what in [*given_steps, (0.0, "200")]:
        now += pause
        effects += machine.expire(now)
        if what == "again":
            effects += machine.receive(request(method), now)
        elif what == "ack":
            effects += machine.receive(request("ACK"), now) if invite else []
        else:
            effects += machine.respond(answer(int(what), method), now)
    machine.expire(now + 100)
    assert state_of(machine) is State.TERMINATED
    finals = {each.message.code for each in effects if isinstance(each, Transmit)
              and isinstance(each.message, Response) and each.message.code >= 200}
    assert len(finals) == 1
