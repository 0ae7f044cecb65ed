from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.agent.transports.sip.signalling.grammar import (
    read_address,
    read_auth,
    read_cseq,
    read_uri,
    read_via,
    split_list,
    split_outside,
)


@pytest.mark.parametrize(("text", "user", "host", "port"), [
    ("sip:desk@192.0.2.7", "desk", "192.0.2.7", None),
    ("sip:+49-30-1@pbx1:5070;transport=tcp", "+49-30-1", "pbx1", 5070),
    ("sip:x@my_pbx.local2", "x", "my_pbx.local2", None),
    ("sips:x:secret@[2001:db8::1]:5061", "x", "[2001:db8::1]", 5061),
    ("sip:host.example?subject=hi", None, "host.example", None),
    ("sip:+49;phone-context=x@h.example;user=phone", "+49;phone-context=x", "h.example", None),
    ("sip:a%20b@h.example", "a b", "h.example", None),
    ("tel:+1-201-555-0123;ext=7", "+1-201-555-0123", "", None),
])
def test_a_uri_is_read(text: str, user: str | None, host: str, port: int | None) -> None:
    uri = read_uri(text)
    assert (uri.user, uri.host, uri.port) == (user, host, port)


@pytest.mark.parametrize("text", [
    "", "sip:", "http://h.example", "sip:a@", "sip:@h.example", "sip:a@h:0", "sip:a@h:70000", "sip:a b@h.example",
    "sip:a@h.example:x", "tel:", "tel:abc def", "sip:a@h<x", "sip:a@[::1"])
def test_what_is_no_uri_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_uri(text)


def test_an_address_may_quote_whatever_it_likes() -> None:
    address = read_address(r'"A \"B\" <c>; d, e" <sip:x@h.example;lr>;tag=7;x="a;b,c"')
    assert address.name == 'A "B" <c>; d, e'
    assert "lr" in address.uri.parameters
    assert dict(address.parameters) == {"tag": "7", "x": "a;b,c"}


def test_parameters_after_a_bare_uri_belong_to_the_header() -> None:
    address = read_address("sip:x@h.example;tag=7")
    assert address.parameters["tag"] == "7"
    assert not address.uri.parameters


def test_lists_are_split_outside_quotes_and_brackets() -> None:
    assert split_list(['<sip:a@h.example;x=1,2>, "b, c" <sip:b@h.example>', "sip:d@h.example"]) == [
        "<sip:a@h.example;x=1,2>", '"b, c" <sip:b@h.example>', "sip:d@h.example"]


def test_a_via_with_an_ipv6_received_is_read() -> None:
    via = read_via("SIP / 2.0 / udp  pbx1 : 5070 ;branch=z9hG4bKx;received=2001:db8::1;rport;self=1")
    assert (via.transport, via.host, via.port) == ("UDP", "pbx1", 5070)
    assert via.parameters["received"] == "2001:db8::1"
    assert via.parameters["rport"] is None


@pytest.mark.parametrize("text", ["1", "x INVITE", "2147483648 INVITE", "1  ", "-1 INVITE"])
def test_what_is_no_cseq_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_cseq(text)


def test_authentication_parameters_may_hold_commas_in_quotes() -> None:
    assert read_auth('Digest realm="a, b", qop="auth,auth-int", nonce="x\\"y", algorithm=MD5') == (
        "digest", {"realm": "a, b", "qop": "auth,auth-int", "nonce": 'x"y', "algorithm": "MD5"})


def test_a_hostile_authorization_takes_linear_time() -> None:
    with pytest.raises(ValueError):
        read_auth("Digest " + ",".join(['a="x"'] * 5000) + " !")


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (read_uri, read_address, read_via, read_cseq, read_auth, lambda each: split_outside(each, ",")):
        with contextlib.suppress(ValueError):
            read(text)
