"""The turn-taking diagram of docs/architecture.md, made from the transition table.

``python -m duologue.agent.diagram docs/architecture.md`` rewrites it there, between its two markers.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from duologue.agent.conversation import TRANSITIONS
from duologue.agent.turn_events import State

_MARKED = re.compile(r"(<!-- turn-taking:begin -->\n).*?(<!-- turn-taking:end -->)", re.DOTALL)


def mermaid() -> str:
    """Give the table as a Mermaid state diagram; transitions that end the call are left out, all states have one."""
    lines = ["stateDiagram-v2", f"    [*] --> {State.LISTENING.value}"]
    for row in TRANSITIONS:
        if row.target is State.ENDED:
            continue
        label = row.event.__name__
        if row.guard.__doc__:
            label += f" [{row.guard.__doc__}]"
        if row.action.__doc__:
            label += f" / {row.action.__doc__}"
        lines.append(f"    {row.state.value} --> {row.target.value}: {label}")
    return "\n".join(lines)


def embed(page: str) -> str:
    """Give ``page`` with the diagram between its markers made anew."""
    return _MARKED.sub(lambda match: f"{match[1]}```mermaid\n{mermaid()}\n```\n{match[2]}", page)


if __name__ == "__main__":
    _file = Path(sys.argv[1])
    _file.write_text(embed(_file.read_text(encoding="utf-8")), encoding="utf-8")
