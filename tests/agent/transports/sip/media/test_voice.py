"""What becomes of each kind of packet, and what is sent in each frame."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from duologue.agent.media.g711 import G711
from duologue.agent.media.opus import OpusDecoder
from duologue.agent.transports.rtp import RtpPacket
from duologue.agent.transports.sip.media.keypad import KeypadReceiver
from duologue.agent.transports.sip.media.negotiation import CODECS, NOISE_TYPE, Agreement, KeypadFormat, Peer
from duologue.agent.transports.sip.media.voice import Voice
from tests.agent.transports.peer import RecordingCall, frames_of, voiced

PCMU = Agreement(Peer(True, True), CODECS["pcmu"], 0, 0, keypad=KeypadFormat(101, 8000), keypad_types=frozenset({101}),
                 noise=True)


@dataclass(frozen=True)
class Sent:
    kind: int
    ticks: int
    payload: bytes
    marker: bool


class Rig:
    """A voice on a virtual clock."""

    def __init__(self, agreement: Agreement = PCMU, call: RecordingCall | None = None) -> None:
        self.call = call or RecordingCall(frames_of(voiced(4)))
        self.call.speaking = True
        self.sent: list[Sent] = []
        self.now = 0.0
        self.frame = 0
        self.number = 0
        self.voice = Voice(self.call, agreement, self._send, lambda: self.now)

    def _send(self, payload_type: int, ticks: int, payload: bytes, *, marker: bool = False) -> None:
        self.sent.append(Sent(payload_type, ticks, payload, marker))

    def receive(self, kind: int, payload: bytes, timestamp: int | None = None) -> None:
        at = self.frame * 160 if timestamp is None else timestamp
        self.voice.take(RtpPacket(kind, self.number, at, 7, payload))
        self.number += 1

    def tick(self, frames: int = 1) -> None:
        for _ in range(frames):
            self.voice.tick(self.frame)
            self.frame += 1
            self.now += 0.02


SPEECH = G711("mu").encode(voiced(0.01)[:160])


def test_every_frame_is_a_packet_of_20_ms() -> None:
    rig = Rig()
    rig.tick(5)
    assert [(each.kind, each.ticks, len(each.payload)) for each in rig.sent] == [
        (0, 160 * number, 160) for number in range(5)]
    assert G711("mu").decode(rig.sent[3].payload).std() > 1000


def test_a_pipeline_at_another_rate_is_resampled() -> None:
    call = RecordingCall([np.full(480, 5000, np.int16)] * 5)
    call.output_rate = 24_000
    rig = Rig(call=call)
    rig.tick(5)
    assert {len(each.payload) for each in rig.sent} == {160}
    assert abs(int(G711("mu").decode(rig.sent[4].payload)[-1]) - 5000) < 200


def test_opus_is_coded_at_the_pipelines_own_rate_with_its_clock() -> None:
    rig = Rig(replace(PCMU, codec=CODECS["opus"], send_type=96, receive_type=96, bitrate_limit=8000, noise=False))
    rig.tick(50)
    assert [each.ticks for each in rig.sent[:3]] == [0, 960, 1920]
    assert sum(len(each.payload) for each in rig.sent[10:]) / 40 < 8000 / 8 / 50 * 1.5  # the limit is heeded
    assert OpusDecoder().decode(rig.sent[20].payload).size == 320


def test_keys_use_up_the_voices_numbers_and_are_told_once() -> None:
    rig = Rig()
    rig.receive(0, SPEECH)
    start = rig.frame * 160
    for payload in (b"\x05\x0a\x00\xa0", b"\x05\x0a\x01\x40", b"\x05\x8a\x01\xe0", b"\x05\x8a\x01\xe0"):
        rig.tick()
        rig.receive(101, payload, start)
    rig.tick()
    rig.receive(0, SPEECH)
    assert rig.call.keys == ["5"]
    assert rig.call.heard.size == rig.frame * 320 + 320  # time went on, and no packet was waited for as lost


def test_keys_are_sent_in_place_of_voice_and_the_reply_waits() -> None:
    rig = Rig()
    rig.tick(2)
    rig.voice.press("8")
    rig.tick(10)
    kinds = [each.kind for each in rig.sent]
    assert kinds == [0] * 2 + [101] * 7 + [0] * 3
    assert {each.ticks for each in rig.sent[2:9]} == {2 * 160}
    assert rig.sent[2].marker
    assert len(rig.call.pulled) == 5
    receiver = KeypadReceiver()
    assert "".join(receiver.take(each.ticks, each.payload) for each in rig.sent[2:9]) == "8"


def test_keys_that_the_other_side_does_not_take_are_refused() -> None:
    with pytest.raises(ValueError, match="takes no keys"):
        Rig(replace(PCMU, keypad=None)).voice.press("1")


def test_comfort_noise_is_no_loss_and_no_voice() -> None:
    rig = Rig()
    for _ in range(5):
        rig.receive(0, SPEECH)
        rig.tick()
    before = rig.call.heard.size
    rig.receive(NOISE_TYPE, b"\x40")  # 64 dB below full scale
    noise = rig.call.heard[before + 64:]
    assert noise.size == 320 - 64
    assert 0 < np.abs(noise).max() < 100


def test_on_hold_the_reply_waits_and_music_is_not_the_caller() -> None:
    rig = Rig()
    rig.receive(0, SPEECH)
    rig.tick(3)
    pulled, heard = len(rig.call.pulled), rig.call.heard.size
    rig.voice.apply(replace(PCMU, peer=Peer(False, True)))
    for _ in range(50):
        rig.receive(0, SPEECH)
        rig.tick()
    assert len(rig.call.pulled) == pulled
    assert len(rig.sent) == pulled
    silence = rig.call.heard[heard:]
    assert silence.size > 40 * 320  # the caller's time goes on, a little behind
    assert not np.any(silence[12 * 320:])
    rig.voice.apply(PCMU)
    rig.tick()
    assert rig.sent[-1].ticks == 53 * 160  # in step with the time that passed


def test_another_codec_within_a_call_is_taken_up() -> None:
    rig = Rig()
    rig.receive(0, SPEECH)
    rig.voice.apply(replace(PCMU, codec=CODECS["pcma"], send_type=8, receive_type=8))
    assert rig.voice.accepted == {8, 101, NOISE_TYPE}
    rig.receive(8, G711("a").encode(voiced(0.01)[:160]))
    rig.tick()
    assert rig.sent[-1].kind == 8
    assert rig.call.heard.size >= 640
