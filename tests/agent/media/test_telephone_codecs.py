"""G.711 and G.722 against FFmpeg's own, and the telephone's decoder behind the receive path."""

from __future__ import annotations

import numpy as np
import pytest
from av import AudioFrame, CodecContext
from av.audio.codeccontext import AudioCodecContext
from av.packet import Packet
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from duologue.agent.media.codec import MalformedPacketError
from duologue.agent.media.g711 import G711, Law
from duologue.agent.media.g722 import G722
from duologue.agent.media.receive import ReceivePath
from duologue.agent.media.telephone import NoisePayload, TelephoneDecoder
from duologue.engine import Pcm
from tests.agent.media import steady
from tests.agent.transports.peer import voiced

FFMPEG: dict[Law, str] = {"mu": "pcm_mulaw", "a": "pcm_alaw"}
LAWS: tuple[Law, ...] = ("mu", "a")
EVERY_SAMPLE = np.arange(-32_768, 32_768).astype(np.int16)


def context(name: str, mode: str, rate: int) -> AudioCodecContext:
    made = CodecContext.create(name, "r" if mode == "r" else "w")
    assert isinstance(made, AudioCodecContext)
    made.sample_rate, made.layout, made.format = rate, "mono", "s16"
    return made


def ffmpeg_encodes(name: str, pcm: Pcm, rate: int = 8000) -> bytes:
    frame = AudioFrame.from_ndarray(pcm.reshape(1, -1), format="s16", layout="mono")
    frame.sample_rate = rate
    return b"".join(bytes(packet) for packet in context(name, "w", rate).encode(frame))


def ffmpeg_decodes(name: str, payload: bytes, rate: int = 8000) -> Pcm:
    return np.concatenate([np.asarray(frame.to_ndarray(), np.int16).reshape(-1)
                           for frame in context(name, "r", rate).decode(Packet(payload))])


@pytest.mark.parametrize("law", LAWS)
def test_every_byte_of_g711_decodes_as_ffmpeg_does(law: Law) -> None:
    every_byte = bytes(range(256))
    assert np.array_equal(G711(law).decode(every_byte), ffmpeg_decodes(FFMPEG[law], every_byte))


@pytest.mark.parametrize("law", LAWS)
def test_every_sample_is_coded_at_least_as_near_as_ffmpeg_codes_it(law: Law) -> None:
    ours = G711(law).decode(G711(law).encode(EVERY_SAMPLE)).astype(np.int32)
    theirs = G711(law).decode(ffmpeg_encodes(FFMPEG[law], EVERY_SAMPLE)).astype(np.int32)
    assert np.all(np.abs(ours - EVERY_SAMPLE) <= np.abs(theirs - EVERY_SAMPLE))
    # FFmpeg looks at 14 bits of each sample: its byte is ours or, at a border, the next one.
    assert np.mean(ours != theirs) < 0.01


@pytest.mark.parametrize("law", LAWS)
def test_g711_is_its_own_inverse(law: Law) -> None:
    codes = bytes(code for code in range(256) if (law, code) != ("mu", 0x7F))  # mu-law's other zero
    assert G711(law).encode(G711(law).decode(codes)) == codes
    assert G711("mu").encode(np.zeros(1, np.int16)) == b"\xff"


def test_g722_carries_seven_kilohertz() -> None:
    pcm = voiced(2)
    codec, other = G722(), G722()
    heard = np.concatenate([other.decode(codec.encode(pcm[at:at + 320])) for at in range(0, pcm.size, 320)])
    assert heard.size == pcm.size
    delay = 22  # samples of its two filters (ITU-T G.722 section 2.5: 1.5 ms altogether)
    left, right = pcm[:-delay].astype(np.float64), heard[delay:].astype(np.float64)
    assert np.corrcoef(left, right)[0, 1] > 0.98


# --- the decoder --------------------------------------------------------------------------------------------

FRAME = 160


def g711_packets(pcm: Pcm) -> list[bytes]:
    return [G711("mu").encode(pcm[at:at + FRAME]) for at in range(0, pcm.size, FRAME)]


def vowel(seconds: float, pitch: float = 110.0) -> Pcm:
    """Something with a pitch, at 8 kHz."""
    time = np.arange(round(8000 * seconds)) / 8000
    sound = sum(np.sin(2 * np.pi * pitch * number * time) / number for number in range(1, 12))
    pcm: Pcm = (6000 * np.asarray(sound)).astype(np.int16)
    return pcm


