"""Voice activity on flite's voices, in silence and in noise."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.agent.config import VadConfig
from duologue.agent.media import vad
from duologue.agent.media.activity import Hint, Offset, Onset, Probability, VoiceEvent
from duologue.agent.media.vad import WINDOW, VoiceActivity
from duologue.engine import Pcm
from tests.agent.media import steady
from tests.harness.microphone import speak
from tests.harness.sound import Sound, resample, to_pcm

RATE = 16_000
START = 2 * RATE
TEXTS = ("Hello there.", "What is the time?", "Tell me a story about a fox.", "Five plus seven.", "Yes.")


def spoken(text: str, voice: str = "slt") -> Sound:
    return resample(speak(text, voice), 48_000, RATE)


def pink(count: int, seed: int = 0) -> Sound:
    """Pink noise of power 1."""
    frequency = np.fft.rfftfreq(count, 1 / RATE)
    spectrum = np.random.default_rng(seed).standard_normal((2, frequency.size)).T @ np.array([1, 1j])
    noise = np.fft.irfft(spectrum / np.sqrt(np.maximum(frequency, 40)), count)
    scaled: Sound = (noise / np.sqrt(np.square(noise).mean())).astype(np.float32)
    return scaled


def scene(text: str, snr_db: float | None = None, voice: str = "slt") -> tuple[Pcm, int]:
    """Two seconds, ``text``, two seconds, all in noise; returns the samples and where the text ends."""
    sound = spoken(text, voice)
    whole = np.concatenate([np.zeros(START, np.float32), sound, np.zeros(START, np.float32)])
    if snr_db is not None:
        whole = whole + pink(whole.size) * np.sqrt(np.square(sound).mean()) * 10 ** (-snr_db / 20)
    return to_pcm(whole.astype(np.float32)), START + sound.size


def listen(pcm: Pcm, chunk: int = 320, offset_ms: int = 128) -> list[tuple[int, VoiceEvent]]:
    """All events, each with the samples that had been pushed by then."""
    activity = VoiceActivity(VadConfig(offset_ms=offset_ms))
    return [(min(at + chunk, pcm.size), event) for at in range(0, pcm.size, chunk)
            for event in activity.push(pcm[at:at + chunk])]


@pytest.mark.parametrize("snr_db", [None, 20, 10])
@pytest.mark.parametrize("voice", ["slt", "awb"])
def test_speech_is_heard_soon_and_nothing_else_is(snr_db: float | None, voice: str) -> None:
    delays = []
    for text in TEXTS:
        pcm, end = scene(text, snr_db, voice)
        found = listen(pcm)
        onsets = [(known, event.at) for known, event in found if isinstance(event, Onset)]
        offsets = [event.at for _, event in found if isinstance(event, Offset)]
        assert all(START - WINDOW <= at < end for _, at in onsets)
        assert len(onsets) == len(offsets) >= 1
        assert abs(offsets[-1] - end) < 0.2 * RATE
        delays.append((onsets[0][0] - START) / 16)
    assert np.median(delays) <= 100  # milliseconds of media: three windows and a push
    assert max(delays) <= 200


def test_a_hint_comes_before_the_onset_where_the_line_is_quiet() -> None:
    ahead = []
    for text in TEXTS:
        pcm, _ = scene(text)
        found = listen(pcm, chunk=160)
        onset = next(known for known, event in found if isinstance(event, Onset))
        ahead += [(onset - known) / 16 for known, event in found if isinstance(event, Hint) and known < onset]
    assert len(ahead) >= 3
    assert np.median(ahead) >= 10


@pytest.mark.parametrize("noise", ["silence", "pink", "hum", "clicks"])
def test_noise_is_not_speech(noise: str) -> None:
    count = 20 * RATE
    time = np.arange(count) / RATE
    pcm = to_pcm({
        "silence": np.zeros(count, np.float32),
        "pink": 0.03 * pink(count),
        "hum": (0.1 * np.sign(np.sin(2 * np.pi * 120 * time))).astype(np.float32),
        "clicks": (0.5 * (np.random.default_rng(1).random(count) < 1e-4)).astype(np.float32),
    }[noise])
    found = [event for _, event in listen(pcm)]
    assert not [event for event in found if isinstance(event, Onset | Offset)]
    if noise != "clicks":
        assert not [event for event in found if isinstance(event, Hint)]
    assert len(found) - len([event for event in found if isinstance(event, Hint)]) == count // WINDOW


def test_onsets_and_offsets_alternate_and_silence_inside_an_utterance_does_not_end_it() -> None:
    pcm, _ = scene("Hello there.")
    twice = np.concatenate([pcm, pcm])
    kinds = [type(event) for _, event in listen(twice) if isinstance(event, Onset | Offset)]
    assert kinds == [Onset, Offset] * (len(kinds) // 2)
    patient = listen(twice, offset_ms=6000)
    assert [type(event) for _, event in patient if isinstance(event, Onset | Offset)] == [Onset]


def test_an_offset_is_known_only_after_the_silence_asked_for() -> None:
    pcm, _ = scene("Hello there.")
    for offset_ms in (96, 320):
        known, event = next((known, event) for known, event in listen(pcm, offset_ms=offset_ms)
                            if isinstance(event, Offset))
        assert offset_ms <= (known - event.at) / 16 < offset_ms + 32 + 20


def test_probabilities_are_those_of_the_wheels_main_model() -> None:
    pcm, _ = scene("What is the time?", 20)
    spec = importlib.util.find_spec("silero_vad")
    assert spec is not None
    assert spec.origin is not None
    session = onnxruntime.InferenceSession(str(Path(spec.origin).parent / "data" / "silero_vad.onnx"))
    sound = np.concatenate([np.zeros(64), pcm / 32768]).astype(np.float32)
    state, expected = np.zeros((2, 1, 128), np.float32), []
    for at in range(0, pcm.size - WINDOW + 1, WINDOW):
        value, state = session.run(None, {"input": sound[None, at:at + 64 + WINDOW], "state": state,
                                          "sr": np.array(RATE, np.int64)})
        expected.append(float(np.asarray(value)[0, 0]))
    found = [event for _, event in listen(pcm) if isinstance(event, Probability)]
    assert [event.upto for event in found] == list(range(WINDOW, pcm.size + 1, WINDOW))
    assert [event.value for event in found] == pytest.approx(expected, abs=1e-3)


def test_events_do_not_depend_on_how_the_stream_was_cut() -> None:
    pcm = scene("Yes.")[0][RATE:4 * RATE]
    expected = [event for _, event in listen(pcm)]
    assert {type(event) for event in expected} == {Hint, Onset, Offset, Probability}

    @settings(steady, max_examples=15)
    @given(st.lists(st.integers(0, 5000), min_size=1, max_size=30))
    def cut_anywhere(cuts: list[int]) -> None:
        activity = VoiceActivity(VadConfig())
        found: list[VoiceEvent] = []
        at = 0
        for cut in cuts:
            found += activity.push(pcm[at:at + cut])
            at += cut
        assert [*found, *activity.push(pcm[at:])] == expected

    cut_anywhere()


def test_after_a_reset_the_stream_starts_anew() -> None:
    pcm, _ = scene("Yes.")
    activity = VoiceActivity(VadConfig())
    first = activity.push(pcm)
    activity.push(pcm[:9999])
    activity.reset()
    assert activity.push(pcm) == first


def test_without_the_model_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    vad._model.cache_clear()
    with pytest.raises(RuntimeError, match="silero-vad"):
        VoiceActivity(VadConfig())
