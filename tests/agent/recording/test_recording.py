"""A call that is recorded and replayed: scripted ear's place is taken by the real one, the engine is scripted."""

from __future__ import annotations

import asyncio
import json
import wave
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.agent.call import Call
from duologue.agent.config import ConversationConfig
from duologue.agent.media.vad import VoiceActivity
from duologue.agent.recording import tape, told
from duologue.agent.recording.command import run
from duologue.agent.recording.differences import differences
from duologue.agent.recording.recorder import Recorder
from duologue.agent.recording.replay import Source, replay
from duologue.agent.recording.tape import Recording
from duologue.cli import main
from duologue.engine import (
    AgentSaid,
    Brief,
    CallerSaid,
    CallerText,
    CallerWords,
    Choice,
    ConfigError,
    Decision,
    EngineEvent,
    Fence,
    Health,
    HistoryItem,
    Instructions,
    Item,
    ReplyAudio,
    ReplyText,
    TextSpan,
    Tool,
    ToolCall,
    ToolCalled,
    ToolResult,
    Tools,
    TurnEnd,
    TurnStatus,
)
from tests.agent.test_call import FRAME, PIPELINE, FakeTransport, ScriptedSession

CONFIG = ConversationConfig()


BRIEF = Brief("be kind", tools=(Tool("get_weather", "The weather of a city"),), auto_respond=False)


class RememberingSession(ScriptedSession):
    id = "s1"
    brief = BRIEF

    def __init__(self) -> None:
        super().__init__()
        self.given: list[Item | str] = []

    def inject(self, item: Item) -> None:
        self.given.append(item)

    def respond(self, instructions: str = "") -> None:
        self.given.append(instructions)

    def history(self) -> list[HistoryItem]:
        return [CallerSaid("hello"), AgentSaid(1, "well"), ToolCalled("call_3", "get_weather", "{}", "rain", 3)]


async def held(folder: Path, frames: int = 60) -> Path:
    """A recorded call: the caller types, makes noise, and is answered; returns its folder."""
    recorder = Recorder(folder, PIPELINE, CONFIG)
    wishes = {"instructions": "be kind"}
    recording = recorder.begin("rtc_one/../two", wishes)
    session, transport = RememberingSession(), FakeTransport()
    call = Call("rtc_one", recording.session(session), PIPELINE, CONFIG, VoiceActivity(CONFIG.vad),
                wishes=wishes)
    media = recording.media(call.media)
    call.start(recording.transport(transport))
    media.connected()
    media.receive('{"type":"session.update","session":{"duologue":{"events":true}}}')
    media.dtmf("5")
    noise = np.random.default_rng(1).integers(-3000, 3000, FRAME * frames).astype(np.int16)
    for n in range(frames):
        media.feed(noise[n * FRAME:(n + 1) * FRAME], concealed=n % 3)
        media.pull()
        if n % 4 == 3:
            session.decide()
        if n == 20:
            session.say(1, 15)
        if n == 30:
            media.receive('{"type":"response.cancel"}')
        if n == 40:
            session.say(2, 10)
        await asyncio.sleep(0)
    media.gone("hung up")
    await call.wait_closed()
    await asyncio.to_thread(recorder.flush)
    return folder / "rtc_one____two"


async def test_a_replay_of_the_tape_differs_in_nothing(tmp_path: Path) -> None:
    recording = Recording(await held(tmp_path))
    again = await replay(recording, Source.TAPE)
    assert list(differences(recording, again)) == []
    kinds = {entry.kind for entry in recording.entries}
    assert kinds == {"connected", "received", "key", "fed", "pulled", "appended", "told", "sent", "interrupted", "gone"}


async def test_a_recording_holds_the_audio_both_ways_and_what_the_model_remembered(tmp_path: Path) -> None:
    folder = await held(tmp_path, 60)
    recording = Recording(folder)
    with wave.open(str(folder / "caller.wav")) as caller, wave.open(str(folder / "agent.wav")) as agent:
        assert (caller.getnframes(), caller.getframerate()) == (60 * FRAME, 16000)
        assert (agent.getnframes(), agent.getframerate()) == (60 * FRAME, PIPELINE.output_rate)
    assert np.abs(recording.audio("agent")).max() > 0
    assert recording.sheet.dropped == 0
    assert [item["who"] for item in recording.sheet.journal] == ["caller", "agent", "tool"]
    assert recording.sheet.pipeline == PIPELINE
    assert recording.sheet.brief == BRIEF
    # Sample times: the last frame was pulled when all but nothing had been fed.
    assert recording.entries[-1].at == 60 * FRAME


async def test_what_the_engine_is_given_between_units_is_on_the_tape_and_reaches_the_engine(tmp_path: Path) -> None:
    recorder, session = Recorder(tmp_path, PIPELINE, CONFIG), RememberingSession()
    taped = recorder.begin("one", {}).session(session)
    items: list[Item] = [CallerText("hi"), ToolResult("call_3", "rain"), Instructions("be brief"), Tools(BRIEF.tools)]
    for item in items:
        taped.inject(item)
    taped.respond("say no more")
    await taped.close()
    await asyncio.to_thread(recorder.flush)
    assert session.given == [*items, "say no more"]
    entries = Recording(tmp_path / "one").entries
    assert [entry.model_dump(exclude={"at"}) for entry in entries] == [
        {"kind": "injected", "item": {"type": "text", "text": "hi"}},
        {"kind": "injected", "item": {"type": "tool_result", "call": "call_3", "output": "rain"}},
        {"kind": "injected", "item": {"type": "instructions", "text": "be brief"}},
        {"kind": "injected", "item": {"type": "tools", "tools": [
            {"name": "get_weather", "description": "The weather of a city", "parameters": "{}"}]}},
        {"kind": "responded", "instructions": "say no more"}]


