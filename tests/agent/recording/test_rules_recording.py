"""One call's recording is nobody else's trouble."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from duologue.agent.recording import tape
from duologue.agent.recording.recorder import Recorder, Tape
from duologue.agent.recording.tape import Recording
from tests.agent.recording.test_recording import CONFIG
from tests.agent.test_call import PIPELINE

HALF_A_PAIR = "\ud800"
"""Half of a surrogate pair: JSON can carry it as an escape, and no encoding of Unicode can."""


def flush(recorder: Recorder) -> None:
    """Wait until all is written; fails when the thread that writes is gone."""
    thread = threading.Thread(target=recorder.flush, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


def record(recorder: Recorder, name: str) -> None:
    """Record a call and see to it that it was."""
    recording = recorder.begin(name, {})
    recording.note(tape.Connected(at=0))
    recording.end([])
    flush(recorder)


def read(folder: Path) -> list[tape.AnyEntry]:
    return list(Recording(folder).entries)


def not_begun(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> Tape:
    """A call that comes while the disk is too far behind for its first entry."""
    with monkeypatch.context() as patch:
        patch.setattr(recorder._work, "put_nowait", _full)
        return recorder.begin("struck", {})


def _full(_: object) -> None:
    raise queue.Full


def not_text(recorder: Recorder, _: pytest.MonkeyPatch) -> Tape:
    """A call whose client wishes for what cannot be written."""
    return recorder.begin("struck", {"instructions": HALF_A_PAIR})


def not_a_folder(recorder: Recorder, _: pytest.MonkeyPatch) -> Tape:
    """A call whose folder cannot be made."""
    (recorder._root / "struck").touch()
    return recorder.begin("struck", {})


@pytest.mark.parametrize("struck", [not_begun, not_text, not_a_folder])
def test_a_call_that_cannot_be_recorded_costs_no_other_its_recording(
        struck: Callable[[Recorder, pytest.MonkeyPatch], Tape], tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(tmp_path, PIPELINE, CONFIG)
    recording = struck(recorder, monkeypatch)
    recording.note(tape.Connected(at=0))
    recording.end([])
    record(recorder, "other")
    assert read(tmp_path / "other") == [tape.Connected(at=0)]


def test_what_a_client_sent_that_is_no_text_is_replaced_in_its_recording(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, PIPELINE, CONFIG)
    recording = recorder.begin("one", {})
    recording.note(tape.Sent(at=0, message={"event_id": HALF_A_PAIR}))
    recording.note(tape.Connected(at=1))
    recording.end([])
    flush(recorder)
    assert read(tmp_path / "one") == [tape.Sent(at=0, message={"event_id": "?"}), tape.Connected(at=1)]
