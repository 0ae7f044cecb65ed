"""The web server: its routes, and its life from bind to drain."""

from __future__ import annotations

import asyncio
import errno
import signal
from collections.abc import Callable
from pathlib import Path

from aiohttp import web

import duologue
from duologue.agent.http import calls, pages, realtime, speech, status
from duologue.agent.http.errors import json_errors
from duologue.agent.http.host import DRAIN, HOST, CallHost, Drain
from duologue.agent.logs import EventLog

WEB = Path(duologue.__file__).parent / "web"
"""Where the page's files lie in the package."""

_CLOSE_TIMEOUT_S = 5.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_log = EventLog(__name__)


class CannotListenError(OSError):
    """The address cannot be listened on; its text says why and what to change."""


def build_app(host: CallHost, *, drain: Drain | None = None, web_folder: Path = WEB) -> web.Application:
    """Return the application: signalling, health, metrics, and the page from ``web_folder``."""
    app = web.Application(client_max_size=calls.BODY_LIMIT, middlewares=[json_errors])
    app[HOST] = host
    app[DRAIN] = drain or Drain()
    calls.add_routes(app)
    realtime.add_routes(app)
    speech.add_routes(app)
    status.add_routes(app)
    pages.add_routes(app, web_folder)
    return app


async def serve(host: CallHost, *, bind: str, port: int, drain_timeout_s: float,
                announce: Callable[[str], None] = print, web_folder: Path = WEB) -> int:
    """Serve until SIGTERM or SIGINT, drain, close ``host`` and return the exit status.

    ``announce`` gets one line with the URL once the port is open (``port`` 0 takes a free one). The first
    signal stops new calls and waits for live ones, at most ``drain_timeout_s`` seconds: status 0. A second
    one ends them at once: status 1. Raises ``CannotListenError``.
    """
    drain = Drain()
    runner = web.AppRunner(build_app(host, drain=drain, web_folder=web_folder), access_log=None,
                           shutdown_timeout=_CLOSE_TIMEOUT_S)
    await runner.setup()
    loop = asyncio.get_running_loop()
    stop, force = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        if stop.is_set():
            force.set()
        drain.draining = True
        stop.set()

    try:
        await _listen(runner, bind, port)
        for name in _SIGNALS:
            loop.add_signal_handler(name, on_signal)
        url = _url(bind, runner.addresses[0][1])
        _log.info("serving", url=url)
        announce(f"Duologue is at {url}")
        await stop.wait()
        _log.info("draining", timeout_s=drain_timeout_s)
        outcome = await _drained(host, force, drain_timeout_s)
        _log.info("stopping", outcome=outcome)
        return 1 if outcome == "forced" else 0
    finally:
        for name in _SIGNALS:
            loop.remove_signal_handler(name)
        await _close(host)
        await runner.cleanup()


async def _listen(runner: web.AppRunner, bind: str, port: int) -> None:
    try:
        await web.TCPSite(runner, bind, port).start()
    except OSError as fault:
        if fault.errno == errno.EADDRINUSE:
            text = f"port {port} on {bind} is taken: stop the other program, or choose another port with --port"
        else:
            text = f"cannot listen on {bind} port {port}: {fault.strerror or fault}"
        raise CannotListenError(text) from fault


async def _drained(host: CallHost, force: asyncio.Event, timeout_s: float) -> str:
    """Wait for live calls to end: ``drained``, ``timed out`` or ``forced``."""
    draining = asyncio.ensure_future(host.drain())
    forced = asyncio.ensure_future(force.wait())
    try:
        done, _ = await asyncio.wait({draining, forced}, timeout=timeout_s,
                                     return_when=asyncio.FIRST_COMPLETED)
        return "forced" if forced in done else "drained" if draining in done else "timed out"
    finally:
        for task in (draining, forced):
            task.cancel()
        await asyncio.gather(draining, forced, return_exceptions=True)


async def _close(host: CallHost) -> None:
    try:
        async with asyncio.timeout(_CLOSE_TIMEOUT_S):
            await host.close()
    except Exception as fault:
        _log.error("close_failed", fault=fault)


def _url(bind: str, port: int) -> str:
    """Return the URL a person opens; a wildcard address is said as localhost, where microphones work."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(bind, bind)
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
