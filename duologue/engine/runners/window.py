"""Sliding past the context limit: which of the oldest entries of a session go, by a rule in the config.

Pure, and a function of the sequence alone: a session that is put together again elsewhere slides at the same places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field, model_validator

from duologue.strict import Strict

_LOW_SHARE = 7 / 8
"""The low mark where none is given, as a share of the high one (MiniCPM-o 4.5: 3,500 of 4,000 tokens)."""


class WindowConfig(Strict):
    """When a session that grows too long lets its oldest entries go, and what stays of them."""

    rule: Literal["drop", "text"] = "drop"
    """``drop`` keeps nothing of them, ``text`` the text that was said in them, behind the prefix."""
    high: int | None = Field(default=None, gt=0)
    """Positions a session may take, its next answer included; as many as the runner holds of one if not given."""
    low: int | None = Field(default=None, gt=0)
    """Positions it is brought down to; 7/8 of ``high`` if not given. Each slide computes the whole window anew, so
    the distance of the two is how seldom that is."""
    text_tokens: int = Field(default=500, ge=0)
    """Text tokens kept by the rule ``text``, the last ones."""

    @model_validator(mode="after")
    def _marks_in_order(self) -> Self:
        if self.high is not None and self.low is not None and self.low > self.high:
            raise ValueError(f"low ({self.low}) must not be more than high ({self.high})")
        return self


@dataclass(frozen=True, slots=True)
class Slide:
    """Forget the ``drop`` oldest entries, and keep the last ``text`` text tokens of what is forgotten."""

    drop: int
    text: int


class Window:
    """The rule, its marks settled; ``limit`` is the most positions one session can have.

    Raises ``ValueError`` for marks beyond that.
    """

    def __init__(self, config: WindowConfig, limit: int) -> None:
        self.high = config.high or limit
        self.low = config.low or int(self.high * _LOW_SHARE)
        self.text = config.text_tokens if config.rule == "text" else 0
        if self.high > limit:
            raise ValueError(f"window.high is {self.high}, but the runner holds {limit} positions of one session")
        if self.low > self.high:
            raise ValueError(f"window.low is {self.low}, but high is {self.high}")

    def slide(self, prefix: int, frame: int, remembered: int, entries: Sequence[tuple[int, int]],
              room: int) -> Slide | None:
        """What to forget so that ``room`` more positions fit; None when they do.

        ``frame`` is how many positions stand around remembered text, of which there are ``remembered`` tokens now;
        ``entries`` are size and text tokens of each, oldest first. The last, which is to be answered, always stays:
        what results is too long only when that entry alone is.
        """
        rest = sum(size for size, _ in entries)
        if prefix + (frame + remembered if remembered else 0) + rest + room <= self.high:
            return None
        said = remembered
        for drop in range(len(entries)):
            text = min(self.text, said)
            if prefix + (frame + text if text else 0) + rest + room <= self.low:
                return Slide(drop, text)
            if drop < len(entries) - 1:
                rest -= entries[drop][0]
                said += entries[drop][1]
        # Only the last entry stays; of the text as much as there is room for.
        return Slide(max(len(entries) - 1, 0), max(min(self.text, said, self.low - prefix - frame - rest - room), 0))