async def test_a_call_id_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    await held(tmp_path / "calls")
    assert (tmp_path / "calls" / "rtc_one____two" / "call.json").exists()


async def test_every_kind_of_difference_is_shown(tmp_path: Path) -> None:
    recording = Recording(await held(tmp_path))
    again = await replay(recording, Source.TAPE)
    again.agent[3] = again.agent[3] + np.int16(7)
    again.replies[1][0] = again.replies[1][0][:-1]
    index = next(n for n, entry in enumerate(again.entries) if isinstance(entry, tape.Interrupted))
    again.entries[index] = again.entries[index].model_copy(update={"heard_samples": 1})
    found = "\n".join(differences(recording, again))
    assert '+    0.62 s  {"given": {"kind": "interrupted", "turn": 1, "heard_samples": 1' in found
    assert '-    0.62 s  {"given": {"kind": "interrupted", "turn": 1, "heard_samples": ' in found
    size = 60 * FRAME
    assert f"the agent's audio: {size} samples recorded, {size} replayed, {FRAME} different by up to 7" in found


async def test_another_config_shows_in_the_replay(tmp_path: Path) -> None:
    recording = Recording(await held(tmp_path))
    other = PIPELINE.model_copy(update={"unit_ms": 40})
    again = await replay(recording, Source.TAPE, pipeline=other)
    assert any('"kind": "appended"' in line and line.startswith("+") for line in differences(recording, again))


async def test_a_tape_that_a_kill_cut_off_is_read_to_its_last_whole_entry(tmp_path: Path) -> None:
    folder = await held(tmp_path)
    whole = Recording(folder)
    text = (folder / "tape.jsonl").read_text()
    (folder / "tape.jsonl").write_text(text[:-9])
    sheet = json.loads((folder / "call.json").read_text())
    (folder / "call.json").write_text(json.dumps(sheet | {"dropped": None}))
    audio = (folder / "caller.wav").read_bytes()
    (folder / "caller.wav").write_bytes(audio[:-1])
    cut = Recording(folder)
    assert cut.entries == whole.entries[:-1]
    assert len(cut.audio("caller")) == 60 * FRAME - 1


async def test_the_command_says_how_it_went(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = await held(tmp_path)
    assert await asyncio.to_thread(run, folder, "tape", None) == 0
    assert "1.2 s of a call replayed" in capsys.readouterr().err
    lines = (folder / "tape.jsonl").read_text().replace('"heard_samples":', '"heard_samples":9')
    (folder / "tape.jsonl").write_text(lines)
    assert await asyncio.to_thread(run, folder, "tape", None) == 1
    assert "heard_samples" in capsys.readouterr().out


def test_what_is_no_recording_is_refused_with_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path)]) == 2
    assert "is not a recorded call: it has no call.json" in capsys.readouterr().err
    (tmp_path / "call.json").write_text("{}")
    with pytest.raises(ConfigError, match="cannot be read as a recorded call"):
        Recording(tmp_path)


def test_a_folder_that_cannot_be_written_to_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="calls cannot be recorded in"):
        Recorder(tmp_path / "file" / "calls", PIPELINE, CONFIG)


async def test_a_slow_disk_costs_the_recording_and_not_the_call(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duologue.agent.recording.recorder.MAX_WAITING", 3)
    folder = await held(tmp_path)
    # The sheet that counts them may be lost too: then the recording says that it was not ended.
    assert json.loads((folder / "call.json").read_text())["dropped"] != 0


FENCES = st.builds(Fence, st.just(""), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
SPANS = st.lists(st.builds(TextSpan, *[st.integers(0, 99)] * 4), max_size=3).map(tuple)
EVENTS: st.SearchStrategy[EngineEvent] = st.one_of(
    st.builds(Decision, st.just(""), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.sampled_from(Choice),
              st.booleans(), tokens=st.lists(st.integers(0, 9)).map(tuple)),
    st.builds(CallerWords, st.just(""), st.integers(0, 9), st.text(), st.booleans(), st.integers(0, 9),
              st.integers(0, 9)),
    st.builds(ReplyText, FENCES, st.integers(0, 9), st.text(), st.booleans(), st.floats(0.5, 2)),
    st.builds(ToolCall, st.just(""), st.text(), st.text(), st.text()),
    st.builds(TurnEnd, st.just(""), st.integers(0, 9), st.integers(0, 9), st.sampled_from(TurnStatus), st.text(),
              st.text()),
    st.builds(Health, st.text(), st.booleans(), st.text()))


@given(EVENTS)
def test_an_event_comes_off_the_tape_as_it_went_on(event: EngineEvent) -> None:
    assert told.decode(json.loads(json.dumps(told.encode(event)))) == event


@given(FENCES, st.integers(0, 999), SPANS, st.booleans())
def test_a_chunk_of_audio_comes_off_the_tape_as_it_went_on(
        fence: Fence, first: int, spans: tuple[TextSpan, ...], last: bool) -> None:
    pcm = np.arange(5, dtype=np.int16)
    back = told.decode(told.encode(ReplyAudio(fence, first, pcm, spans, last)), pcm)
    assert isinstance(back, ReplyAudio)
    assert (back.fence, back.first_sample, back.spans, back.last) == (fence, first, spans, last)
    assert back.pcm is pcm