def received(packets: list[bytes], lost: frozenset[int] = frozenset()) -> tuple[Pcm, int]:
    """What a receive path makes of packets on time, and how many samples of it were made up."""
    path, pieces, concealed = ReceivePath(TelephoneDecoder(G711("mu"))), [], 0
    for number, payload in enumerate(packets):
        now = 20.0 * number
        if number not in lost:
            path.insert(number, number * FRAME, payload, now)
        for piece in path.pull(now):
            pieces.append(piece.pcm)
            concealed += piece.concealed
    return np.concatenate(pieces), concealed


def test_the_path_gives_16_khz_without_a_sample_too_many() -> None:
    heard, concealed = received(g711_packets(vowel(1)))
    assert (heard.size, concealed) == (16_000, 0)


def test_a_lost_packet_is_replaced_by_the_pitch_that_went_on() -> None:
    whole, _ = received(g711_packets(vowel(1)))
    repaired, concealed = received(g711_packets(vowel(1)), frozenset({25}))
    assert concealed == 320
    assert repaired.size == whole.size
    gap = slice(25 * 320, 26 * 320)
    likeness = np.corrcoef(whole[gap].astype(np.float64), repaired[gap].astype(np.float64))[0, 1]
    assert likeness > 0.9  # silence or noise in its place would have none
    loudest_step = np.max(np.abs(np.diff(whole.astype(np.int32))))
    assert np.max(np.abs(np.diff(repaired.astype(np.int32)))) < 1.5 * loudest_step  # no clicks


def test_a_long_loss_fades_to_silence() -> None:
    repaired, _ = received(g711_packets(vowel(1)), frozenset(range(20, 35)))
    assert not np.any(repaired[(20 * 20 + 80) * 16:35 * 320])
    assert np.any(repaired[36 * 320:37 * 320])


def spectrum_db(pcm: Pcm, low: int, high: int) -> float:
    """Level of a band, in dB of full scale; edges left out."""
    power = np.abs(np.fft.rfft(pcm.astype(np.float64) * np.hanning(pcm.size))) ** 2
    band = slice(low * pcm.size // 16_000, high * pcm.size // 16_000)
    return float(10 * np.log10(np.sum(power[band]) / np.sum(np.hanning(pcm.size) ** 2) / pcm.size * 2 / 32_768 ** 2))


def test_the_band_that_a_telephone_leaves_empty_is_filled_faintly_and_more_where_the_voice_hisses() -> None:
    silence, _ = received(g711_packets(np.zeros(8000, np.int16)))
    assert -52 < spectrum_db(silence, 4200, 7800) < -46
    assert spectrum_db(silence, 200, 3500) < -70
    voice, _ = received(g711_packets(vowel(1)))
    assert spectrum_db(voice, 4200, 7800) < spectrum_db(voice, 200, 3500) - 20
    hiss: NDArray[np.float64] = np.random.default_rng(1).normal(0, 2000, 8000)
    hiss = np.convolve(hiss, [1, -1.8, 0.9], "same").astype(np.float64)  # rises towards 4 kHz
    hissing, _ = received(g711_packets(hiss.astype(np.int16)))
    assert spectrum_db(hissing, 4200, 7800) > spectrum_db(hissing, 200, 3500)
    wide = TelephoneDecoder(G722())
    assert np.std(wide.decode(G722().encode(np.zeros(320, np.int16))).astype(np.float64)) < 10


def test_comfort_noise_has_the_level_that_was_sent() -> None:
    packets = g711_packets(vowel(0.2))
    packets[5:] = [NoisePayload(b"\x32")] * 5  # 50 dB below full scale
    heard, _ = received(packets)
    noise = heard[6 * 320:10 * 320].astype(np.float64)
    level = 20 * np.log10(np.sqrt(np.mean(noise ** 2)) / 32_768)
    assert -56 < level < -47  # half of the band is empty


@steady
@given(st.lists(st.tuples(st.sampled_from(["voice", "noise", "conceal", "reset", "empty", "huge"]),
                          st.integers(1, 400)), max_size=20))
def test_whatever_comes_every_answer_is_as_long_as_it_was_said_to_be(steps: list[tuple[str, int]]) -> None:
    decoder = TelephoneDecoder(G711("a"))
    for what, count in steps:
        match what:
            case "voice" | "noise":
                payload = (NoisePayload if what == "noise" else bytes)([count % 256] * count)
                assert decoder.decode(payload).size == decoder.samples(payload)
            case "conceal":
                assert decoder.conceal(count).size == count
            case "reset":
                decoder.reset()
            case _:
                with pytest.raises(MalformedPacketError):
                    decoder.decode(b"" if what == "empty" else bytes(2000))
