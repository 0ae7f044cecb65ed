"""Spoken requests for a session's tools, by what hears them: ``python -m benchmarks.spoken_tools``.

Twelve sentences for four tools in flite's four voices, and as many that ask for none of them, to the thinker of the
first form and to the trained one: how many call the right tool, with the argument that was said where there is one.
Nothing here depends on time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.report import machine
from duologue.engine.messages import Tool, ToolCall
from duologue.engine.models.embedded.thinker import Thinker, create
from tests.engine.models.embedded.caller import PIPELINE, Caller, speech

VOICES = ("kal16", "slt", "awb", "rms")
MINDS = {"first form": "rules", "trained": "trained"}
_LONGEST = 14
"""Units of silence in which an answer has begun."""


def _tool(name: str, description: str = "", **choices: list[str]) -> Tool:
    properties = {key: {"type": "string"} | ({"enum": values} if values else {}) for key, values in choices.items()}
    return Tool(name, description, json.dumps({"type": "object", "properties": properties}))


TOOLS = (_tool("get_weather", "Says what the weather is in a city.", city=[]),
         _tool("turn_on_light", "Switches a light on.", room=["kitchen", "bedroom", "garden"]),
         _tool("play_music", "Plays music of some kind.", kind=["jazz", "rock", "piano"]),
         _tool("check_order", "Says where an order is.", number=[]))
ASKED = {
    "what is the weather in paris": ("get_weather", "paris"), "how is the weather today": ("get_weather", None),
    "tell me the weather in london": ("get_weather", "london"), "turn on the light in the kitchen":
    ("turn_on_light", "kitchen"), "please turn the bedroom light on": ("turn_on_light", "bedroom"),
    "turn on the light": ("turn_on_light", None), "play some jazz music": ("play_music", "jazz"),
    "can you play music": ("play_music", None), "i would like you to play piano music": ("play_music", "piano"),
    "check my order": ("check_order", None), "can you check the order": ("check_order", None),
    "i want to check my order please": ("check_order", None)}
OTHERS = ("what time is it", "tell me a story", "what is seven plus five", "count to ten", "flip a coin", "who are you",
          "remind me to call my mother in five minutes", "spell banana", "what day is it today", "tell me a joke",
          "goodbye", "how are you")


@dataclass(slots=True)
class Figures:
    """How many sentences called what they ask for, with its argument if there is one, and how many others called."""

    called: int = 0
    arguments: int = 0
    needlessly: int = 0
    missed: tuple[str, ...] = ()


def calls(stage: Thinker, session: str, voice: str, sentence: str) -> list[ToolCall]:
    """What one sentence calls in a session of its own."""
    caller = Caller(stage, session, tools=TOOLS)
    outputs = caller.silence(6) + caller.say(speech(voice, sentence)) + caller.silence(_LONGEST)
    caller.hang_up()
    return [output for output in outputs if isinstance(output, ToolCall)]


def measure(wit: str) -> Figures:
    """Say all sentences to one mind."""
    stage = create({"wit": wit, "greeting": "", "warm_recognisers": 1}, PIPELINE)
    figures = Figures()
    for number, (voice, sentence) in enumerate(_spoken((*ASKED, *OTHERS))):
        found = calls(stage, f"{number}", voice, sentence)
        if sentence not in ASKED:
            figures.needlessly += bool(found)
            continue
        name, value = ASKED[sentence]
        right = [call for call in found if call.name == name]
        figures.called += bool(right)
        figures.arguments += any(value is None or value in json.loads(call.arguments).values() for call in right)
        if not right:
            figures.missed += (f"{voice}: {sentence}",)
    return figures


def _spoken(sentences: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    return ((voice, sentence) for voice in VOICES for sentence in sentences)


def main() -> None:
    """Measure both, and print a table."""
    found = {name: measure(wit) for name, wit in MINDS.items()}
    of = len(VOICES) * len(ASKED)
    print(f"\n### Spoken requests for tools\n\n_{machine()}_\n")
    print(f"| thinker | right tool, of {of} | its argument too | called by {len(VOICES) * len(OTHERS)} others |")
    print("|---|---|---|---|")
    for name, figures in found.items():
        print(f"| {name} | {figures.called} | {figures.arguments} | {figures.needlessly} |")
    for name, figures in found.items():
        print(f"\n{name} missed: {'; '.join(figures.missed) or 'nothing'}")


if __name__ == "__main__":
    main()
