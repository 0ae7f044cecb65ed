"""Calls with a real telephone, baresip: every codec, keys both ways, SRTP, holding, calls out, transfer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from duologue.agent.transports.base import TransferFailed
from duologue.engine import Pcm, Refused
from tests.agent.transports.peer import RATE, RecordingCall, frames_of, voiced
from tests.agent.transports.sip.house import house
from tests.harness.baresip import Account, Baresip, CodecName, baresip
from tests.harness.microphone import Microphone, speak
from tests.harness.sound import RATE as MIC_RATE
from tests.harness.sound import Sound, from_pcm, locate, resample, to_pcm

pytestmark = pytest.mark.component

PASSWORD = "sesame"
SENTENCE = "There was once a lighthouse keeper."
CODECS: list[CodecName] = ["PCMU/8000/1", "PCMA/8000/1", "G722/16000/1", "opus/48000/2"]


def a_call() -> RecordingCall:
    """Somebody who says a sentence once told to."""
    return RecordingCall(frames_of(to_pcm(resample(speak(SENTENCE, "rms"), MIC_RATE, RATE))))


def likeness(heard: Sound, said: Sound, rate: int) -> float:
    """How well what was heard holds what was said, both in a telephone's band.

    The middle of what its pieces reach, each for itself: a busy machine may skip a frame, and shift what follows.
    """
    narrow = resample(resample(said, rate, 8000), 8000, rate)
    piece = rate * 4 // 10
    return median(locate(narrow[at:at + piece], heard)[1] for at in range(0, narrow.size - piece + 1, piece))


async def until_heard(phone: Baresip, sound: Sound, patience_s: float = 15) -> float:
    """Wait until baresip has heard a sound at 16 kHz; the likeness, at worst the last."""
    best = 0.0
    for _ in range(round(patience_s / 0.5)):
        recording = phone.recording()
        best = max(best, likeness(resample(recording.agent, recording.rate, RATE), sound, RATE))
        if best > 0.85:
            break
        await asyncio.sleep(0.5)
    return best


@pytest.mark.parametrize("codec", CODECS)
async def test_both_sides_hear_what_the_other_says(codec: CodecName, tmp_path: Path) -> None:
    microphone = Microphone().pause(1).say("what is seven plus five")
    async with (
        house(a_call, users=True) as (made, _),
        baresip(tmp_path / "phone", Account(made.port, password=PASSWORD, codec=codec), microphone) as phone,
    ):
        await phone.dial()
        made.call.speaking = True
        said = from_pcm(np.concatenate(a_call().frames))
        assert await until_heard(phone, said) > 0.85
        await phone.until_said(microphone.length + MIC_RATE // 2)
        question = resample(microphone.utterances[0].sound, MIC_RATE, RATE)
        assert likeness(from_pcm(made.call.heard), question, RATE) > 0.85
        assert made.call.connections == 1
        await phone.hang_up()
        await made.call.until(lambda: made.call.reasons == ["hung up"])


async def test_a_wrong_password_makes_no_call(tmp_path: Path) -> None:
    async with (
        house(users=True) as (made, _),
        baresip(tmp_path / "phone", Account(made.port, password="guessed"), Microphone().pause(1)) as phone,
    ):
        with pytest.raises(ConnectionError):
            await phone.dial()
        assert made.calls == []


@pytest.mark.parametrize("codec", ["PCMU/8000/1", "opus/48000/2"])
async def test_keys_reach_the_other_side_once_each(codec: CodecName, tmp_path: Path) -> None:
    async with (
        house() as (made, _),
        baresip(tmp_path / "phone", Account(made.port, codec=codec), Microphone().pause(1)) as phone,
    ):
        await phone.dial()
        await phone.press("12#9")
        await made.call.until(lambda: len(made.call.keys) >= 4)
        made.transport.press("159*")
        for _ in range(100):
            if phone.log().count("received event") >= 8:  # each key's beginning and end
                break
            await asyncio.sleep(0.1)
        assert phone.keys_heard() == "159*"
        assert "".join(made.call.keys) == "12#9"


async def test_srtp_is_spoken_where_it_is_asked_for_and_refused_where_it_may_not(tmp_path: Path) -> None:
    microphone = Microphone().pause(1).say("what is seven plus five")
    async with (
        house(a_call) as (made, _),
        baresip(tmp_path / "phone", Account(made.port, srtp=True), microphone) as phone,
    ):
        await phone.dial()
        made.call.speaking = True
        assert await until_heard(phone, from_pcm(np.concatenate(a_call().frames))) > 0.85
        await phone.until_said(microphone.length + MIC_RATE // 2)
        question = resample(microphone.utterances[0].sound, MIC_RATE, RATE)
        assert likeness(from_pcm(made.call.heard), question, RATE) > 0.85
    async with (
        house(srtp="require") as (made, _),
        baresip(tmp_path / "plain", Account(made.port), Microphone().pause(1)) as phone,
    ):
        with pytest.raises(ConnectionError, match="488"):
            await phone.dial()


async def test_a_call_on_hold_waits_and_goes_on(tmp_path: Path) -> None:
    def numbered() -> RecordingCall:
        return RecordingCall(frames_of(voiced(60)))

    async with (
        house(numbered, timeout_s=2) as (made, _),
        baresip(tmp_path / "phone", Account(made.port), Microphone().pause(1)) as phone,
    ):
        await phone.dial()
        made.call.speaking = True
        await phone.command("hold")
        await _stands_still(made.call)
        heard, pulled = made.call.heard.size, len(made.call.pulled)
        await asyncio.sleep(3)  # longer than a caller on the line may be silent
        assert len(made.call.pulled) == pulled  # the reply waits where it is
        assert made.call.heard.size - heard > 2 * RATE  # the caller's time goes on
        assert not np.any(made.call.heard[heard + RATE:])
        await phone.command("resume")
        await made.call.until(lambda: len(made.call.pulled) > pulled + 50)
        assert made.call.reasons == []


async def _stands_still(call: RecordingCall) -> None:
    """Wait until no more frames are pulled."""
    for _ in range(100):
        before = len(call.pulled)
        await asyncio.sleep(0.2)
        if len(call.pulled) == before:
            return
    raise AssertionError("the reply is still being played")


async def test_a_call_out_is_answered_and_hung_up(tmp_path: Path) -> None:
    microphone = Microphone().pause(1).say("what is seven plus five")
    async with (
        house(a_call) as (made, door),
        baresip(tmp_path / "phone", Account(made.port), microphone) as phone,
    ):
        await door.dial(f"sip:alice@127.0.0.1:{phone.sip_port}")
        made.call.speaking = True
        assert await until_heard(phone, from_pcm(np.concatenate(a_call().frames))) > 0.85
        await made.transport.close()
        assert made.call.reasons == ["closed"]
        for _ in range(100):
            if "terminated" in phone.log():
                break
            await asyncio.sleep(0.1)
        assert "terminated" in phone.log()


async def test_a_transfer_brings_the_caller_to_the_target(tmp_path: Path) -> None:
    async with (
        house() as (made, _),
        house(a_call) as (elsewhere, _),
        baresip(tmp_path / "phone", Account(made.port), Microphone().pause(1)) as phone,
    ):
        await phone.dial()
        await made.transport.transfer(f"sip:desk@127.0.0.1:{elsewhere.port}")
        assert made.call.reasons == ["closed"]
        await elsewhere.until(lambda: bool(elsewhere.calls))
        await elsewhere.call.until(lambda: elsewhere.call.heard.size > 0)


async def test_a_target_that_is_busy_leaves_the_call_up(tmp_path: Path) -> None:
    async with (
        house() as (made, _),
        house() as (elsewhere, _),
        baresip(tmp_path / "phone", Account(made.port), Microphone().pause(1)) as phone,
    ):
        elsewhere.refuse = Refused("capacity", "full", eta_s=7.2)
        await phone.dial()
        with pytest.raises(TransferFailed, match="486"):
            await made.transport.transfer(f"sip:desk@127.0.0.1:{elsewhere.port}")
        heard = made.call.heard.size
        await made.call.until(lambda: made.call.heard.size > heard + RATE)
        assert made.call.reasons == []


def test_the_sounds_compared_here_are_told_apart() -> None:
    other: Pcm = voiced(2)
    assert likeness(from_pcm(other), resample(speak(SENTENCE, "rms"), MIC_RATE, RATE), RATE) < 0.3
