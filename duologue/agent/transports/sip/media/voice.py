"""What is in a telephone call's packets: the caller's voice and keys in, the reply's voice and keys out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from duologue.agent.media.codec import Decoder
from duologue.agent.media.g711 import G711
from duologue.agent.media.g722 import G722
from duologue.agent.media.opus import OpusDecoder, OpusEncoder
from duologue.agent.media.resample import Resampler
from duologue.agent.media.telephone import NoisePayload, TelephoneDecoder
from duologue.agent.transports.base import FRAME_MS, CallMedia
from duologue.agent.transports.rtp import RtpPacket
from duologue.agent.transports.sip.media.keypad import KeypadReceiver, KeypadSender
from duologue.agent.transports.sip.media.negotiation import NOISE_TYPE, Agreement, Codec
from duologue.agent.transports.voice_intake import VoiceIntake
from duologue.engine import INPUT_RATE, Pcm

_OPUS_RATES = (8000, 12_000, 16_000, 24_000, 48_000)  # RFC 6716 section 2: what its coder takes
_OPUS_BITRATE = 32_000
_OPUS_COMPLEXITY = 3  # as for browsers: webrtc_sender.py says why


class _Coder(Protocol):
    """Codes 20 ms."""

    def encode(self, pcm: Pcm) -> bytes:
        """Return the payload."""


class Send(Protocol):
    """Sends one packet: ``RtpSession.send``."""

    def __call__(self, payload_type: int, ticks: int, payload: bytes, *, marker: bool = False) -> None:
        """Send ``payload`` with the timestamp ``ticks`` after the stream's beginning."""


class Voice:
    """One call's media between its packets and its ``CallMedia``.

    While the other side holds us, what it sends is not the caller (music, as a rule) and nobody hears us: the caller's
    time goes on in silence, and a reply waits where it is, so that the playhead stays the truth.
    """

    def __init__(self, call: CallMedia, agreement: Agreement, send: Send, now_s: Callable[[], float]) -> None:
        self.keys_came = False
        """Whether the caller's keys come as RTP events."""
        self._call = call
        self._send = send
        self._now_s = now_s
        self._received = KeypadReceiver()
        self._agreement = agreement
        self._set_up(agreement)

    def _set_up(self, agreement: Agreement) -> None:
        rate = self._call.output_rate
        self._intake = VoiceIntake(self._call, _decoder(agreement.codec), self._now_s)
        self._opus: OpusEncoder | None = None
        if agreement.codec.name == "opus":
            inside = rate if rate in _OPUS_RATES else INPUT_RATE
            bitrate = min(_OPUS_BITRATE, agreement.bitrate_limit or _OPUS_BITRATE)
            self._opus = OpusEncoder(inside, bitrate=bitrate, complexity=_OPUS_COMPLEXITY)
            self._coder: _Coder = self._opus
        else:
            codec = _waveform(agreement.codec)
            inside, self._coder = codec.rate, codec
        self._resampler = Resampler(rate, inside)
        self._keypad = KeypadSender(agreement.keypad.clock) if agreement.keypad is not None else None

    def apply(self, agreement: Agreement) -> None:
        """Go by this agreement from now on."""
        before, self._agreement = self._agreement, agreement
        if (agreement.codec, agreement.bitrate_limit, agreement.keypad) != (
                before.codec, before.bitrate_limit, before.keypad):
            self._set_up(agreement)

    @property
    def accepted(self) -> frozenset[int]:
        """Payload types that may come."""
        agreement = self._agreement
        noise = {NOISE_TYPE} if agreement.noise else set()
        return agreement.keypad_types | {agreement.receive_type} | noise

    def take(self, packet: RtpPacket) -> None:
        """Take one of the caller's packets."""
        agreement = self._agreement
        if packet.payload_type in agreement.keypad_types:
            self.keys_came = True
            key = self._received.take(packet.timestamp, packet.payload)
            if key:
                self._call.dtmf(key)
            packet = packet._replace(payload=b"")  # it uses up a sequence number of the voice's
        elif agreement.noise and packet.payload_type == NOISE_TYPE:
            packet = packet._replace(payload=NoisePayload(packet.payload))
        if agreement.peer.hears:
            self._intake.take(packet)

    def tick(self, frame: int) -> None:
        """Let 20 ms pass: give up what has been waited for, and send ``frame`` of the stream."""
        self._intake.tick()
        agreement = self._agreement
        if not agreement.peer.hears:
            return
        step = agreement.codec.clock * FRAME_MS // 1000
        event = self._keypad.next(frame) if self._keypad is not None else None
        if event is not None and agreement.keypad is not None:
            self._send(agreement.keypad.payload_type, event.frame * step, event.payload, marker=event.marker)
            return
        pcm = self._resampler.process(self._call.pull())
        self._send(agreement.send_type, frame * step, self._coder.encode(pcm))

    def press(self, keys: str) -> None:
        """Send keys. Raises ``ValueError``, saying why they cannot go."""
        if self._keypad is None:
            raise ValueError("the other side takes no keys")
        self._keypad.press(keys)

    def expect_loss(self, percent: int) -> None:
        """Protect the reply against so much loss, where its codec can."""
        if self._opus is not None:
            self._opus.expect_loss(percent)


def _waveform(codec: Codec) -> G711 | G722:
    return G722() if codec.name == "g722" else G711("a" if codec.name == "pcma" else "mu")


def _decoder(codec: Codec) -> Decoder:
    return OpusDecoder(INPUT_RATE) if codec.name == "opus" else TelephoneDecoder(_waveform(codec))
