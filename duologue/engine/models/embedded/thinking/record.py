"""One session's sequence: what was heard and said. A question adds nothing to it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from duologue.engine.models.embedded.thinking.doubt import considered
from duologue.engine.models.embedded.thinking.format import Answer, Call, Heard
from duologue.engine.models.embedded.thinking.model import Model

_MOST_UNITS = 3
"""Units that one reply of the thinker's own may take."""
EARLIER = 2
"""Units before the last from which a call may have words: what is asked back for, or corrected, stands there."""

_KEPT = 16
"""Units of which that is remembered: replies that are undone are among the last."""


@dataclass(frozen=True, slots=True)
class _Said:
    entry: int
    call: Call | None


class Record:
    """Open in ``model`` from now on, until ``close``."""

    def __init__(self, model: Model, session: str) -> None:
        self._model = model
        self._session = session
        self._said: dict[int, _Said] = {}
        """The entries of replies."""
        self._units: list[tuple[int, tuple[Heard | None, Call | None]]] = []
        """The last entries, with what was heard in them and called."""
        self.asked: tuple[Heard, Answer] | None = None
        """The last question and its answer, if nothing was added to the sequence since."""
        model.sessions.open(session, model.format.prefix)

    def close(self) -> None:
        """Give back what is held."""
        self._model.sessions.close(self._session)

    def ask(self, heard: Heard) -> Answer:
        """What the thinker does about ``heard``, said at this moment, if it is sure."""
        form = self._model.format
        if self.asked is not None and form.question(self.asked[0]) == form.question(heard):
            return self.asked[1]
        mark = self._model.sessions.mark(self._session)
        answer = self._answered(heard)
        for _ in range(_MOST_UNITS - 1):
            if answer.whole or not answer.text:
                break
            more = self._answered(None)
            if not more.text:
                break
            answer = replace(more, text=f"{answer.text} {more.text}", likelihood=answer.likelihood * more.likelihood)
        self._model.sessions.rollback(self._session, mark)
        answer = considered(answer, heard)
        self.asked = heard, answer
        return answer

    def listened(self, heard: Heard) -> None:
        """Add what was heard, and not answered."""
        self._add(heard, None, self._model.format.listening())

    def kept(self, heard: Heard) -> None:
        """Add what was heard over the agent's voice and changed nothing."""
        self._add(heard, None, self._model.format.keeping())

    def replied(self, turn: int, heard: Heard | None, call: Call | None, text: str) -> None:
        """Add what was heard and reply ``turn``, made by ``call`` or the thinker itself; None: it came unasked."""
        entry = self._add(heard, call, self._model.format.told(call, text))
        self._said[turn] = _Said(entry, call)

    def cut(self, turn: int, text: str) -> None:
        """Only ``text`` was heard of reply ``turn``."""
        said = self._said.get(turn)
        if said is not None:
            self._model.sessions.revise(self._session, said.entry, self._model.format.told(said.call, text, cut=True))
            self.asked = None

    def undo(self, turn: int) -> None:
        """Take reply ``turn``, what it answers, and all since out of the sequence."""
        said = self._said.get(turn)
        if said is not None:
            self._model.sessions.rollback(self._session, said.entry)
            self._said = {number: other for number, other in self._said.items() if other.entry < said.entry}
            self._units = [unit for unit in self._units if unit[0] < said.entry]
            self.asked = None

    def _answered(self, heard: Heard | None) -> Answer:
        return self._model.answer(self._session, heard, [unit for _, unit in self._units[-EARLIER:]])

    def _add(self, heard: Heard | None, call: Call | None, answer: tuple[int, ...]) -> int:
        form = self._model.format
        self.asked = None
        entry = self._model.sessions.record(self._session, form.pieces(heard), answer, len(answer))
        self._units = [*self._units[-_KEPT:], (entry, (heard, call))]
        return entry
