"""Who of a room is the caller."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from duologue.agent.transports.livekit.config import GuestKind, LinkConfig
from duologue.agent.transports.livekit.linking import Linked, Linking, Vacant

FIRST = LinkConfig()


def test_the_first_who_comes_is_linked_and_the_next_takes_over_in_the_order_they_came() -> None:
    linking = Linking(FIRST)
    assert linking.joined("a", "standard") == Linked("a")
    assert linking.joined("b", "standard") is None
    assert linking.joined("c", "standard") is None
    assert linking.left("a", may_return=False) == Linked("b")
    assert linking.left("c", may_return=False) is None
    assert linking.left("b", may_return=False) == Vacant(may_return=False)


def test_agents_and_recorders_are_never_callers() -> None:
    for rule in (FIRST, LinkConfig(rule="identity", identity="bot"), LinkConfig(rule="kind", kind="standard")):
        linking = Linking(rule)
        assert linking.joined("bot", "other") is None
        assert linking.linked is None


def test_a_lost_caller_may_return_and_one_who_left_may_not() -> None:
    linking = Linking(FIRST)
    linking.joined("a", "standard")
    assert linking.left("a", may_return=True) == Vacant(may_return=True)
    assert linking.joined("a", "standard") == Linked("a")


def test_a_phone_is_linked_when_it_is_answered_and_gone_when_it_hangs_up() -> None:
    linking = Linking(FIRST)
    assert linking.joined("sip_1", "sip", "dialing") is None
    assert linking.status("sip_1", "ringing") is None
    assert linking.status("sip_1", "active") == Linked("sip_1")
    assert linking.on_the_phone
    assert linking.status("sip_1", "") is None, "other attributes changed"
    assert linking.status("sip_1", "hangup") == Vacant(may_return=False)
    assert linking.left("sip_1", may_return=False) is None


def test_the_rule_identity_waits_for_its_one() -> None:
    linking = Linking(LinkConfig(rule="identity", identity="anna"))
    assert linking.joined("bert", "standard") is None
    assert linking.joined("anna", "standard") == Linked("anna")
    assert linking.left("anna", may_return=False) == Vacant(may_return=False)


def test_the_rule_kind_passes_over_all_others() -> None:
    linking = Linking(LinkConfig(rule="kind", kind="sip"))
    assert linking.joined("operator", "standard") is None
    assert linking.joined("sip_1", "sip", "active") == Linked("sip_1")


@pytest.mark.parametrize("wrong", [
    {"rule": "identity"}, {"rule": "kind"}, {"identity": "x"}, {"kind": "sip"}, {"rule": "kind", "kind": "agent"},
])
def test_a_rule_that_does_not_say_who_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        LinkConfig.model_validate(wrong)


GUESTS = st.sampled_from(["a", "b", "c", "d"])
KINDS: st.SearchStrategy[GuestKind | Literal["other"]] = st.sampled_from(["standard", "sip", "connector", "other"])
STATUSES = st.sampled_from(["", "dialing", "ringing", "active", "hangup"])
EVENTS = st.lists(st.one_of(
    st.tuples(st.just("joined"), GUESTS, KINDS, STATUSES),
    st.tuples(st.just("status"), GUESTS, st.none(), STATUSES),
    st.tuples(st.just("left"), GUESTS, st.booleans(), st.none()),
))
RULES = st.sampled_from([FIRST, LinkConfig(rule="identity", identity="b"), LinkConfig(rule="kind", kind="sip")])


def fits(rule: LinkConfig, who: str, kind: object, status: str) -> bool:
    answered = kind != "sip" or status == "active"
    wanted = {"first": True, "identity": who == rule.identity, "kind": kind == rule.kind}[rule.rule]
    return kind != "other" and answered and wanted


@given(RULES, EVENTS)
def test_whatever_happens_there_is_a_caller_if_anybody_fits_and_every_change_is_told(
    rule: LinkConfig, events: list[tuple[str, str, GuestKind | bool | None, str | None]],
) -> None:
    linking = Linking(rule)
    room: dict[str, tuple[object, str]] = {}
    told: str | None = None
    for what, who, more, news in events:
        status = news or ""
        if what == "left":
            change = linking.left(who, may_return=more is True)
            room.pop(who, None)
        else:
            new = what == "joined" and who not in room
            change = (linking.joined(who, more, status) if what == "joined"  # type: ignore[arg-type]
                      else linking.status(who, status))
            if new:
                room[who] = (more, status)
            elif who in room and status:
                room[who] = (room[who][0], status)
                if status == "hangup":
                    del room[who]
        before = told
        match change:
            case Linked(identity):
                told = identity
                assert fits(rule, identity, *room[identity])
            case Vacant():
                told = None
        assert told == linking.linked
        if before in room:
            assert told == before, "a caller who stays is never replaced"
        if told is None:
            assert not any(fits(rule, guest, *known) for guest, known in room.items())
        else:
            assert told in room
