"""CPU of the media path alone, door by door, WebRTC's beside stock aiortc's: ``python -m benchmarks.media_cost``.

The server echoes and does nothing else; it has one core to itself. The callers are in another process and send
ready packets, so that only the server's work is measured: /proc/PID/task/*/schedstat, every second.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Literal, cast

import aiohttp
import numpy as np
from aiohttp import web
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from av import AudioFrame, AudioResampler

from benchmarks.report import Goal, Table
from benchmarks.telephones import open_echo
from duologue.agent.transports.sip.media.negotiation import CodecName
from duologue.agent.transports.webrtc import WebRtcTransport
from duologue.engine import INPUT_RATE, Pcm
from tests.agent.transports.peer import Peer, encoded
from tests.harness.echo_media import EchoMedia
from tests.harness.microphone import speak
from tests.harness.phones import Phone, caller, packets_of
from tests.harness.sound import RATE, resample, to_pcm

Mode = Literal["webrtc", "stock", "pcmu", "opus"]
MODES: dict[Mode, str] = {"webrtc": "WebRTC", "stock": "WebRTC by stock aiortc", "pcmu": "SIP, PCMU",
                          "opus": "SIP, Opus"}

GOAL_MS = 20.0
"""CPU in milliseconds per second of audio per call that the media path may take."""

_WARM_UP_S = 3
_STORY = ("There was once a lighthouse keeper who lived alone on a small island, far out at sea. Every evening he "
          "climbed two hundred and twelve steps, and lit the lamp. One night, a small boat came out of the fog.")
_SIGNALLING = "/v1/realtime/calls"


# --- the servers ----------------------------------------------------------------------------------------------


class StockEcho(MediaStreamTrack):
    """An echo as aiortc offers it: its track in, resampled to 16 kHz mono, its encoder out."""

    kind = "audio"

    def __init__(self) -> None:
        super().__init__()
        self._media = EchoMedia()
        self._sent = 0
        self._started = 0.0

    async def listen(self, track: MediaStreamTrack) -> None:
        """Feed the echo until the caller's track ends."""
        resampler = AudioResampler(format="s16", layout="mono", rate=INPUT_RATE)
        with suppress(MediaStreamError):
            while True:
                frame = cast(AudioFrame, await track.recv())
                for piece in resampler.resample(frame):
                    self._media.feed(cast(Pcm, piece.to_ndarray()).reshape(-1))

    async def recv(self) -> AudioFrame:
        """Wait for the next 20 ms and return them."""
        now = asyncio.get_running_loop().time()
        self._started = self._started or now
        await asyncio.sleep(self._started + self._sent * 0.02 - now)
        pcm = self._media.pull()
        frame = AudioFrame.from_ndarray(pcm.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = INPUT_RATE
        frame.pts = self._sent * pcm.size
        frame.time_base = Fraction(1, INPUT_RATE)
        self._sent += 1
        return frame


async def _answer_stock(offer: str, kept: deque[object]) -> str:
    peer, echo = RTCPeerConnection(RTCConfiguration(iceServers=[])), StockEcho()
    kept.append(peer)
    peer.addTrack(echo)
    peer.on("track", lambda track: kept.append(asyncio.ensure_future(echo.listen(track))))
    await peer.setRemoteDescription(RTCSessionDescription(offer, "offer"))
    await peer.setLocalDescription(await peer.createAnswer())
    return peer.localDescription.sdp


async def _answer_ours(offer: str, kept: deque[object]) -> str:
    transport = WebRtcTransport()
    kept.append(transport)
    return await transport.accept(offer, EchoMedia())


async def serve(mode: Mode) -> None:
    """Answer calls on one core until the process is ended; prints the port."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if mode in ("pcmu", "opus"):
        print(await open_echo(), flush=True)
        await asyncio.Event().wait()
    kept: deque[object] = deque()  # what must not be collected while it runs

    async def call(request: web.Request) -> web.Response:
        answer = _answer_ours if mode == "webrtc" else _answer_stock
        return web.Response(text=await answer(await request.text(), kept), content_type="application/sdp")

    app = web.Application()
    app.router.add_post(_SIGNALLING, call)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


# --- the callers ----------------------------------------------------------------------------------------------


async def call_all(mode: Mode, port: int, calls: int, seconds: int) -> None:
    """Make ``calls`` calls that talk; prints "talking", then every second the packets that came back in it."""
    speech = to_pcm(resample(speak(_STORY), RATE, INPUT_RATE))
    sound = np.resize(speech, (_WARM_UP_S + seconds + 5) * INPUT_RATE)
    if mode == "pcmu" or mode == "opus":
        got = await _phones(mode, port, calls, sound)
    else:
        got = await _browsers(port, calls, sound)
    print("talking", flush=True)
    before = got()
    for _ in range(_WARM_UP_S + seconds):
        await asyncio.sleep(1)
        now = got()
        print(now - before, flush=True)
        before = now


async def _browsers(port: int, calls: int, sound: Pcm) -> Callable[[], int]:
    packets = encoded(sound)
    peers = [Peer(packets) for _ in range(calls)]
    async with aiohttp.ClientSession() as http:
        for peer in peers:
            url = f"http://127.0.0.1:{port}{_SIGNALLING}"
            async with http.post(url, data=(await peer.offer()).encode()) as response:
                await peer.answered(await response.text())
    for peer in peers:
        await peer.packets(1)
        peer.track.start.set()
        await asyncio.sleep(0.02 / calls)  # callers are not in step with each other
    return lambda: sum(len(peer.got) for peer in peers)


async def _phones(codec: CodecName, port: int, calls: int, sound: Pcm) -> Callable[[], int]:
    agent, payloads = await caller(), packets_of(codec, sound)
    phones = [Phone(codec, payloads) for _ in range(calls)]
    for phone in phones:
        await phone.call(agent, f"sip:echo@127.0.0.1:{port}")
        await asyncio.sleep(0.02 / calls)
    return lambda: sum(len(phone.got) for phone in phones)


# --- the measurement ------------------------------------------------------------------------------------------


def _cpu_s(pid: int) -> float:
    """CPU seconds of all live threads of a process."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


async def _start(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, "-m", "benchmarks.media_cost", *arguments,
                                                stdout=asyncio.subprocess.PIPE)


async def _line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode().strip()
    if not line:
        raise RuntimeError("a process of the benchmark ended early; its error is above")
    return line


async def measure(mode: Mode, calls: int, seconds: int) -> tuple[list[float], list[float]]:
    """CPU ms per second of audio carried, and frames a second per call that came back, for every second.

    CPU is divided by the audio that really went through: a machine with other work to do lets less through.
    """
    server = await _start("--serve", mode)
    callers: asyncio.subprocess.Process | None = None
    try:
        port = await _line(server)
        callers = await _start("--call", mode, port, "--calls", str(calls), "--seconds", str(seconds))
        await _line(callers)
        cost: list[float] = []
        frames: list[float] = []
        cpu, at = _cpu_s(server.pid), time.monotonic()
        for second in range(_WARM_UP_S + seconds):
            came = int(await _line(callers))
            now_cpu, now = _cpu_s(server.pid), time.monotonic()
            if second >= _WARM_UP_S:
                cost.append((now_cpu - cpu) * 1000 / (came * 0.02))
                frames.append(came / calls / (now - at))
            cpu, at = now_cpu, now
        return cost, frames
    finally:
        for process in (callers, server):
            if process is not None and process.returncode is None:
                process.kill()
                await process.wait()


async def compare(modes: Sequence[Mode], calls: int, seconds: int) -> None:
    """Measure one after another and print a table."""
    cost = Table(f"CPU per second of audio per call, {calls} calls on one core, echo")
    back = Table(f"Frames a second that came back, per call, {calls} calls", "frames/s")
    for mode in modes:
        samples, frames = await measure(mode, calls, seconds)
        cost.add(MODES[mode], samples, None if mode == "stock" else Goal("p50", GOAL_MS))
        back.add(MODES[mode], frames)
    cost.print()
    back.print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=15, help="seconds measured of each")
    parser.add_argument("--mode", action="append", choices=list(MODES), help="default: all of them")
    parser.add_argument("--serve", choices=list(MODES), help="be a server (used by the benchmark itself)")
    parser.add_argument("--call", nargs=2, metavar=("MODE", "PORT"),
                        help="be the callers (used by the benchmark itself)")
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve(arguments.serve))
    elif arguments.call:
        mode, port = arguments.call
        asyncio.run(call_all(mode, int(port), arguments.calls, arguments.seconds))
    else:
        asyncio.run(compare(arguments.mode or list(MODES), arguments.calls, arguments.seconds))


if __name__ == "__main__":
    main()
