"""RFC 4028, section 9: what is agreed for which request."""

from __future__ import annotations

import pytest
from sipmessage import URI, Request, Response

from duologue.agent.transports.sip.config import SipSessionTimers
from duologue.agent.transports.sip.signalling.session_timer import SessionTimer, TooSmall, accept, agree, ask

TIMERS = SipSessionTimers(expires_s=1800, min_s=120)


def request(**headers: str) -> Request:
    made = Request("INVITE", URI(scheme="sip", host="h.example"))
    for name, value in headers.items():
        made.headers.set(name.replace("_", "-"), value)
    return made


@pytest.mark.parametrize(("headers", "interval", "refresher"), [
    ({}, 1800, "uas"),
    ({"Supported": "timer"}, 1800, "uac"),
    ({"Supported": "100rel, timer", "Session_Expires": "600"}, 600, "uac"),
    ({"Supported": "timer", "Session_Expires": "600;refresher=uas"}, 600, "uas"),
    ({"Supported": "timer", "Session_Expires": "7200; refresher = uac"}, 1800, "uac"),
    ({"Supported": "timer", "Session_Expires": "7200", "Min_SE": "3600"}, 3600, "uac"),
    ({"Supported": "timer", "Min_SE": "3600"}, 3600, "uac"),
    ({"Session_Expires": "600;refresher=uac"}, 600, "uas"),
    ({"Session_Expires": "30"}, 120, "uas"),
])
def test_who_is_asked_decides(headers: dict[str, str], interval: int, refresher: str) -> None:
    assert agree(request(**headers), TIMERS) == SessionTimer(interval, refresher)  # type: ignore[arg-type]


def test_an_interval_below_ours_is_too_small() -> None:
    with pytest.raises(TooSmall):
        agree(request(Supported="timer", Session_Expires="119"), TIMERS)


@pytest.mark.parametrize("headers", [{"Session_Expires": "soon"}, {"Min_SE": "-1"}, {"Session_Expires": "9" * 12}])
def test_what_is_no_number_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        agree(request(Supported="timer", **headers), TIMERS)


def test_what_is_asked_rises_to_the_largest_minimum_met() -> None:
    made = request()
    ask(made, TIMERS, 3600, "uac")
    assert made.headers["Session-Expires"] == "3600;refresher=uac"
    assert made.headers["Min-SE"] == "3600"


@pytest.mark.parametrize(("value", "expected"), [
    ("600;refresher=uas", SessionTimer(600, "uas")), ("600", SessionTimer(600, "uac")), ("x", None), (None, None)])
def test_what_the_other_end_decided_is_read(value: str | None, expected: SessionTimer | None) -> None:
    response = Response(200, "OK")
    if value is not None:
        response.headers.set("Session-Expires", value)
    assert accept(response) == expected


@pytest.mark.parametrize(("interval", "refresh", "give_up"), [(90, 45, 60), (1800, 900, 1768)])
def test_refreshing_leaves_time_before_giving_up(interval: int, refresh: float, give_up: float) -> None:
    timer = SessionTimer(interval, "uac")
    assert (timer.refresh_after_s(), timer.give_up_after_s()) == (refresh, give_up)
