"""Stock aiortc as an echo: ``python -m tests.harness.echo_server --host H --port P``.

It answers as the product does (``POST /v1/realtime/calls``) and serves a page with a Call button, so that the
harness can be tested, and the product's media path measured, against something that is not the product.
"""

from __future__ import annotations

import argparse
import json

from aiohttp import web
from aiortc import RTCConfiguration, RTCDataChannel, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamTrack

PAGE = """<!doctype html>
<html lang="en"><title>Echo</title><button id="call">Call</button><button id="end">Hang up</button>
<audio id="voice" autoplay></audio>
<script type="module">
let peer = null;
document.querySelector("#end").onclick = () => peer?.close();
document.querySelector("#call").onclick = async () => {
  // Raw audio: what measures the path must not be changed by the browser's own processing.
  const stream = await navigator.mediaDevices.getUserMedia({
    audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false } });
  peer = new RTCPeerConnection();
  peer.createDataChannel("oai-events");
  peer.ontrack = (event) => { document.querySelector("#voice").srcObject = new MediaStream([event.track]); };
  peer.addTrack(stream.getAudioTracks()[0], stream);
  const gathered = new Promise((done) => {
    peer.onicegatheringstatechange = () => peer.iceGatheringState === "complete" && done();
  });
  await peer.setLocalDescription(await peer.createOffer());
  await gathered;
  const response = await fetch("/v1/realtime/calls", {
    method: "POST", headers: { "Content-Type": "application/sdp" }, body: peer.localDescription.sdp });
  await peer.setRemoteDescription({ type: "answer", sdp: await response.text() });
};
</script></html>
"""


async def _page(_: web.Request) -> web.Response:
    return web.Response(text=PAGE, content_type="text/html")


async def _health(_: web.Request) -> web.Response:
    return web.Response(text="ok")


async def _call(request: web.Request) -> web.Response:
    peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    request.app[PEERS].add(peer)

    @peer.on("track")
    def on_track(track: MediaStreamTrack) -> None:
        peer.addTrack(track)

    @peer.on("datachannel")
    def on_channel(channel: RTCDataChannel) -> None:
        channel.send(json.dumps({"type": "session.created"}))
        channel.on("message", channel.send)

    await peer.setRemoteDescription(RTCSessionDescription(await request.text(), "offer"))
    await peer.setLocalDescription(await peer.createAnswer())
    return web.Response(text=peer.localDescription.sdp, status=201, content_type="application/sdp",
                        headers={"Location": "/v1/realtime/calls/echo"})


async def _close(app: web.Application) -> None:
    for peer in app[PEERS]:
        await peer.close()


PEERS = web.AppKey("peers", set[RTCPeerConnection])


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    app = web.Application()
    app[PEERS] = set()
    app.add_routes([web.get("/", _page), web.get("/healthz", _health), web.post("/v1/realtime/calls", _call)])
    app.on_shutdown.append(_close)
    web.run_app(app, host=arguments.host, port=arguments.port, print=None)


if __name__ == "__main__":
    main()
