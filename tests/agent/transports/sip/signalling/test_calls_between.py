"""Two endpoints that call each other over a network that loses, doubles and reorders, on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.agent.transports.sip.calls import CallEnded, Credentials, OfferRefused, TransferOutcome
from duologue.agent.transports.sip.config import SipConfig, SipSessionTimers, SipUser, TransportName
from duologue.agent.transports.sip.signalling.digest import DigestClient
from duologue.agent.transports.sip.signalling.leg_in import IncomingLeg
from duologue.agent.transports.sip.signalling.leg_out import OutgoingLeg
from duologue.agent.transports.sip.signalling.wire import Hop
from tests.agent.transports.sip.signalling.virtual import Agent, Network, VirtualClock

Outcome = str | OfferRefused | CallEnded


class Pair:
    """Alice calls Bob."""

    def __init__(self, config: SipConfig | None = None, transport: TransportName = "udp",
                 bobs: SipConfig | None = None) -> None:
        self.clock = VirtualClock()
        self.network = Network(self.clock)
        self.alice = Agent(self.network, 1, config, transport)
        self.bob = Agent(self.network, 2, bobs or config, transport)

    def connect(self) -> tuple[OutgoingLeg, IncomingLeg]:
        call = self.alice.dial(2)
        self.clock.run(0.2)
        assert call.confirmed
        [other] = self.bob.incoming
        assert other.confirmed
        return call, other

    def settle(self) -> None:
        self.clock.run(80)


def lose(*numbers: int) -> Callable[[bytes], list[float]]:
    """Lose the messages of these numbers, counted from now."""
    count = iter(range(1 << 30))
    return lambda _data: [] if next(count) in numbers else [0.01]


def lose_first(what: bytes) -> Callable[[bytes], list[float]]:
    """Lose the first message that begins so."""
    left = [1]

    def fate(data: bytes) -> list[float]:
        if data.startswith(what) and left[0]:
            left[0] -= 1
            return []
        return [0.01]
    return fate


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_a_call_is_made_and_hung_up(transport: TransportName) -> None:
    pair = Pair(transport=transport)
    call, other = pair.connect()
    assert other.offer == "offer"
    assert pair.alice.owners[call].heard == [("answered", "answer")]
    call.hang_up()
    assert pair.alice.owners[call].ends == ["closed"]
    pair.clock.run(0.1)
    assert pair.bob.owners[other].ends == ["hung up"]
    assert pair.network.sent(1) == ["INVITE", "ACK", "BYE"]
    assert pair.network.sent(2) == ["100 INVITE", "200 INVITE", "200 BYE"]
    pair.settle()
    assert pair.alice.idle
    assert pair.bob.idle


@pytest.mark.parametrize(("lost", "resent"), [
    (b"INVITE", (1, "INVITE", 2)), (b"SIP/2.0 200", (2, "200 INVITE", 2)), (b"ACK", (1, "ACK", 2))])
def test_a_lost_message_of_the_handshake_is_made_good(lost: bytes, resent: tuple[int, str, int]) -> None:
    pair = Pair()
    pair.network.fate = lose_first(lost)
    call = pair.alice.dial(2)
    pair.clock.run(3)
    assert call.confirmed
    [other] = pair.bob.incoming
    assert other.confirmed
    port, what, count = resent
    assert pair.network.sent(port).count(what) == count
    assert pair.alice.owners[call].heard == [("answered", "answer")]


def test_a_retransmitted_invite_and_bye_make_one_call_and_one_end() -> None:
    pair = Pair()
    pair.network.fate = lambda data: [0.01, 0.015, 0.3] if data.startswith((b"INVITE", b"BYE")) else [0.01]
    call, other = pair.connect()
    pair.clock.run(1)
    call.hang_up()
    pair.settle()
    assert pair.bob.incoming == [other]
    assert pair.bob.owners[other].ends == ["hung up"]
    assert pair.network.sent(2).count("200 BYE") == 3
    assert pair.bob.idle


def test_an_answer_that_is_never_acknowledged_ends_the_call_with_a_bye() -> None:
    pair = Pair()
    pair.network.fate = lambda data: [] if data.startswith(b"ACK") else [0.01]
    call = pair.alice.dial(2)
    pair.clock.run(31)
    [other] = pair.bob.incoming
    assert other.ended is None
    pair.clock.run(2)
    assert pair.bob.owners[other].ends == ["lost"]
    assert pair.alice.owners[call].ends == ["hung up"]
    assert pair.network.sent(2).count("200 INVITE") == 11
    pair.settle()
    assert pair.alice.idle
    assert pair.bob.idle


def test_a_bye_of_the_called_waits_for_the_ack() -> None:
    pair = Pair()
    pair.network.fate = lose_first(b"ACK")
    call = pair.alice.dial(2)
    pair.clock.run(0.1)
    [other] = pair.bob.incoming
    other.hang_up()
    assert pair.bob.owners[other].ends == ["closed"]
    assert "BYE" not in pair.network.sent(2)
    pair.clock.run(1)
    assert pair.network.sent(2)[-1] == "BYE"
    assert pair.alice.owners[call].ends == ["hung up"]
    pair.settle()
    assert pair.alice.idle
    assert pair.bob.idle


def test_both_hang_up_at_once() -> None:
    pair = Pair()
    call, other = pair.connect()
    call.hang_up()
    other.hang_up()
    pair.settle()
    assert pair.alice.owners[call].ends == ["closed"]
    assert pair.bob.owners[other].ends == ["closed"]
    assert pair.alice.idle
    assert pair.bob.idle


@pytest.mark.parametrize("after_s", [0.0, 0.005, 0.015, 0.025, 0.5])
def test_a_call_out_that_is_given_up_is_cancelled_whenever_it_is(after_s: float) -> None:
    pair = Pair()
    pair.bob.on_call = lambda leg: leg.ring()
    call = pair.alice.dial(2)
    pair.clock.run(after_s)
    call.hang_up()
    assert pair.alice.owners[call].ends == ["closed"]
    pair.clock.run(2)
    [other] = pair.bob.incoming
    assert pair.bob.owners[other].ends == ["cancelled"]
    assert pair.network.sent(1).count("CANCEL") == 1
    assert "487 INVITE" in pair.network.sent(2)
    pair.settle()
    assert pair.alice.idle
    assert pair.bob.idle


def test_an_answer_that_crosses_the_cancel_is_acknowledged_and_hung_up() -> None:
    pair = Pair()
    pair.bob.on_call = lambda leg: leg.ring()
    call = pair.alice.dial(2)
    pair.clock.run(0.1)
    pair.bob.incoming[0].answer("answer")
    call.hang_up()
    pair.clock.run(1)
    assert pair.network.sent(1)[-3:] == ["CANCEL", "ACK", "BYE"]
    assert pair.alice.owners[call].ends == ["closed"]
    assert pair.bob.owners[pair.bob.incoming[0]].ends == ["hung up"]
    pair.settle()
    assert pair.alice.idle
    assert pair.bob.idle


def test_a_cancel_that_is_never_answered_leaves_nothing_behind() -> None:
    pair = Pair()
    pair.bob.on_call = lambda leg: leg.ring()
    call = pair.alice.dial(2)
    pair.clock.run(0.1)
    pair.network.fate = lambda _data: []
    call.hang_up()
    pair.settle()
    assert pair.alice.idle
    assert pair.alice.owners[call].ends == ["closed"]


def test_nobody_at_the_other_end_is_no_answer() -> None:
    pair = Pair()
    call = pair.alice.dial(99)
    pair.clock.run(33)
    assert pair.alice.owners[call].ends == ["no answer"]
    pair.settle()
    assert pair.alice.idle


def test_a_phone_that_rings_for_ever_is_given_up_on_both_sides() -> None:
    config = SipConfig(ring_timeout_s=100)
    pair = Pair(config)
    pair.bob.on_call = lambda leg: leg.ring()
    call = pair.alice.dial(2)
    pair.clock.run(90)
    assert pair.network.sent(2).count("180 INVITE") == 2  # once a minute
    pair.clock.run(20)
    assert pair.alice.owners[call].ends == ["no answer"]
    assert pair.bob.owners[pair.bob.incoming[0]].ends in (["cancelled"], ["no answer"])
    pair.settle()
    assert pair.alice.idle
    assert pair.bob.idle


def test_hold_and_resume_are_new_offers_in_either_direction() -> None:
    pair = Pair()
    call, other = pair.connect()
    outcomes: list[Outcome] = []
    call.reoffers.offer("hold", outcomes.append)
    call.reoffers.offer("resume", outcomes.append)
    other.reoffers.offer("from bob", outcomes.append)
    pair.clock.run(10)
    assert outcomes.count("later answer") == 3
    assert pair.bob.owners[other].heard == [("offer", "hold"), ("offer", "resume")]
    assert ("offer", "from bob") in pair.alice.owners[call].heard


def test_glare_is_resolved_by_trying_again() -> None:
    pair = Pair()
    call, other = pair.connect()
    outcomes: list[Outcome] = []
    call.reoffers.offer("a", outcomes.append)
    other.reoffers.offer("b", outcomes.append)
    pair.clock.run(0.05)
    assert pair.network.sent(1).count("491 INVITE") == 1
    assert pair.network.sent(2).count("491 INVITE") == 1
    pair.clock.run(10)
    assert outcomes == ["later answer", "later answer"]


def test_a_refused_offer_leaves_the_call_as_it_was() -> None:
    pair = Pair()
    call, other = pair.connect()
    pair.bob.owners[other].answer = None
    outcomes: list[Outcome] = []
    call.reoffers.offer("strange", outcomes.append)
    pair.clock.run(0.1)
    other.refuse_offer("no such codec")
    pair.clock.run(0.1)
    [refused] = outcomes
    assert isinstance(refused, OfferRefused)
    assert refused.status == 488
    assert call.ended is None
    assert other.ended is None


def test_an_offer_under_way_when_the_call_ends_is_told_so() -> None:
    pair = Pair()
    call, other = pair.connect()
    pair.bob.owners[other].answer = None
    outcomes: list[Outcome] = []
    call.reoffers.offer("a", outcomes.append)
    call.reoffers.offer("b", outcomes.append)
    pair.clock.run(0.1)
    other.hang_up()
    pair.clock.run(0.1)
    assert len(outcomes) == 2
    assert all(isinstance(outcome, CallEnded) for outcome in outcomes)
    pair.settle()
    assert pair.alice.idle
    assert pair.bob.idle


def test_a_transfer_asked_of_us_is_declined_and_the_call_goes_on() -> None:
    pair = Pair()
    call, other = pair.connect()
    outcomes: list[TransferOutcome] = []
    call.transfer("sip:carol@127.0.0.1", outcomes.append)
    pair.clock.run(0.1)
    assert [(outcome.status, outcome.succeeded) for outcome in outcomes] == [(603, False)]
    assert call.ended is None
    assert other.ended is None


def test_authentication_is_asked_for_and_given_and_a_wrong_password_refused() -> None:
    config = SipConfig(users=(SipUser(name="alice", password="secret"),))  # type: ignore[arg-type]
    pair = Pair(bobs=config)
    call = pair.alice.dial(2, DigestClient(Credentials("alice", "secret")))
    pair.clock.run(0.2)
    assert call.confirmed
    assert pair.bob.incoming[0].user == "alice"
    wrong = pair.alice.dial(2, DigestClient(Credentials("alice", "guess")))
    pair.clock.run(0.2)
    assert pair.alice.owners[wrong].ends == ["refused"]
    assert wrong.ended is not None
    assert wrong.ended.status == 401
    assert pair.network.sent(2).count("401 INVITE") == 3


def test_a_short_session_interval_is_answered_422_and_asked_again_longer() -> None:
    shy = SipConfig(session_timers=SipSessionTimers(expires_s=90, min_s=90))
    strict = SipConfig(session_timers=SipSessionTimers(expires_s=1800, min_s=600))
    pair = Pair(shy, bobs=strict)
    pair.connect()
    assert pair.network.sent(2).count("422 INVITE") == 1


@pytest.mark.parametrize("by_update", [True, False])
def test_a_live_call_is_refreshed_for_ever(by_update: bool) -> None:
    pair = Pair(SipConfig(session_timers=SipSessionTimers(expires_s=90)))
    call, other = pair.connect()
    if not by_update:
        call.peer_allows.discard("UPDATE")
        other.peer_allows.discard("UPDATE")
        for _ in range(6):
            pair.clock.run(45)
            call.peer_allows.discard("UPDATE")
    else:
        pair.clock.run(270)
    assert call.ended is None
    assert other.ended is None
    refreshes = pair.network.sent(1).count("UPDATE" if by_update else "INVITE")
    assert refreshes >= 5


def test_a_call_whose_other_end_is_gone_ends_by_the_session_timer_on_both_sides() -> None:
    pair = Pair(SipConfig(session_timers=SipSessionTimers(expires_s=90)))
    call, other = pair.connect()
    pair.network.fate = lambda _data: []
    pair.clock.run(100)
    assert pair.alice.owners[call].ends == ["lost"]
    assert pair.bob.owners[other].ends == ["lost"]
    pair.settle()
    assert pair.alice.idle
    assert pair.bob.idle


def test_a_call_given_up_before_it_was_sent_is_not_sent() -> None:
    pair = Pair()
    leg = OutgoingLeg(pair.alice.endpoint, pair.alice.endpoint.caller_of(pair.bob.endpoint.locals[0]),
                      pair.alice.endpoint.caller_of(pair.alice.endpoint.locals[0]), Hop("udp", "127.0.0.1", 2), "offer",
                      None)
    owner = pair.alice.own(leg)
    leg.hang_up()
    leg.start()
    pair.clock.run(1)
    assert pair.network.sent(1) == []
    assert owner.ends == ["closed"]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_messages_harm_nobody(data: st.DataObject) -> None:
    pair = Pair(SipConfig(ring_timeout_s=60, session_timers=SipSessionTimers(expires_s=90)))
    random = data.draw(st.randoms(use_true_random=False))

    def damage(message: bytes) -> bytes:
        damaged = bytearray(message)
        for _ in range(random.choice([0, 0, 1, 1, 2, 8])):
            place = random.randrange(len(damaged))
            damaged[place:place + random.choice([0, 1, 1, 5])] = random.choice(
                [b"", b"\r\n", b'"', b"<", b";", b":", b"0", b"9", b"\xc2\xb2", b"tag=", b"x"])
        return bytes(damaged)

    pair.network.damage = damage
    call = pair.alice.dial(2)
    pair.clock.run(3)
    call.reoffers.offer("hold", lambda _outcome: None)
    pair.clock.run(60)
    pair.network.damage = lambda message: message
    for leg in (call, *pair.bob.incoming):
        leg.hang_up()
    pair.clock.run(200)
    for owner in (*pair.alice.owners.values(), *pair.bob.owners.values()):
        assert len(owner.ends) == 1
    assert pair.alice.idle
    assert pair.bob.idle


fates = st.lists(st.sampled_from(["lost", "once", "late", "twice", "thrice"]), max_size=60)
acts = st.lists(st.tuples(st.floats(0, 8), st.sampled_from(
    ["ring", "answer", "refuse", "hold a", "hold b", "hang up a", "hang up b", "refer"])), max_size=8)


@settings(max_examples=300, deadline=None)
@given(fates, acts)
def test_whatever_the_network_and_the_people_do_each_end_is_told_once_and_nothing_stays(
        fate: list[str], doings: list[tuple[float, str]]) -> None:
    pair = Pair(SipConfig(ring_timeout_s=60, session_timers=SipSessionTimers(expires_s=90)))
    pair.bob.on_call = lambda leg: None
    ways = {"lost": [], "once": [0.01], "late": [1.3], "twice": [0.01, 0.6], "thrice": [0.2, 0.01, 2.0]}
    left = iter(fate)
    pair.network.fate = lambda _data: ways[next(left, "once")]
    call = pair.alice.dial(2)
    outcomes: list[object] = []
    asked = 0
    for pause, what in doings:
        pair.clock.run(pause)
        legs = pair.bob.incoming
        if what == "ring" and legs:
            legs[0].ring()
        elif what == "answer" and legs:
            legs[0].answer("answer")
        elif what == "refuse" and legs:
            legs[0].refuse(486)
        elif what == "hold a":
            asked += 1
            call.reoffers.offer("hold", outcomes.append)
        elif what == "hold b" and legs:
            asked += 1
            legs[0].reoffers.offer("hold", outcomes.append)
        elif what == "refer" and call.confirmed and call.ended is None:
            asked += 1
            call.transfer("sip:x@h.example", outcomes.append)
        elif what == "hang up a":
            call.hang_up()
        elif what == "hang up b" and legs:
            legs[0].hang_up()
    pair.clock.run(200)
    call.hang_up()
    for leg in pair.bob.incoming:
        leg.hang_up()
    pair.clock.run(200)
    assert len(pair.bob.incoming) <= 1
    for owner in (*pair.alice.owners.values(), *pair.bob.owners.values()):
        assert len(owner.ends) == 1
        assert owner.heard[-1][0] == "ended"
    assert len(outcomes) == asked
    assert pair.alice.idle
    assert pair.bob.idle
    assert pair.clock.pending == 0
