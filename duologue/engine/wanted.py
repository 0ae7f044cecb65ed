"""Turn mode: the request for a reply that nothing has come of yet. There is one at most."""

from __future__ import annotations

from dataclasses import replace

from duologue.engine.messages import Respond


class Wanted:
    """One session's."""

    def __init__(self) -> None:
        self._request: Respond | None = None
        self._unit = 0
        """The unit before which it was made."""

    def ask(self, request: Respond, unit: int) -> None:
        """Note a request made before ``unit``; it takes the place of one that waits."""
        self._request, self._unit = request, unit

    def take_back(self) -> None:
        """Note that it is not wanted any more."""
        self._request = None

    def answered(self, unit: int) -> None:
        """Note that a reply or a call has begun in ``unit``: the answer to a request made before that."""
        if self._unit <= unit:
            self._request = None

    def request(self, epoch: int) -> tuple[Respond, ...]:
        """The request, if there is one, as it is put in ``epoch``."""
        return () if self._request is None else (replace(self._request, epoch=epoch),)

    def place(self, decided: int) -> int:
        """The unit before which it is put again to a thinker that has answers to all units before ``decided``."""
        return max(self._unit, decided)
