"""A call whose client gets the reply among the events is recorded and replayed like any other."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np

from duologue.agent.call import Call
from duologue.agent.media.vad import VoiceActivity
from duologue.agent.recording import tape
from duologue.agent.recording.differences import differences
from duologue.agent.recording.recorder import Recorder
from duologue.agent.recording.replay import Source, replay
from duologue.agent.recording.tape import Recording
from duologue.agent.transports.websocket.pace import Pace
from tests.agent.recording.test_recording import CONFIG, RememberingSession
from tests.agent.test_call import FRAME, PIPELINE, FakeTransport


async def test_a_replay_of_a_sockets_call_differs_in_nothing(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, PIPELINE, CONFIG)
    recording = recorder.begin("ws_one", {})
    session, transport, sent = RememberingSession(), FakeTransport(), []
    call = Call("ws_one", recording.session(session), PIPELINE, CONFIG, VoiceActivity(CONFIG.vad))
    media = recording.media(call.media)
    call.start(recording.transport(transport))
    media.connected(voice_in_events=True)
    media.receive('{"type":"session.update","session":{"audio":{"output":{"voice":"marin"}}}}')
    pace = Pace(media, lambda _response, _item, pcm: sent.append(pcm.size))
    for n in range(60):
        media.feed(np.zeros(FRAME, np.int16))
        pace.pass_time(1)
        if n % 4 == 3:
            session.decide()
        if n == 10:
            session.say(1, 40)
        if n == 20:
            media.receive('{"type":"response.cancel"}')
        if n == 30:
            session.say(2, 10)
        await asyncio.sleep(0)
    media.gone("hung up")
    await call.wait_closed()
    await asyncio.to_thread(recorder.flush)
    held = Recording(tmp_path / "ws_one")
    again = await replay(held, Source.TAPE)
    assert list(differences(held, again)) == []
    cut, = (entry for entry in held.entries if isinstance(entry, tape.Interrupted))
    assert 0 < cut.heard_samples < sum(sent)
    assert any(isinstance(entry, tape.Reopened) for entry in held.entries)
