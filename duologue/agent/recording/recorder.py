"""Records calls as they are held: a tape around each call's transport and engine session.

The call itself knows nothing of it. Files are written by a thread, so that a slow disk never holds up the media loop;
what it cannot keep up with is dropped and counted in the recording.
"""

from __future__ import annotations

import json
import queue
import re
import struct
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Protocol

from duologue import metrics
from duologue.agent.config import ConversationConfig
from duologue.agent.logs import EventLog
from duologue.agent.ports import Session
from duologue.agent.realtime.formats import AudioFormat
from duologue.agent.recording import tape, told
from duologue.agent.recording.tape import AnyEntry, CallSheet
from duologue.agent.transports.base import FRAME_MS, EventMedia, Speak, Transport
from duologue.engine import (
    INPUT_RATE,
    AgentSaid,
    Brief,
    CallerSaid,
    ConfigError,
    EngineEvent,
    HistoryItem,
    Item,
    Pcm,
    PipelineConfig,
    ReplyAudio,
    ToolCalled,
    Unit,
)

_log = EventLog(__name__)

MAX_WAITING = 20_000
"""Entries that may wait for the disk: a minute and a half of one call's, or 5 s of twenty calls'."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_Audio = tuple[str, Pcm]


class RecordedSession(Session, Protocol):
    """An engine session that can say how it was opened and what its model remembers."""

    @property
    def id(self) -> str:
        """Its name."""

    @property
    def brief(self) -> Brief:
        """What it was opened with."""

    def inject(self, item: Item) -> None:
        """Give an item between two units."""

    def respond(self, instructions: str = "") -> None:
        """Ask for a reply."""

    def history(self) -> Sequence[HistoryItem]:
        """What was said by both, in order, each reply as far as it was heard."""


class Recorder:
    """Where calls are recorded. Raises ``ConfigError`` when the folder cannot be written to."""

    def __init__(self, root: Path, pipeline: PipelineConfig, conversation: ConversationConfig) -> None:
        self._root = root
        self._pipeline = pipeline
        self._conversation = conversation
        try:
            root.mkdir(parents=True, exist_ok=True)
            probe = root / ".writable"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise ConfigError(f"calls cannot be recorded in {root}: {error.strerror}") from None
        self._work: queue.Queue[tuple[_Files, str | _Audio | CallSheet]] = queue.Queue(MAX_WAITING)
        threading.Thread(target=self._write, name="recorder", daemon=True).start()

    def begin(self, call_id: str, wishes: Mapping[str, Any]) -> Tape:
        """Record a call from its first moment."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        sheet = CallSheet(call_id=call_id, transport="", session="", started=now,
                          pipeline=self._pipeline, conversation=self._conversation, wishes=dict(wishes), brief=Brief())
        return Tape(self, _Files(self._root / _UNSAFE.sub("_", call_id)), sheet)

    def put(self, files: _Files, work: str | _Audio | CallSheet) -> bool:
        """Have something written; False when the disk is too far behind."""
        try:
            self._work.put_nowait((files, work))
        except queue.Full:
            metrics.DROPS.labels(what="recording", reason="slow_disk").inc()
            return False
        return True

    def flush(self) -> None:
        """Wait until what was put is written."""
        self._work.join()

    def _write(self) -> None:
        while True:
            files, work = self._work.get()
            try:
                files.write(work)
            except (OSError, ValueError) as error:
                # ValueError: what a client sent cannot be written as text. This thread serves the other calls too.
                if not files.failed:
                    _log.error("recording_failed", folder=str(files.folder), reason=str(error))
                files.failed = True
            finally:
                self._work.task_done()


