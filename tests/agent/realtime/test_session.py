"""What a session object means."""

from __future__ import annotations

from typing import Any

import pytest

from duologue.agent.realtime.formats import AudioFormat
from duologue.agent.realtime.session import MAX_SESSION_CHARS, BadSessionError, SessionObject


def after(*changes: dict[str, Any]) -> SessionObject:
    session = SessionObject("embedded")
    for change in changes:
        session = session.merged(change)
    return session


def test_formats_are_said_as_clients_check_them() -> None:
    session = after()
    for way in ("input", "output"):
        assert session.data["audio"][way]["format"] == {"type": "audio/pcm", "rate": 24000}
    assert session.input_format == AudioFormat("audio/pcm", 24000)


@pytest.mark.parametrize(("change", "into", "out"), [
    ({"audio": {"input": {"format": {"type": "audio/pcm", "rate": 48000}}}},
     ("audio/pcm", 48000), ("audio/pcm", 24000)),
    ({"audio": {"input": {"format": {"type": "audio/pcmu"}}, "output": {"format": {"type": "audio/pcma"}}}},
     ("audio/pcmu", 8000), ("audio/pcma", 8000)),
    ({"input_audio_format": "g711_alaw", "output_audio_format": "pcm16"}, ("audio/pcma", 8000), ("audio/pcm", 24000)),
    # As vLLM-Omni's client says it.
    ({"input_audio_format": "pcm16", "output_audio_format": "pcm16", "sample_rate_hz": 16000, "turn_detection": None,
      "audio": {"input": {"sample_rate_hz": 16000}, "output": {"sample_rate_hz": 24000}}},
     ("audio/pcm", 16000), ("audio/pcm", 24000)),
    ({"audio": {"input": {"format": None}}}, ("audio/pcm", 24000), ("audio/pcm", 24000)),
])
def test_a_format_is_taken_however_it_is_said(change: dict[str, Any], into: tuple[str, int],
                                              out: tuple[str, int]) -> None:
    session = after(change)
    assert (session.input_format.coding, session.input_format.rate) == into
    assert (session.output_format.coding, session.output_format.rate) == out
    assert session.data["audio"]["input"]["format"] == session.input_format.wire()
    assert session.wishes.auto_respond


@pytest.mark.parametrize("change", [
    {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 44100}}}},
    {"audio": {"output": {"format": {"type": "audio/opus"}}}},
    {"input_audio_format": "mp3"},
    {"audio": {"input": {"format": {"type": "audio/pcm", "rate": "fast"}}}},
    {"audio": "loud"},
    {"audio": {"input": None}},
    {"audio": {"input": {"turn_detection": "on"}}},
    {"instructions": "x" * MAX_SESSION_CHARS},
])
def test_a_session_that_cannot_be_is_refused_whole(change: dict[str, Any]) -> None:
    session = after()
    before = dict(session.data)
    with pytest.raises(BadSessionError) as refusal:
        session.merged(change)
    assert refusal.value.param.startswith("session")
    assert len(str(refusal.value)) < 300
    assert session.data == before


def test_what_we_do_not_do_is_accepted_and_given_back() -> None:
    session = after({"tracing": "auto", "audio": {"input": {"noise_reduction": None}, "output": {"speed": 1.0}},
                     "output_modalities": ["text"]})
    assert session.data["tracing"] == "auto"
    assert session.data["audio"]["input"]["noise_reduction"] is None
    assert session.data["output_modalities"] == ["audio"]


@pytest.mark.parametrize(("turns", "auto", "detects", "interruptible"), [
    ({"type": "semantic_vad"}, True, True, True),
    ({"type": "server_vad", "create_response": False}, False, True, True),
    ({"type": "server_vad", "interrupt_response": False}, True, True, False),
    (None, False, False, False),
])
def test_who_takes_turns(turns: object, auto: bool, detects: bool, interruptible: bool) -> None:
    wishes = after({"audio": {"input": {"turn_detection": turns}}}).wishes
    assert (wishes.auto_respond, wishes.detects, wishes.interruptible) == (auto, detects, interruptible)


def test_turn_detection_that_comes_back_has_its_defaults() -> None:
    session = after({"audio": {"input": {"turn_detection": None}}},
                    {"audio": {"input": {"turn_detection": {"type": "server_vad"}}}})
    assert session.data["audio"]["input"]["turn_detection"] == {
        "type": "server_vad", "eagerness": "auto", "create_response": True, "interrupt_response": True}
