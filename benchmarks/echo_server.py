"""The product's own WebRTC transport with an echo where the call would be: ``python -m benchmarks.echo_server``.

The same page and signalling as ``tests.harness.echo_server``, which is stock aiortc.
"""

from __future__ import annotations

import argparse
from collections import deque

import numpy as np
from aiohttp import web

from duologue.agent.transports.base import FRAME_MS
from duologue.agent.transports.webrtc import WebRtcTransport
from duologue.engine import INPUT_RATE, Pcm
from tests.harness.echo_server import PAGE

FRAME = INPUT_RATE * FRAME_MS // 1000
MAX_HELD = 3 * FRAME
"""Samples an echo may hold back; older ones are dropped, or clock drift would grow into delay."""


class EchoMedia:
    """Gives back what it is fed: a ``CallMedia`` without a model."""

    def __init__(self) -> None:
        self._held: deque[Pcm] = deque()
        self._samples = 0
        self._started = False

    @property
    def output_rate(self) -> int:
        """Samples go out as they came in."""
        return INPUT_RATE

    def feed(self, pcm: Pcm, concealed: int = 0) -> None:
        """Hold the caller's samples until they are pulled."""
        self._held.append(pcm)
        self._samples += pcm.size
        while self._samples > MAX_HELD:
            self._samples -= self._held.popleft().size

    def pull(self) -> Pcm:
        """The oldest 20 ms, silence while there are none."""
        if self._samples < FRAME:
            return np.zeros(FRAME, np.int16)
        joined = np.concatenate(self._held)
        self._held = deque([joined[FRAME:]])
        self._samples -= FRAME
        return joined[:FRAME]

    def receive(self, message: str) -> None:
        """An echo takes no messages."""

    def connected(self) -> None:
        """Nothing begins."""

    def gone(self, reason: str) -> None:
        """Nothing is left behind."""


CALLS = web.AppKey("calls", set[WebRtcTransport])


async def _call(request: web.Request) -> web.Response:
    transport = WebRtcTransport("echo")
    request.app[CALLS].add(transport)
    answer = await transport.accept(await request.text(), EchoMedia())
    return web.Response(text=answer, status=201, content_type="application/sdp",
                        headers={"Location": "/v1/realtime/calls/echo"})


async def _page(_: web.Request) -> web.Response:
    return web.Response(text=PAGE, content_type="text/html")


async def _health(_: web.Request) -> web.Response:
    return web.Response(text="ok")


async def _close(app: web.Application) -> None:
    for transport in app[CALLS]:
        await transport.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    app = web.Application()
    app[CALLS] = set()
    app.add_routes([web.get("/", _page), web.get("/healthz", _health), web.post("/v1/realtime/calls", _call)])
    app.on_shutdown.append(_close)
    web.run_app(app, host=arguments.host, port=arguments.port, print=None)


if __name__ == "__main__":
    main()
