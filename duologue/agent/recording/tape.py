"""A recording: what went into a call and what came out of it, in the order in which it happened.

A folder a call. ``tape.jsonl`` holds an entry a line; ``at`` is the number of the caller's samples (16 kHz) by then.
Audio is beside it, in the order of the entries that refer to it: ``caller.wav`` (what was fed, 16 kHz), ``agent.wav``
(what was pulled, at the pipeline's output rate) and ``reply.wav`` (the replies' chunks as they came from the engine).
``call.json`` says which call it was and under which config.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from duologue.agent.config import ConversationConfig
from duologue.engine import Brief, ConfigError, Pcm, PipelineConfig
from duologue.strict import Strict

WAV_HEADER = 44
"""Bytes of a WAV file's header as this package writes it (RIFF, fmt of 16 bytes, data)."""


class Entry(Strict):
    """One thing that happened; ``at`` is in the caller's samples."""

    at: int


class Connected(Entry):
    """The call's media and control channel came up."""

    kind: Literal["connected"] = "connected"
    voice_in_events: bool = False


class Fed(Entry):
    """``samples`` of the caller's audio came, of which ``concealed`` were made up."""

    kind: Literal["fed"] = "fed"
    samples: int
    concealed: int = 0


class Pulled(Entry):
    """``samples`` of the reply were played.

    Or given to a client that plays them itself, which of those before cannot have played the last ``ahead`` yet.
    """

    kind: Literal["pulled"] = "pulled"
    samples: int
    ahead: int | None = None


class Received(Entry):
    """A control message came."""

    kind: Literal["received"] = "received"
    message: str


class Key(Entry):
    """A telephone's key was pressed."""

    kind: Literal["key"] = "key"
    key: str


class Gone(Entry):
    """The caller hung up or was lost."""

    kind: Literal["gone"] = "gone"
    reason: str


class Told(Entry):
    """The engine said something; audio of ``samples`` is in ``reply.wav``."""

    kind: Literal["told"] = "told"
    event: dict[str, Any]
    samples: int = 0


class Sent(Entry):
    """The client was told something."""

    kind: Literal["sent"] = "sent"
    message: dict[str, Any]


class Appended(Entry):
    """The engine was given a unit."""

    kind: Literal["appended"] = "appended"
    unit: int
    speech: float
    concealed: int
    agent_audible: int


class Injected(Entry):
    """The engine was given an item between two units."""

    kind: Literal["injected"] = "injected"
    item: dict[str, Any]


class Reopened(Entry):
    """The engine's session began again with another brief."""

    kind: Literal["reopened"] = "reopened"
    brief: Brief


class Responded(Entry):
    """The engine was asked for a reply."""

    kind: Literal["responded"] = "responded"
    instructions: str


class Interrupted(Entry):
    """A reply was cut at ``heard_samples`` of its audio; ``heard`` is the text of that."""

    kind: Literal["interrupted"] = "interrupted"
    turn: int
    heard_samples: int
    heard: str


AnyEntry = (Connected | Fed | Pulled | Received | Key | Gone | Told | Sent | Appended | Reopened | Injected | Responded
            | Interrupted)
ENTRY: TypeAdapter[AnyEntry] = TypeAdapter(Annotated[AnyEntry, Field(discriminator="kind")])


class CallSheet(Strict):
    """``call.json``."""

    call_id: str
    transport: str
    session: str
    """The engine session's name."""
    started: str
    """When, in ISO 8601 and UTC."""
    pipeline: PipelineConfig
    conversation: ConversationConfig
    wishes: dict[str, Any]
    """The client's own session object."""
    brief: Brief
    """What the engine session was opened with."""
    dropped: int | None = None
    """Entries that a slow disk cost; None when the recording was not ended in good order."""
    journal: list[dict[str, Any]] = Field(default_factory=list)
    """What the model remembered at the end: who said what, each reply as far as it was heard, and tools' work."""


class Recording:
    """A recording that is read. Raises ``ConfigError``, whose text says what is wrong with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.sheet = CallSheet.model_validate_json((folder / "call.json").read_text(encoding="utf-8"))
            self.entries = tuple(self._read(folder / "tape.jsonl"))
        except FileNotFoundError as error:
            raise ConfigError(f"{folder} is not a recorded call: it has no {Path(error.filename).name}. "
                              f"Give a folder that 'duologue serve --record DIR' made in DIR, one a call.") from None
        except (ValidationError, UnicodeDecodeError) as error:
            raise ConfigError(f"{folder} cannot be read as a recorded call of this version: {error}") from None

    def audio(self, name: Literal["caller", "agent", "reply"]) -> Pcm:
        """All samples of one WAV file, int16 (n,). One that was not ended in good order is read to its end."""
        path = self.folder / f"{name}.wav"
        if not path.is_file():
            raise ConfigError(f"{self.folder} is not whole: {path.name} is missing.")
        samples = path.read_bytes()[WAV_HEADER:]
        return np.frombuffer(samples[:len(samples) // 2 * 2], np.int16)

    @staticmethod
    def _read(path: Path) -> Iterator[AnyEntry]:
        lines = path.read_text(encoding="utf-8").split("\n")
        for line in lines[:-1]:
            yield ENTRY.validate_json(line)
        # A line without its end was being written when the server was killed.


def line(entry: AnyEntry) -> str:
    """An entry as it stands in the file."""
    return json.dumps(entry.model_dump(mode="json"), separators=(",", ":"), ensure_ascii=False) + "\n"
