"""The SIP endpoint's configuration: where it listens, whom it registers with, whom it lets in, how much it holds."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from duologue.agent.transports.sip.media.config import SipMedia
from duologue.strict import Strict

TransportName = Literal["udp", "tcp", "tls"]

DEFAULT_PORTS: dict[str, int] = {"udp": 5060, "tcp": 5060, "tls": 5061}
"""RFC 3261 section 19.1.2."""


class SipListen(Strict):
    """One address that requests are taken at."""

    transport: TransportName = "udp"
    host: str = "127.0.0.1"
    """Numeric address of the interface; ``0.0.0.0`` and ``::`` need ``advertise``."""
    port: int | None = Field(default=None, ge=0, le=65535)
    """5060, or 5061 for TLS, if left out; 0 takes any free one."""
    advertise: str = ""
    """Host that Via, Contact and SDP name: the public one behind a static NAT. ``host`` if empty."""

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if ip_address(self.host).is_unspecified and not self.advertise:
            raise ValueError(f"listening at {self.host} needs 'advertise': the address that peers can reach")
        return self

    @property
    def advertised(self) -> str:
        """The host that peers are told, IPv6 in brackets."""
        host = self.advertise or self.host
        return f"[{host}]" if ":" in host and not host.startswith("[") else host

    @property
    def bind_port(self) -> int:
        """The port to bind; 0 for any."""
        return DEFAULT_PORTS[self.transport] if self.port is None else self.port


class SipTls(Strict):
    """What TLS listeners and connections use."""

    certificate: Path
    """PEM file: our certificate, then its chain."""
    key: Path
    """PEM file of the private key."""
    authorities: Path | None = None
    """PEM file of the authorities that servers we call are checked against; the system's if left out."""


class SipRegistration(Strict):
    """An account at a provider: calls to its number come to us, and calls to plain numbers go out by it."""

    registrar: str
    """URI of the provider's domain, such as ``sip:provider.example`` or ``sip:provider.example;transport=tls``."""
    user: str
    """The account's address of record is ``sip:USER@domain of the registrar``."""
    auth_user: str = ""
    """Name in digest authentication; ``user`` if empty."""
    password: SecretStr
    proxy: str = ""
    """URI of an outbound proxy that everything for this provider is sent to; the registrar's host if empty."""
    expires_s: int = Field(default=600, ge=60, le=86_400)
    """Lifetime that is asked for; the provider's answer rules."""


class SipUser(Strict):
    """Someone who may register a phone here and call with it."""

    name: str = Field(min_length=1)
    password: SecretStr


class SipSessionTimers(Strict):
    """RFC 4028: a call whose other end has silently gone is noticed by a refresh that fails."""

    expires_s: int = Field(default=1800, ge=90)
    """Session interval asked for (the RFC's recommended value)."""
    min_s: int = Field(default=90, ge=90)
    """Smallest interval accepted; a shorter one is answered 422 (the RFC's lower bound)."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.expires_s < self.min_s:
            raise ValueError("expires_s must not be shorter than min_s")
        return self


class SipLimits(Strict):
    """How much may be held at once. What is above is answered 503 with Retry-After, or dropped and counted."""

    calls: int = Field(default=200, gt=0)
    transactions: int = Field(default=4000, gt=0)
    """Of both sides; each lives for 32 s at most after its last message."""
    bindings: int = Field(default=1000, gt=0)
    """Registered contacts of all users."""
    bindings_per_user: int = Field(default=5, gt=0)
    connections: int = Field(default=500, gt=0)
    """TCP and TLS connections; further ones are closed at once."""
    message_bytes: int = Field(default=32_768, ge=2048, le=65_535)
    idle_connection_s: float = Field(default=180.0, gt=0)
    """A stream connection on which nothing came for so long is closed unless a call uses it. RFC 5626 section
    4.4.1: a client that wants to be reached pings at least every 120 s."""
    retry_after_s: int = Field(default=5, gt=0)


class SipConfig(Strict):
    """One endpoint."""

    listen: tuple[SipListen, ...] = (SipListen(),)
    tls: SipTls | None = None
    realm: str = "duologue"
    """Realm of our digest challenges, and the domain of our own addresses of record."""
    registrations: tuple[SipRegistration, ...] = ()
    users: tuple[SipUser, ...] = ()
    """If there are any, INVITE and REGISTER must authenticate as one of them; without them nobody can register and
    every INVITE is taken."""
    trusted: tuple[IPv4Network | IPv6Network, ...] = ()
    """Networks whose INVITEs are not challenged: a provider's, which cannot authenticate to us."""
    digest: tuple[Literal["SHA-256", "MD5"], ...] = Field(default=("MD5",), min_length=1)
    """Hashes that users are challenged with, best first. RFC 8760 has both, but some phones (baresip 1.0)
    give up when a challenge they do not know stands beside one they do."""
    nonce_lifetime_s: int = Field(default=300, gt=0)
    ring_timeout_s: float = Field(default=180.0, gt=0)
    """A call dialled, or ringing here, for so long without an answer is given up (RFC 3261 section 13.3.1.1: three
    minutes is what proxies allow)."""
    session_timers: SipSessionTimers = SipSessionTimers()
    limits: SipLimits = SipLimits()
    media: SipMedia = SipMedia()
    log_numbers: bool = False
    """Whether logs may name callers; otherwise the user part of every URI is a short keyed hash."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.listen:
            raise ValueError("'listen' needs at least one address")
        if self.tls is None and any(listen.transport == "tls" for listen in self.listen):
            raise ValueError("listening with TLS needs 'tls': a certificate and its key")
        names = [user.name for user in self.users]
        if len(names) != len(set(names)):
            raise ValueError("two users have the same name")
        return self
