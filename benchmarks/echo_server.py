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
PATIENCE = 25
"""Pulls after each of which a whole frame was left over before one is dropped: an echo has no speech to spoil,
and what a moment's jitter left behind would otherwise delay it for the rest of the call."""


class EchoMedia:
    """Gives back what it is fed: a ``CallMedia`` without a model."""

    def __init__(self) -> None:
        self._held: deque[Pcm] = deque()
        self._samples = 0
        self._left_over = 0

    @property
    def output_rate(self) -> int:
        """Samples go out as they came in."""
        return INPUT_RATE

    def feed(self, pcm: Pcm, concealed: int = 0) -> None:
        """Hold the caller's samples until they are pulled."""
        self._held.append(pcm)
        self._samples += pcm.size

    def pull(self) -> Pcm:
        """The oldest 20 ms, silence while there are none."""
        if self._samples < FRAME:
            return np.zeros(FRAME, np.int16)
        joined = np.concatenate(self._held)
        frame, rest = joined[:FRAME], joined[FRAME:]
        self._left_over = self._left_over + 1 if rest.size >= FRAME else 0
        if self._left_over >= PATIENCE:
            rest, self._left_over = rest[FRAME:], 0
        self._held = deque([rest])
        self._samples = rest.size
        return frame

    def receive(self, message: str) -> None:
        """An echo takes no messages."""

    def dtmf(self, key: str) -> None:
        """An echo has no keys."""

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
