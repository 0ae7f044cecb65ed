"""What voice activity detection says of the caller's samples; positions count from the start of the call."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hint:
    """Speech may have begun at sample ``at``."""

    at: int


@dataclass(frozen=True, slots=True)
class Onset:
    """Speech has begun at sample ``at``."""

    at: int


@dataclass(frozen=True, slots=True)
class Offset:
    """Speech has ended at sample ``at``, and there was none since."""

    at: int


@dataclass(frozen=True, slots=True)
class Probability:
    """How likely speech is, 0..1, in the window that ends before sample ``upto``."""

    value: float
    upto: int


VoiceEvent = Hint | Onset | Offset | Probability
