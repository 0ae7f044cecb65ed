"""What a session is told of its part: what to be like, what it may do, and whether it speaks unasked."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from duologue.engine.messages import Instructions, Tool, Tools

MAX_TOOLS = 128
"""Tools that a session may have, as many as OpenAI's Realtime API takes."""


@dataclass(frozen=True, slots=True)
class Brief:
    """Instructions, voice, tools and who begins replies. Raises ``ValueError`` for tools that cannot be called."""

    instructions: str = ""
    voice: str = ""
    tools: tuple[Tool, ...] = ()
    auto_respond: bool = True
    """Whether the thinker decides by itself when to speak; if not, it waits to be asked (turn mode)."""

    def __post_init__(self) -> None:
        _check(self.tools)

    def after(self, item: Instructions | Tools) -> Brief:
        """The brief from ``item`` on."""
        if isinstance(item, Instructions):
            return replace(self, instructions=item.text)
        return replace(self, tools=item.tools)


def _check(tools: Iterable[Tool]) -> None:
    names: set[str] = set()
    for tool in tools:
        if not tool.name:
            raise ValueError("a tool has no name; give it one")
        if tool.name in names:
            raise ValueError(f"two tools are named {tool.name!r}; give each a name of its own")
        names.add(tool.name)
        try:
            schema = json.loads(tool.parameters)
        except (ValueError, RecursionError):
            schema = None
        if not isinstance(schema, dict):
            raise ValueError(f"the parameters of the tool {tool.name!r} are not a JSON object; give a JSON schema, "
                             f"or {{}} for a tool without arguments")
    if len(names) > MAX_TOOLS:
        raise ValueError(f"{len(names)} tools given, but a session may have {MAX_TOOLS}")
