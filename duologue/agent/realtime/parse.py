"""From a client's JSON text to a typed event, or a clear refusal."""

from __future__ import annotations

import json
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from duologue.agent.realtime.client_events import (
    AudioAppend,
    ClientEvent,
    ItemCreate,
    ItemNamed,
    ItemTruncate,
    Plain,
    ResponseCreate,
    SessionUpdate,
)

MAX_EVENT_CHARS = 65_536
"""A client event longer than this is refused; browsers' data channels carry at most 262,144 bytes a message."""

_KNOWN = {kind: TypeAdapter(model)
          for model in (SessionUpdate, ItemCreate, ItemNamed, ItemTruncate, ResponseCreate, AudioAppend, Plain)
          for kind in get_args(model.model_fields["type"].annotation)}


class BadEventError(ValueError):
    """A client's event that cannot be used; the text says why."""

    def __init__(self, code: str, message: str, event_id: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.event_id = event_id


def parse(message: str) -> ClientEvent:
    """Read one client event. Raises ``BadEventError``."""
    if len(message) > MAX_EVENT_CHARS:
        raise BadEventError("event_too_large", f"An event may have at most {MAX_EVENT_CHARS} characters.")
    return _validated(_read(message))


def parse_audio(message: str) -> tuple[str, AudioAppend | None]:
    """Read what a client event is, and the whole of it if it is audio, however long. Raises ``BadEventError``."""
    raw = _read(message)
    event = _validated(raw) if raw["type"] == "input_audio_buffer.append" else None
    return raw["type"], event if isinstance(event, AudioAppend) else None


def _read(message: str) -> dict[str, Any]:
    try:
        raw = json.loads(message)
    except (ValueError, RecursionError):
        raise BadEventError("invalid_json", "The message is not valid JSON.") from None
    if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
        raise BadEventError("bad_event", "An event is a JSON object with a string 'type'.")
    return raw


def _validated(raw: dict[str, Any]) -> ClientEvent:
    event_id = raw.get("event_id") if isinstance(raw.get("event_id"), str) else None
    adapter = _KNOWN.get(raw["type"])
    if adapter is None:
        raise BadEventError("unknown_event", f"There is no client event of type {raw['type'][:64]!r}.", event_id)
    try:
        event: ClientEvent = adapter.validate_python(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadEventError("bad_event", f"{raw['type']}: {where}: {first['msg']}", event_id) from None
    return event