class _Files:
    """The files of one recording, touched by the writer's thread alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failed = False
        self._tape: IO[str] | None = None
        self._audio: dict[str, IO[bytes]] = {}

    def write(self, work: str | _Audio | CallSheet) -> None:
        if self.failed:
            return
        if isinstance(work, CallSheet):
            self._sheet(work)
        elif isinstance(work, str):
            assert self._tape is not None
            self._tape.write(work)
        else:
            name, pcm = work
            self._audio[name].write(pcm.tobytes())

    def _sheet(self, sheet: CallSheet) -> None:
        if self._tape is None:
            self.folder.mkdir(parents=True)
            # Half a surrogate pair, which JSON can carry, is no text.
            self._tape = (self.folder / "tape.jsonl").open("w", encoding="utf-8", errors="replace", buffering=1)
            for name in ("caller", "agent", "reply"):
                self._audio[name] = (self.folder / f"{name}.wav").open("wb")
                self._audio[name].write(_wav_header(_rate(name, sheet), 0))
        if sheet.dropped is not None:
            self._tape.close()
            for name, file in self._audio.items():
                samples = (file.tell() - tape.WAV_HEADER) // 2
                file.seek(0)
                file.write(_wav_header(_rate(name, sheet), samples))
                file.close()
        (self.folder / "call.json").write_text(sheet.model_dump_json(indent=1) + "\n", encoding="utf-8")


def _rate(name: str, sheet: CallSheet) -> int:
    return INPUT_RATE if name == "caller" else sheet.pipeline.output_rate


def _wav_header(rate: int, samples: int) -> bytes:
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16)
    return struct.pack("<4sI4s", b"RIFF", 36 + 2 * samples, b"WAVE") + form + struct.pack("<4sI", b"data", 2 * samples)


class Tape:
    """One call's recording in the making; its clock is what the caller's side has fed."""

    def __init__(self, recorder: Recorder, files: _Files, sheet: CallSheet) -> None:
        self.now = 0
        self._recorder = recorder
        self._files = files
        self._sheet = sheet
        self._dropped = 0
        # Without its first entry there are no files to write the others to.
        self._over = not recorder.put(files, sheet)

    def media(self, call: EventMedia) -> EventMedia:
        """``call`` as its transport is to see it."""
        return _TapedMedia(self, call)

    def transport(self, transport: Transport) -> Transport:
        """``transport`` as its call is to see it."""
        self._sheet = self._sheet.model_copy(update={"transport": transport.name})
        return _TapedTransport(self, transport)

    def session(self, session: RecordedSession) -> _TapedSession:
        """``session`` as its call is to see it. The recording ends when it is closed."""
        self._sheet = self._sheet.model_copy(update={"session": session.id, "brief": session.brief})
        return _TapedSession(self, session)

    def note(self, entry: AnyEntry) -> None:
        """Add an entry."""
        self._put(tape.line(entry))

    def sound(self, name: str, pcm: Pcm) -> None:
        """Add the audio that an entry refers to."""
        self._put((name, pcm))

    def _put(self, work: str | _Audio) -> None:
        if not self._over:
            self._dropped += not self._recorder.put(self._files, work)

    def end(self, history: Sequence[HistoryItem]) -> None:
        """End the recording; idempotent."""
        if not self._over:
            self._over = True
            journal = [{"who": _who(item), **asdict(item)} for item in history]
            sheet = self._sheet.model_copy(update={"dropped": self._dropped, "journal": journal})
            self._recorder.put(self._files, sheet)


def _who(item: HistoryItem) -> str:
    match item:
        case AgentSaid():
            return "agent"
        case CallerSaid():
            return "caller"
        case ToolCalled():
            return "tool"


class _TapedMedia:
    def __init__(self, tape_: Tape, call: EventMedia) -> None:
        self._tape = tape_
        self._call = call

    @property
    def output_rate(self) -> int:
        return self._call.output_rate

    @property
    def formats(self) -> tuple[AudioFormat, AudioFormat]:
        return self._call.formats

    @property
    def sounding(self) -> bool:
        return self._call.sounding

    @property
    def silence_due(self) -> int:
        return self._call.silence_due

    @property
    def awaits_time(self) -> bool:
        return self._call.awaits_time

    def feed(self, pcm: Pcm, concealed: int = 0) -> None:
        self._tape.sound("caller", pcm)
        self._tape.note(tape.Fed(at=self._tape.now, samples=len(pcm), concealed=concealed))
        self._tape.now += len(pcm)
        self._call.feed(pcm, concealed)

    def pull(self) -> Pcm:
        # The entry comes before what the pull brings about, as with the others.
        self._tape.note(tape.Pulled(at=self._tape.now, samples=self.output_rate * FRAME_MS // 1000))
        pcm = self._call.pull()
        self._tape.sound("agent", pcm)
        return pcm

    def speak(self, ahead: int, out: Speak) -> Pcm:
        self._tape.note(tape.Pulled(at=self._tape.now, samples=self.output_rate * FRAME_MS // 1000, ahead=ahead))
        pcm = self._call.speak(ahead, out)
        self._tape.sound("agent", pcm)
        return pcm

    def receive(self, message: str) -> None:
        self._tape.note(tape.Received(at=self._tape.now, message=message))
        self._call.receive(message)

    def dtmf(self, key: str) -> None:
        self._tape.note(tape.Key(at=self._tape.now, key=key))
        self._call.dtmf(key)

    def connected(self, *, voice_in_events: bool = False) -> None:
        self._tape.note(tape.Connected(at=self._tape.now, voice_in_events=voice_in_events))
        self._call.connected(voice_in_events=voice_in_events)

    def gone(self, reason: str) -> None:
        self._tape.note(tape.Gone(at=self._tape.now, reason=reason))
        self._call.gone(reason)


class _TapedTransport:
    def __init__(self, tape_: Tape, transport: Transport) -> None:
        self._tape = tape_
        self._transport = transport

    @property
    def name(self) -> str:
        return self._transport.name

    def send(self, message: str) -> None:
        self._tape.note(tape.Sent(at=self._tape.now, message=json.loads(message)))
        self._transport.send(message)

    async def close(self) -> None:
        await self._transport.close()


class _TapedSession:
    def __init__(self, tape_: Tape, session: RecordedSession) -> None:
        self._tape = tape_
        self._session = session

    def append(self, unit: Unit) -> None:
        self._tape.note(tape.Appended(at=self._tape.now, unit=unit.index, speech=round(unit.speech, 6),
                                      concealed=unit.concealed, agent_audible=unit.agent_audible))
        self._session.append(unit)

    def reopen(self, brief: Brief) -> None:
        self._session.reopen(brief)
        self._tape.note(tape.Reopened(at=self._tape.now, brief=brief))

    def inject(self, item: Item) -> None:
        self._tape.note(tape.Injected(at=self._tape.now, item=told.item(item)))
        self._session.inject(item)

    def respond(self, instructions: str = "") -> None:
        self._tape.note(tape.Responded(at=self._tape.now, instructions=instructions))
        self._session.respond(instructions)

    def interrupt(self, turn: int, heard_samples: int) -> str:
        heard = self._session.interrupt(turn, heard_samples)
        self._tape.note(tape.Interrupted(at=self._tape.now, turn=turn, heard_samples=heard_samples, heard=heard))
        return heard

    async def outputs(self) -> AsyncIterator[EngineEvent]:
        async for event in self._session.outputs():
            if isinstance(event, ReplyAudio):
                self._tape.sound("reply", event.pcm)
            self._tape.note(told.entry(self._tape.now, event))
            yield event

    async def close(self) -> None:
        history = self._session.history()
        try:
            await self._session.close()
        finally:
            self._tape.end(history)
