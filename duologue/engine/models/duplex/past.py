"""What a session that is opened again was: the journal's record, asked for by what a thinker has to put back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from duologue.engine.messages import AgentSaid, CallerSaid, Decided, Open


class Past:
    """The record of one ``Open``; what is taken of it is gone."""

    def __init__(self, opening: Open) -> None:
        self.decided = opening.decided
        """Units before this one have their decision."""
        self.epoch = 0
        """The epoch as far as the session has been put back."""
        self._now = opening.epoch
        self._outputs = deque(opening.outputs)
        self._typed = deque(item for item in opening.history if isinstance(item, CallerSaid))
        self._said = {item.turn: item for item in opening.history if isinstance(item, AgentSaid)}
        self._turns = {output.turn for output in opening.outputs}

    @property
    def next_turn(self) -> int:
        """A number that no reply has had."""
        return max((turn + 1 for turn in self._turns | set(self._said)), default=0)

    def answers(self, before: int) -> Iterator[Decided]:
        """Take the answers to units before ``before``, in order."""
        while self._outputs and self._outputs[0].unit < before:
            yield self._outputs.popleft()

    def typed(self, before: int | None) -> Iterator[str]:
        """Take the texts the caller typed up to unit ``before``, in order; all if it is None."""
        while self._typed and (before is None or self._typed[0].unit <= before):
            yield self._typed.popleft().text

    def epochs(self, up_to: int | None = None) -> Iterator[tuple[int, dict[int, str]]]:
        """Go through the epochs up to ``up_to``, or to the present one: each with the replies cut as it began."""
        while self.epoch < (self._now if up_to is None else up_to):
            self.epoch += 1
            yield self.epoch, {said.turn: said.text for said in self._said.values() if said.cut == self.epoch}

    def known(self, turn: int) -> bool:
        """Whether anybody was told of this reply."""
        return turn in self._said

    @property
    def last(self) -> AgentSaid | None:
        """The last reply, unless it was cut."""
        said = self._said[max(self._said)] if self._said else None
        return said if said is not None and said.cut is None else None

    def answered(self, turn: int) -> bool:
        """Whether units in which this reply was spoken had their answers."""
        return turn in self._turns
