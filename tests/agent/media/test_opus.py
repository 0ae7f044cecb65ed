"""Opus through libopus, alone and behind the receive path."""

from __future__ import annotations

import contextlib
import ctypes.util
import importlib.util
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.agent.media import opus
from duologue.agent.media.codec import MalformedPacketError
from duologue.agent.media.opus import (
    OpusDecoder,
    OpusEncoder,
    OpusError,
    OpusUnavailableError,
    frame_samples,
    has_fec,
    packet_samples,
)
from duologue.agent.media.receive import ReceivePath
from duologue.engine import Pcm
from tests.agent.media import steady
from tests.agent.media.network import Sent, impair, play
from tests.harness.microphone import speak
from tests.harness.sound import resample, to_pcm

RATE = 16_000
FRAME = 320


def speech(text: str = "How many miles are there between London and New York?") -> Pcm:
    pcm = to_pcm(resample(speak(text), 48_000, RATE))
    return pcm[:pcm.size // FRAME * FRAME]


def encode(pcm: Pcm, bitrate: int = 32_000, fec: bool = True, expected_loss_percent: int = 0) -> list[bytes]:
    encoder = OpusEncoder(RATE, bitrate, fec=fec, expected_loss_percent=expected_loss_percent)
    return [encoder.encode(frame) for frame in pcm.reshape(-1, FRAME)]


def likeness(a: Pcm, b: Pcm) -> float:
    """Normalised correlation at zero lag."""
    x, y = a.astype(float), b.astype(float)
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


def delay(source: Pcm, decoded: Pcm) -> int:
    """Samples by which the codec delays: the lag of the highest correlation."""
    return max(range(400), key=lambda lag: likeness(source[:source.size - lag], decoded[lag:source.size]))


def test_speech_survives_encoding_and_decoding() -> None:
    pcm = speech()
    decoder = OpusDecoder(RATE)
    decoded = np.concatenate([decoder.decode(packet) for packet in encode(pcm)])
    assert decoded.dtype == np.int16
    assert decoded.size == pcm.size
    lag = delay(pcm, decoded)
    assert likeness(pcm[:pcm.size - lag], decoded[lag:]) > 0.9


@pytest.mark.parametrize("rate", [8000, 16_000, 24_000, 48_000])
def test_a_packet_lasts_twenty_milliseconds_at_any_rate(rate: int) -> None:
    packet = OpusEncoder(24_000).encode(np.zeros(480, np.int16))
    assert packet_samples(packet, rate) == frame_samples(packet, rate) == rate // 50
    assert OpusDecoder(rate).decode(packet).shape == (rate // 50,)


def test_stereo_is_mixed_to_mono() -> None:
    # Encoded by FFmpeg: a tone on the left, nothing on the right.
    tone = (8000 * np.sin(2 * np.pi * 440 / 48_000 * np.arange(48_000))).astype(np.int16)
    both = np.stack((tone, np.zeros_like(tone)), axis=1)
    context = av.AudioCodecContext.create("libopus", "w")
    context.sample_rate, context.layout, context.format = 48_000, "stereo", "s16"
    packets: list[bytes] = []
    for start in range(0, both.shape[0], 960):
        frame = av.AudioFrame.from_ndarray(both[start:start + 960].reshape(1, -1), "s16", "stereo")
        frame.sample_rate, frame.pts = 48_000, start
        packets += [bytes(packet) for packet in context.encode(frame)]
    decoder = OpusDecoder(RATE)
    mono = np.concatenate([decoder.decode(packet) for packet in packets]).astype(float)
    assert np.sqrt(2 * np.square(mono[4000:12_000]).mean()) == pytest.approx(4000, rel=0.1)


def test_an_encoder_told_of_loss_adds_a_copy_of_the_frame_before() -> None:
    pcm = speech()
    with_copies = encode(pcm, bitrate=24_000, expected_loss_percent=20)
    assert sum(map(has_fec, with_copies)) > len(with_copies) // 3
    assert not any(map(has_fec, encode(pcm, bitrate=24_000, fec=False, expected_loss_percent=20)))
    told = OpusEncoder(RATE, bitrate=24_000, expected_loss_percent=0)
    told.expect_loss(20)
    assert any(has_fec(told.encode(frame)) for frame in pcm.reshape(-1, FRAME))


def test_a_frame_restored_from_the_next_packet_is_closer_than_one_made_up() -> None:
    pcm = speech()
    packets = encode(pcm, bitrate=24_000, expected_loss_percent=20)
    whole = OpusDecoder(RATE)
    intact = [whole.decode(packet) for packet in packets]
    restored: list[float] = []
    made_up: list[float] = []
    for lost in range(10, len(packets) - 1):
        loud = float(np.abs(intact[lost].astype(float)).mean()) > 300
        if not loud or not has_fec(packets[lost + 1]):
            continue
        for likenesses, fec in ((restored, True), (made_up, False)):
            decoder = OpusDecoder(RATE)
            for packet in packets[:lost]:
                decoder.decode(packet)
            frame = decoder.decode_fec(packets[lost + 1], FRAME) if fec else decoder.conceal(FRAME)
            likenesses.append(likeness(frame, intact[lost]))
    assert len(restored) > 20
    assert np.median(restored) > 0.95
    assert 1 - np.median(restored) < (1 - np.median(made_up)) / 4


@pytest.mark.parametrize("lost", [FRAME, FRAME + 13])
def test_what_is_restored_lies_just_before_the_next_packet(lost: int) -> None:
    packets = encode(speech(), bitrate=24_000, expected_loss_percent=20)
    decoder = OpusDecoder(RATE)
    intact = [decoder.decode(packet) for packet in packets]
    loudest = max((at for at in range(10, len(packets) - 1) if has_fec(packets[at + 1])),
                  key=lambda at: float(np.abs(intact[at].astype(float)).mean()))
    decoder.reset()
    for packet in packets[:loudest + 1 - -(-lost // FRAME)]:
        decoder.decode(packet)
    assert decoder.fec_samples(packets[loudest + 1]) == FRAME
    assert likeness(decoder.decode_fec(packets[loudest + 1], lost)[-FRAME:], intact[loudest]) > 0.9


@given(st.lists(st.integers(1, 6000), min_size=1, max_size=4))
@steady
def test_concealment_makes_exactly_what_is_asked_for(counts: list[int]) -> None:
    decoder = OpusDecoder(RATE)
    for packet in encode(speech("Hello.")[:10 * FRAME]):
        decoder.decode(packet)
    for count in counts:
        assert decoder.conceal(count).shape == (count,)
        assert decoder.decode_fec(encode(np.zeros(FRAME, np.int16))[0], count).shape == (count,)
    assert decoder.conceal(0).shape == (0,)


@given(st.binary(max_size=200))
@steady
def test_any_bytes_are_decoded_or_refused_and_the_decoder_goes_on(junk: bytes) -> None:
    decoder = OpusDecoder(RATE)
    for work in (decoder.samples, decoder.decode, lambda packet: decoder.decode_fec(packet, FRAME)):
        with contextlib.suppress(MalformedPacketError):
            work(junk)
        assert decoder.fec_samples(junk) >= 0
    assert decoder.decode(encode(np.zeros(FRAME, np.int16))[0]).shape == (FRAME,)


def test_a_reset_decoder_decodes_like_a_new_one() -> None:
    packets = encode(speech("Hello there."))
    used, new = OpusDecoder(RATE), OpusDecoder(RATE)
    for packet in packets:
        used.decode(packet)
    used.reset()
    for packet in packets:
        assert np.array_equal(used.decode(packet), new.decode(packet))


def test_wrong_rates_and_frames_are_refused() -> None:
    with pytest.raises(OpusError, match="44100"):
        OpusDecoder(44_100)
    with pytest.raises(OpusError, match="44100"):
        OpusEncoder(44_100)
    with pytest.raises(OpusError, match="320 int16 samples"):
        OpusEncoder(RATE).encode(np.zeros(160, np.int16))
    with pytest.raises(OpusError, match="101"):
        OpusEncoder(RATE).expect_loss(101)


def test_without_any_libopus_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch,
                                                            tmp_path: Path) -> None:
    broken = tmp_path / "av" / "__init__.py"
    (tmp_path / "av.libs").mkdir()
    (tmp_path / "av.libs" / "libopus-0.so").write_bytes(b"not a library")
    spec = importlib.util.spec_from_file_location("av", broken)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    opus._library.cache_clear()
    try:
        with pytest.raises(OpusUnavailableError, match="libopus0"):
            OpusDecoder(RATE)
    finally:
        opus._library.cache_clear()


def test_without_pyav_the_systems_libopus_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    bundled = opus._candidates()[0]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: bundled if name == "opus" else None)
    opus._library.cache_clear()
    try:
        assert OpusDecoder(RATE).conceal(FRAME).shape == (FRAME,)
    finally:
        opus._library.cache_clear()


def test_lossy_speech_keeps_its_length_its_place_and_its_energy() -> None:
    pcm = speech()
    packets = encode(pcm, bitrate=24_000, expected_loss_percent=20)
    sent = [Sent(65_530 + index & 0xFFFF, (2**32 - 5000 + index * 960) % 2**32, packet, 20.0 * (index + 1))
            for index, packet in enumerate(packets)]
    whole = OpusDecoder(RATE)
    intact = np.concatenate([whole.decode(packet) for packet in packets])
    lossy = impair(sent[1:-1], loss=0.1, burst=2, jitter_ms=60, seed=3)
    arrivals = sorted([*impair(sent[:1]), *lossy, *impair(sent[-1:])], key=lambda arrival: arrival.at_ms)
    assert len(arrivals) < len(sent) - 5
    heard = play(ReceivePath(OpusDecoder(RATE)), arrivals, sent[-1].at_ms + 60)
    assert heard.pcm.size == pcm.size
    assert 0 < heard.concealed < (len(sent) - len(arrivals)) * FRAME
    assert likeness(heard.pcm, intact) > 0.9
    energy = float(np.square(heard.pcm.astype(float)).sum() / np.square(intact.astype(float)).sum())
    assert 0.8 < energy < 1.2
