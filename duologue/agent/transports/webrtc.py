"""A browser's call over WebRTC (aiortc): one peer connection, one Opus stream each way, one data channel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aioice.ice import get_host_addresses
from aiortc import (
    RTCConfiguration,
    RTCDataChannel,
    RTCPeerConnection,
    RTCRtpSender,
    RTCSessionDescription,
)

from duologue.agent.logs import EventLog
from duologue.agent.media.opus import OpusDecoder, OpusError
from duologue.agent.transports.base import CallMedia
from duologue.agent.transports.control_channel import LABEL, ControlChannel
from duologue.agent.transports.rtp import RtpPacket
from duologue.agent.transports.sdp import BadOffer, finish_answer, read_offer
from duologue.agent.transports.voice_intake import VoiceIntake
from duologue.agent.transports.webrtc_receiver import PacketReceiver
from duologue.agent.transports.webrtc_receiver import install as install_receiver
from duologue.agent.transports.webrtc_sender import ReplySender
from duologue.agent.transports.webrtc_sender import install as install_sender
from duologue.engine import INPUT_RATE, Pcm
from duologue.metrics import DROPS

CONNECT_TIMEOUT_S = 15.0
"""A caller that is not connected so long after the answer is given up, as Chrome gives up its checks."""

CHANNEL_WAIT_S = 3.0
"""The call begins without its control channel so long after media is up."""

LOST_AFTER_S = 10.0
"""A peer from which nothing came for so long is lost. Browsers send 50 packets a second, muted too, and even
without a track RTCP at least every 7.5 s; they themselves call 5 s "disconnected". ICE consent (RFC 7675) as
aioice checks it takes 30 s."""

_WATCH_S = 1.0
_CLOSE_TIMEOUT_S = 5.0

_log = EventLog(__name__)


class NoAddress(RuntimeError):  # noqa: N818 - the name of the condition
    """The machine has no network address that a browser could be answered with."""


def check_media() -> str:
    """Return what keeps WebRTC from working on this machine; empty if nothing does."""
    try:
        OpusDecoder(INPUT_RATE)
    except OpusError as fault:
        return str(fault)
    if not get_host_addresses(use_ipv4=True, use_ipv6=True):
        return "no network interface besides loopback: browsers cannot be answered with an address"
    return ""


class WebRtcTransport:
    """One caller. ``accept`` makes the answer; ``connected``, ``feed`` and ``gone`` of the call follow.

    After ``accept`` has returned, ``gone`` is called exactly once, whoever ends the call, with the reason
    ``hung up``, ``lost``, ``never connected``, ``media fault`` or ``closed`` (by ``close``).
    """

    def __init__(self, call_id: str = "") -> None:
        """``call_id`` names the call in logs."""
        self._log = _log.of(call_id)
        self._pc: RTCPeerConnection | None = None
        self._call: CallMedia | None = None
        self._intake: VoiceIntake | None = None
        self._sender: ReplySender | None = None
        self._control = ControlChannel(expected=True)
        self._receiver: PacketReceiver | None = None
        self._wants_channel = False
        self._accepted = False
        self._media_up = False
        self._begun = False
        self._ended = False
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._heard = 0
        self._heard_at = 0.0
        self._watched_at = 0.0
        self._teardown: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """``webrtc``."""
        return "webrtc"

    async def accept(self, offer: str, call: CallMedia) -> str:
        """Answer a browser's SDP offer for ``call`` with all candidates in the answer.

        Raises ``BadOffer``, ``NoAddress``, or ``RuntimeError`` if used twice or closed meanwhile; then
        nothing is left behind and ``gone`` is not called.
        """
        if self._pc is not None or self._ended:
            raise RuntimeError("a transport serves one call: make a new one")
        parsed = read_offer(offer)
        self._call = call
        self._wants_channel = parsed.data_channel
        self._control = ControlChannel(expected=parsed.data_channel)
        self._intake = VoiceIntake(call, OpusDecoder(INPUT_RATE), asyncio.get_running_loop().time)
        pc = self._pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        try:
            for kind in parsed.media:
                if kind == "voice":
                    self._add_voice(pc, call)
                else:
                    pc.addTransceiver(kind, direction="inactive")
            pc.on("connectionstatechange", self._on_state)
            pc.on("datachannel", self._on_channel)
            try:
                await pc.setRemoteDescription(RTCSessionDescription(parsed.sdp, "offer"))
                await pc.setLocalDescription(await pc.createAnswer())
            except Exception as fault:
                self._log.info("offer_refused", why=str(fault))
                raise BadOffer("malformed_sdp", f"the SDP offer cannot be answered: {fault}") from fault
            answer = finish_answer(pc.localDescription.sdp)
            if "a=candidate:" not in answer:
                raise NoAddress(check_media() or "no network address was gathered")
            if self._ended:
                raise RuntimeError("the call was ended before it was answered")
        except BaseException:
            self._ended = True
            await self._free()
            raise
        self._accepted = True
        self._after("connect", CONNECT_TIMEOUT_S, lambda: self._end("never connected"))
        return answer

    def send(self, message: str) -> None:
        """Send JSON text on the data channel; kept until that opens, dropped and counted if it cannot go."""
        if not self._ended:
            self._control.send(message)

    async def close(self) -> None:
        """End the call from our side and wait until everything is freed; idempotent."""
        self._end("closed")
        if self._teardown is not None:
            await asyncio.shield(self._teardown)

    # --- setting up ----------------------------------------------------------------------------------------

    def _add_voice(self, pc: RTCPeerConnection, call: CallMedia) -> None:
        transceiver = pc.addTransceiver("audio", direction="sendrecv")
        codecs = RTCRtpSender.getCapabilities("audio").codecs
        opus = [codec for codec in codecs if codec.mimeType == "audio/opus"]
        transceiver.setCodecPreferences(opus)
        dtls = transceiver.receiver.transport
        self._sender = ReplySender(dtls, self._tick, call.output_rate, self._fault)
        install_sender(self._sender, transceiver)
        self._receiver = PacketReceiver(dtls, self._packet, self._fault)
        install_receiver(self._receiver, transceiver)

    def _on_state(self) -> None:
        state = self._pc.connectionState if self._pc is not None else "closed"
        if state == "connected" and not self._media_up:
            self._media_up = True
            self._cancel("connect")
            self._heard_at = self._watched_at = asyncio.get_running_loop().time()
            self._watch()
            if self._wants_channel and not self._control.is_open:
                self._after("channel", CHANNEL_WAIT_S, self._begin)
            else:
                self._begin()
        elif state == "failed":
            self._end("lost" if self._media_up else "never connected")
        elif state == "closed":
            self._end("hung up")

    def _on_channel(self, channel: RTCDataChannel) -> None:
        if channel.label != LABEL or self._control.is_open or self._ended:
            self._log.info("channel_ignored", label=channel.label[:64])
            return
        channel.on("message", self._on_message)
        channel.on("close", lambda: self._end("hung up"))
        self._control.attach(channel)
        if self._media_up:
            self._begin()

    def _begin(self) -> None:
        if self._begun or self._ended or self._call is None:
            return
        self._begun = True
        self._cancel("channel")
        self._log.info("connected", channel=self._control.is_open)
        try:
            self._call.connected()
        except Exception as fault:
            self._fault(fault)

    # --- while it lasts ------------------------------------------------------------------------------------

    def _packet(self, packet: RtpPacket) -> None:
        if self._begun and not self._ended and self._intake is not None:
            self._intake.take(packet)

    def _tick(self) -> Pcm:
        """One clock for both ways: each 20 ms frame that goes out also lets time pass for what comes in."""
        assert self._call is not None
        assert self._intake is not None
        if self._begun:
            self._intake.tick()
        return self._call.pull()

    def _on_message(self, message: str | bytes) -> None:
        if self._ended or self._call is None:
            return
        if not isinstance(message, str):
            DROPS.labels(what="message", reason="binary").inc()
            return
        try:
            self._call.receive(message)
        except Exception as fault:
            self._fault(fault)

    def _watch(self) -> None:
        """Notice a peer that went without a word."""
        now = asyncio.get_running_loop().time()
        heard = self._receiver.heard if self._receiver is not None else 0
        held_up = now - self._watched_at > 2 * _WATCH_S  # we were, and have not read what came meanwhile
        self._watched_at = now
        if heard != self._heard or held_up:
            self._heard, self._heard_at = heard, now
        elif now - self._heard_at >= LOST_AFTER_S:
            self._end("lost")
            return
        self._after("watch", _WATCH_S, self._watch)

    # --- the end -------------------------------------------------------------------------------------------

    def _fault(self, fault: Exception) -> None:
        """Something of this call failed: it ends, the others go on."""
        if not self._ended:
            self._log.error("media_fault", fault=fault)
        self._end("media fault")

    def _end(self, reason: str) -> None:
        if self._ended:
            return
        self._ended = True
        self._stop_media()
        if not self._accepted:
            return
        self._log.info("ended", reason=reason)
        self._teardown = asyncio.ensure_future(self._free())
        if self._call is not None:
            try:
                self._call.gone(reason)
            except Exception as fault:
                self._log.error("gone_failed", fault=fault)

    def _stop_media(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._sender is not None:
            self._sender.silence()

    async def _free(self) -> None:
        self._stop_media()
        if self._pc is None:
            return
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await self._pc.close()
        except Exception as fault:
            self._log.error("close_failed", fault=fault)

    def _after(self, what: str, delay_s: float, then: Callable[[], None]) -> None:
        self._cancel(what)
        self._timers[what] = asyncio.get_running_loop().call_later(delay_s, then)

    def _cancel(self, what: str) -> None:
        timer = self._timers.pop(what, None)
        if timer is not None:
            timer.cancel()
