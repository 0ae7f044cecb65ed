"""A session that only says texts it is given: no caller, and a thinker that hears nothing and decides nothing.

It is admitted, placed, rebuilt and given back like any other, and its replies are fenced and ended like any others.
"""

from __future__ import annotations

from duologue.engine.brief import Brief
from duologue.engine.config import PipelineConfig
from duologue.engine.messages import Item, Unit
from duologue.engine.pipeline import Graph
from duologue.engine.session import EngineSession
from duologue.engine.state import SessionState

_DEAF = "this session only says texts; for one that hears, use Engine.open"


class SpeechState(SessionState):
    """Its state. Raises ``ValueError`` where the pipeline has no stage that speaks."""

    def __init__(self, session: str, config: PipelineConfig, graph: Graph, voice: str) -> None:
        if not graph.voice:
            raise ValueError(f"the pipeline {config.name!r} has no talker: it cannot say a text")
        super().__init__(session, config, graph, Brief(voice=voice, auto_respond=False))

    def say(self, text: str, rate: float) -> None:
        """Begin a reply of ``text``. Raises ``ValueError`` while another is open."""
        if self._turns.open:
            raise ValueError("a text is being said; say the next one when it is over")
        if not self.over:
            self._replies.say(text, rate)

    def append(self, unit: Unit) -> None:
        """Raise ``ValueError``."""
        raise ValueError(_DEAF)

    def inject(self, item: Item) -> None:
        """Raise ``ValueError``."""
        raise ValueError(_DEAF)

    def respond(self, instructions: str = "") -> None:
        """Raise ``ValueError``."""
        raise ValueError(_DEAF)


class SpeechSession(EngineSession):
    """Texts in, their audio out: each is a reply with the events of one. What hears raises ``ValueError``."""

    _state: SpeechState

    def say(self, text: str, rate: float = 1.0) -> None:
        """Begin to say ``text`` as the next reply, ``rate`` times as fast as the voice by itself.

        Raises ``ValueError`` while the one before has not had its terminal event. In a session that is over nothing
        comes of it.
        """
        self._state.say(text, rate)
        self._settle()
