from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sipmessage import URI, Request

from duologue.agent.transports.sip.calls import Credentials
from duologue.agent.transports.sip.signalling import digest
from duologue.agent.transports.sip.signalling.digest import Authenticator, Challenge, DigestClient, Unauthorized
from duologue.agent.transports.sip.signalling.wire import reply

NOW = [1000.0]


@pytest.fixture(autouse=True)
def noon() -> None:
    NOW[0] = 1000.0


def authenticator(remembered: int = 8) -> Authenticator:
    return Authenticator({"alice": "secret"}, "house", lambda: NOW[0], 300, remembered)


def register(credentials: str = "") -> Request:
    request = Request("REGISTER", URI(scheme="sip", host="house"))
    for name, value in (("Via", "SIP/2.0/UDP h;branch=z9hG4bK1"), ("From", "<sip:a@h>;tag=1"), ("To", "<sip:a@h>"),
                        ("Call-ID", "c"), ("CSeq", "1 REGISTER")):
        request.headers.set(name, value)
    if credentials:
        request.headers.set("Authorization", credentials)
    return request


def respond(client: DigestClient, challenge: str | Challenge, code: int = 401) -> tuple[str, str]:
    assert isinstance(challenge, Challenge)
    response = reply(register(), code)
    response.headers.setlist("WWW-Authenticate" if code == 401 else "Proxy-Authenticate", list(challenge.values))
    return client.answer(response, "REGISTER", "sip:house")


@pytest.mark.parametrize(("algorithm", "expected"), [
    ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
    ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1")])
def test_the_examples_of_rfc_7616_come_out(algorithm: str, expected: str) -> None:
    assert digest._response(algorithm, "Mufasa", "http-auth@example.org", "Circle of Life", "GET", "/dir/index.html",
                            "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", "00000001",
                            "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ") == expected


def test_a_challenge_without_qop_is_answered_as_rfc_2069_says() -> None:
    response = reply(register(), 401)
    response.headers.set("WWW-Authenticate", 'Digest realm="r", nonce="n"')
    _, value = DigestClient(Credentials("u", "p")).answer(response, "REGISTER", "sip:house")
    first, second = (hashlib.md5(text.encode()).hexdigest() for text in ("u:r:p", "REGISTER:sip:house"))
    assert f'response="{hashlib.md5(f"{first}:n:{second}".encode()).hexdigest()}"' in value
    assert "qop" not in value


@pytest.mark.parametrize("code", [401, 407])
def test_the_right_password_is_taken_and_the_stronger_hash_chosen(code: int) -> None:
    server, client = authenticator(), DigestClient(Credentials("alice", "secret"))
    name, value = respond(client, server.check(register()), code)
    assert name == ("Authorization" if code == 401 else "Proxy-Authorization")
    assert "algorithm=SHA-256" in value
    assert server.check(register(value)) == "alice"


@pytest.mark.parametrize("credentials", [Credentials("alice", "wrong"), Credentials("mallory", "secret")])
def test_a_wrong_name_or_password_is_challenged_again_and_not_tried_twice(credentials: Credentials) -> None:
    server, client = authenticator(), DigestClient(credentials)
    _, value = respond(client, server.check(register()))
    again = server.check(register(value))
    assert isinstance(again, Challenge)
    assert not again.stale
    with pytest.raises(Unauthorized):
        respond(client, again)


def test_a_nonce_is_good_for_many_requests_but_each_count_for_one() -> None:
    server, client = authenticator(), DigestClient(Credentials("alice", "secret"))
    challenge = server.check(register())
    _, first = respond(client, challenge)
    client.accepted()
    _, second = respond(client, challenge)
    assert "nc=00000002" in second
    assert server.check(register(first)) == "alice"
    assert server.check(register(second)) == "alice"
    replayed = server.check(register(first))
    assert isinstance(replayed, Challenge)
    assert replayed.stale


def test_an_old_nonce_is_stale_and_the_client_tries_again_at_once() -> None:
    server, client = authenticator(), DigestClient(Credentials("alice", "secret"))
    _, value = respond(client, server.check(register()))
    NOW[0] += 301
    again = server.check(register(value))
    assert isinstance(again, Challenge)
    assert again.stale
    _, value = respond(client, again)
    assert server.check(register(value)) == "alice"


def test_a_nonce_that_is_not_ours_is_stale() -> None:
    _, value = respond(DigestClient(Credentials("alice", "secret")), authenticator().check(register()))
    again = authenticator().check(register(value))
    assert isinstance(again, Challenge)
    assert again.stale


def test_forgotten_counts_cannot_be_replayed() -> None:
    server = authenticator(remembered=2)
    values = []
    for _ in range(4):
        NOW[0] += 1
        _, value = respond(DigestClient(Credentials("alice", "secret")), server.check(register()))
        assert server.check(register(value)) == "alice"
        values.append(value)
    assert len(server._counts) == 2
    assert all(isinstance(server.check(register(value)), Challenge) for value in values)


def test_a_hash_that_was_not_asked_for_is_not_taken() -> None:
    strict = Authenticator({"alice": "secret"}, "house", lambda: NOW[0], 300, offered=("SHA-256",))
    challenge = strict.check(register())
    assert isinstance(challenge, Challenge)
    weaker = Challenge(tuple(value.replace("SHA-256", "MD5") for value in challenge.values), False)
    _, value = respond(DigestClient(Credentials("alice", "secret")), weaker)
    assert isinstance(strict.check(register(value)), Challenge)


@pytest.mark.parametrize("header", [
    'Basic realm="r"', 'Digest realm="r", nonce="n", algorithm=SHA-512', 'Digest realm="r", nonce="n", qop="auth-int"',
    "Digest", ""])
def test_a_challenge_that_cannot_be_met_is_refused(header: str) -> None:
    response = reply(register(), 401)
    if header:
        response.headers.set("WWW-Authenticate", header)
    with pytest.raises(Unauthorized):
        DigestClient(Credentials("u", "p")).answer(response, "REGISTER", "sip:house")


@settings(deadline=None)
@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=0x2FF), max_size=60))
def test_any_credentials_are_answered_with_a_challenge(text: str) -> None:
    assert isinstance(authenticator().check(register(f'Digest realm="house", {text}')), Challenge)
    assert isinstance(authenticator().check(register(
        f'Digest realm="house", username="alice", nonce="{text}", qop=auth, cnonce="x", nc=0000000g')), Challenge)
