"""What was said before a session began, for a model that remembers only what it heard and said in it."""

from __future__ import annotations

from collections.abc import Sequence

from livekit.agents import llm


def told(items: Sequence[llm.ChatItem]) -> str:
    """A conversation as one text for the model's instructions."""
    lines = ["The conversation so far:"]
    for item in items:
        match item:
            case llm.ChatMessage() if item.text_content:
                lines.append(f"{item.role}: {item.text_content}")
            case llm.FunctionCall():
                lines.append(f"{item.name} was called with {item.arguments}")
            case llm.FunctionCallOutput():
                lines.append(f"{item.name} answered {item.output}")
    return "\n".join(lines)
