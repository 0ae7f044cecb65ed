"""The session as a client sees it: one object, merged from what it asked for, and what that means for the call."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from duologue.agent.realtime.formats import AudioFormat, BadFormatError, wanted

MAX_SESSION_CHARS = 131_072
"""A session object longer than this as JSON is refused: it goes back whole, and data channels carry 262,144 bytes."""

MAX_TOOLS = 128
"""Tools a session may have, as with OpenAI."""

_VAD = {"type": "semantic_vad", "eagerness": "auto", "create_response": True, "interrupt_response": True}


class BadSessionError(ValueError):
    """A session object that cannot be used; nothing of it was taken."""

    def __init__(self, param: str, message: str) -> None:
        super().__init__(message)
        self.param = param


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A function the model may call; ``parameters`` is the JSON schema of its arguments, as text."""

    name: str
    description: str
    parameters: str


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a client wants of its call.

    ``auto_respond``: the model decides when to speak; if not, it waits to be asked (turn mode). ``detects``: the client
    is told of speech. ``interruptible``: speech over a reply may cut it.
    """

    instructions: str = ""
    voice: str = ""
    tools: tuple[ToolSpec, ...] = ()
    auto_respond: bool = True
    detects: bool = True
    interruptible: bool = True
    ours: bool = False
    """Whether it is sent our own events."""


class SessionObject:
    """The client's session object, as it stands."""

    def __init__(self, model: str) -> None:
        self.input_format = AudioFormat()
        self.output_format = AudioFormat()
        self._data: dict[str, Any] = {
            "type": "realtime", "object": "realtime.session", "id": f"sess_{secrets.token_hex(10)}", "model": model,
            "output_modalities": ["audio"], "instructions": "", "tools": [], "tool_choice": "auto",
            "audio": {"input": {"format": self.input_format.wire(), "turn_detection": _VAD},
                      "output": {"format": self.output_format.wire(), "voice": model}},
        }
        self._fixed = {key: self._data[key] for key in ("type", "object", "id", "model", "output_modalities")}
        self.wishes = Wishes()

    @property
    def data(self) -> dict[str, Any]:
        """The object as it is sent."""
        return self._data

    def merged(self, change: Mapping[str, Any]) -> SessionObject:
        """The session after a deep partial merge; this one stays. Raises ``BadSessionError``."""
        try:
            input_format = wanted(change, "input") or self.input_format
            output_format = wanted(change, "output") or self.output_format
        except BadFormatError as bad:
            raise BadSessionError("session.audio", str(bad)) from bad
        data = {**_merge(self._data, change), **self._fixed}
        audio = data["audio"]
        if not isinstance(audio, dict) or not all(isinstance(audio.get(way), dict) for way in ("input", "output")):
            raise BadSessionError("session.audio", "session.audio, its input and its output must be objects.")
        audio["input"]["format"], audio["output"]["format"] = input_format.wire(), output_format.wire()
        if audio["input"].get("turn_detection") is not None:
            # What a client leaves out has OpenAI's defaults: some would cancel replies themselves without them.
            audio["input"]["turn_detection"] = {**_VAD, **_object(audio["input"]["turn_detection"], "turn_detection")}
        if len(json.dumps(data)) > MAX_SESSION_CHARS:
            raise BadSessionError("session", f"A session may have at most {MAX_SESSION_CHARS} characters of JSON.")
        after = SessionObject.__new__(SessionObject)
        after.input_format, after.output_format = input_format, output_format
        after._data, after._fixed = data, self._fixed
        after.wishes = _read(data)
        return after

    def with_voice(self, voice: str) -> SessionObject:
        """The session with the voice it had: one that speaks cannot have another."""
        return self.merged({"audio": {"output": {"voice": voice or self._fixed["model"]}}})


def _read(data: Mapping[str, Any]) -> Wishes:
    turns = data["audio"]["input"].get("turn_detection")
    instructions, voice = data.get("instructions"), data["audio"]["output"].get("voice")
    ours = data.get("duologue")
    return Wishes(
        instructions=instructions if isinstance(instructions, str) else "",
        voice=voice if isinstance(voice, str) and voice != data["model"] else "",
        tools=() if data.get("tool_choice") == "none" else _tools(data.get("tools")),
        auto_respond=turns is not None and turns.get("create_response") is not False,
        detects=turns is not None,
        interruptible=turns is not None and turns.get("interrupt_response") is not False,
        ours=isinstance(ours, Mapping) and ours.get("events") is True)


def _tools(said: object) -> tuple[ToolSpec, ...]:
    """The functions among the tools; other kinds (``mcp``) are not ours to call."""
    if said is None:
        return ()
    if not isinstance(said, list) or len(said) > MAX_TOOLS:
        raise BadSessionError("session.tools", f"session.tools must be a list of at most {MAX_TOOLS} tools.")
    tools: dict[str, ToolSpec] = {}
    for number, one in enumerate(said):
        tool = _object(one, f"tools[{number}]")
        if tool.get("type", "function") != "function":
            continue
        name, description = tool.get("name"), tool.get("description") or ""
        if not isinstance(name, str) or not 0 < len(name) <= 64 or not isinstance(description, str):
            raise BadSessionError(f"session.tools[{number}]",
                                  "A tool needs a name of at most 64 characters, and its description must be text.")
        schema = tool.get("parameters")
        tools[name] = ToolSpec(name, description,
                               json.dumps({} if schema is None else _object(schema, f"tools[{number}].parameters")))
    return tuple(tools.values())


def _object(said: object, name: str) -> dict[str, Any]:
    if not isinstance(said, dict):
        raise BadSessionError(f"session.{name}", f"{name} must be an object.")
    return said


def _merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in change.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return merged
