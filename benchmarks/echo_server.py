"""The product's own WebRTC transport with an echo where the call would be: ``python -m benchmarks.echo_server``.

The same page and signalling as ``tests.harness.echo_server``, which is stock aiortc.
"""

from __future__ import annotations

import argparse

from aiohttp import web

from duologue.agent.transports.webrtc import WebRtcTransport
from tests.harness.echo_media import EchoMedia
from tests.harness.echo_server import PAGE

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
