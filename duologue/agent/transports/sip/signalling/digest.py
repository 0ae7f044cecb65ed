"""Digest authentication (RFC 7616, with SIP's RFC 8760): MD5 and SHA-256, ``qop=auth``, both sides."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sipmessage import Request, Response

from duologue.agent.transports.sip.calls import Credentials
from duologue.agent.transports.sip.signalling.grammar import read_auth

_HASHES: Mapping[str, Callable[[bytes], Any]] = {"SHA-256": hashlib.sha256, "MD5": hashlib.md5}
"""By preference."""


@dataclass(frozen=True)
class Challenge:
    """Who asks must (again) prove who they are: the values of WWW-Authenticate, best first."""

    values: tuple[str, ...]
    stale: bool
    """The secret was right, the nonce too old or used before: no reason to ask a human."""


class Authenticator:
    """Checks requests against users' passwords.

    Nonces are signed times, so that a flood of requests leaves nothing behind; only of nonces that were used with the
    right password the last count is kept.
    """

    def __init__(self, users: Mapping[str, str], realm: str, clock: Callable[[], float], lifetime_s: float,
                 remembered: int = 4096, offered: Sequence[str] = tuple(_HASHES)) -> None:
        """``users`` maps names to passwords; ``remembered`` bounds the counts kept; ``offered`` are the hashes asked
        for, and no other is taken.
        """
        self._users = users
        self._realm = realm
        self._clock = clock
        self._lifetime_s = lifetime_s
        self._remembered = remembered
        self._offered = offered
        self._key = secrets.token_bytes(32)
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._forgotten_until = float("-inf")

    def check(self, request: Request, header: str = "Authorization") -> str | Challenge:
        """Return the name of who sent a request, or the challenge to answer it with."""
        for value in request.headers.getlist(header):
            try:
                scheme, given = read_auth(value)
            except ValueError:
                continue
            if scheme == "digest" and given.get("realm") == self._realm:
                return self._verify(given, request.method)
        return self._challenge(stale=False)

    def _verify(self, given: Mapping[str, str], method: str) -> str | Challenge:
        algorithm = given.get("algorithm", "MD5").upper()
        user, nonce = given.get("username", ""), given.get("nonce", "")
        count = given.get("nc", "")
        # An unknown user costs the same time as a known one.
        password = self._users.get(user, secrets.token_hex(8))
        if algorithm not in self._offered or given.get("qop") != "auth" or not given.get("cnonce") or len(count) != 8:
            return self._challenge(stale=False)
        # The URI that was signed is not compared: proxies rewrite the Request-URI, and the count stops replays.
        expected = _response(algorithm, user, self._realm, password, method, given.get("uri", ""), nonce,
                             count, given["cnonce"])
        if not hmac.compare_digest(expected.encode(), given.get("response", "").lower().encode()):
            return self._challenge(stale=False)
        if user not in self._users:
            return self._challenge(stale=False)
        return user if self._fresh(nonce, count) else self._challenge(stale=True)

    def _fresh(self, nonce: str, count: str) -> bool:
        """Whether a nonce is ours and young, and its count was not used before."""
        stamp, _, signature = nonce.partition(":")
        try:
            made = float.fromhex(stamp)
            number = int(count, 16)
        except (ValueError, OverflowError):
            return False
        if not hmac.compare_digest(signature.encode(), self._sign(stamp).encode()):
            return False
        if not self._forgotten_until < made <= self._clock() < made + self._lifetime_s:
            return False
        if number <= self._counts.get(nonce, 0):
            return False
        self._counts[nonce] = number
        self._counts.move_to_end(nonce)
        if len(self._counts) > self._remembered:
            oldest, _ = self._counts.popitem(last=False)
            self._forgotten_until = max(self._forgotten_until, float.fromhex(oldest.partition(":")[0]))
        return True

    def _challenge(self, *, stale: bool) -> Challenge:
        # Two clients that are challenged in the same instant still get nonces of their own.
        stamp = (self._clock() - secrets.randbelow(1 << 20) * 1e-9).hex()
        nonce = f"{stamp}:{self._sign(stamp)}"
        common = f'Digest realm="{self._realm}", nonce="{nonce}", qop="auth"' + (", stale=true" if stale else "")
        return Challenge(tuple(f"{common}, algorithm={algorithm}" for algorithm in self._offered), stale)

    def _sign(self, stamp: str) -> str:
        return hmac.new(self._key, stamp.encode(), hashlib.sha256).hexdigest()[:32]


class Unauthorized(ValueError):  # noqa: N818 - the status's name
    """A challenge that cannot be met: another scheme, or the password was not accepted."""


class DigestClient:
    """Answers challenges with one account's credentials, counting each nonce's uses."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._nonce = ""
        self._count = 0
        self._tried = False

    def answer(self, response: Response, method: str, uri: str) -> tuple[str, str]:
        """Return the header name and value that meet a 401 or 407. Raises ``Unauthorized``."""
        ours, theirs = (("Authorization", "WWW-Authenticate") if response.code == 401
                        else ("Proxy-Authorization", "Proxy-Authenticate"))
        offered: dict[str, dict[str, str]] = {}
        for value in response.headers.getlist(theirs):
            try:
                scheme, given = read_auth(value)
            except ValueError:
                continue
            algorithm = given.get("algorithm", "MD5").upper()
            qops = [qop.strip() for qop in given.get("qop", "auth").split(",")]
            if scheme == "digest" and algorithm in _HASHES and "auth" in qops and given.get("nonce"):
                offered.setdefault(algorithm, given)
        for algorithm in _HASHES:
            if algorithm in offered:
                return ours, self._credential(offered[algorithm], algorithm, method, uri)
        raise Unauthorized("no digest challenge with MD5 or SHA-256 was offered")

    def accepted(self) -> None:
        """The last credentials were right: the next challenge starts anew."""
        self._tried = False

    def _credential(self, given: Mapping[str, str], algorithm: str, method: str, uri: str) -> str:
        stale = given.get("stale", "").lower() == "true"
        if self._tried and not stale:
            raise Unauthorized("the user or password was not accepted")
        self._tried = True
        realm, nonce = given.get("realm", ""), given["nonce"]
        self._count = self._count + 1 if nonce == self._nonce else 1
        self._nonce = nonce
        user, count = self._credentials.user, f"{self._count:08x}"
        cnonce = secrets.token_hex(8) if "qop" in given else ""
        secret = _response(algorithm, user, realm, self._credentials.password, method, uri, nonce, count, cnonce)
        value = (f'Digest username="{_escape(user)}", realm="{_escape(realm)}", nonce="{_escape(nonce)}", uri="{uri}", '
                 f'response="{secret}", algorithm={algorithm}')
        if cnonce:
            value += f', cnonce="{cnonce}", qop=auth, nc={count}'
        if "opaque" in given:
            value += f', opaque="{_escape(given["opaque"])}"'
        return value


def _response(algorithm: str, user: str, realm: str, password: str, method: str, uri: str, nonce: str, count: str,
              cnonce: str) -> str:
    """RFC 7616 section 3.4.1; without ``cnonce`` the older form of RFC 2069."""
    def digest(text: str) -> str:
        return str(_HASHES[algorithm](text.encode()).hexdigest())

    first, second = digest(f"{user}:{realm}:{password}"), digest(f"{method}:{uri}")
    middle = f"{nonce}:{count}:{cnonce}:auth" if cnonce else nonce
    return digest(f"{first}:{middle}:{second}")


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
