"""What happened in a call, in numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    """What happened in a call, for its log line."""

    seconds: float = 0.0
    units: int = 0
    turns: int = 0
    interruptions: int = 0
    false_alarms: int = 0
    concealed_ms: int = 0
    underruns: int = 0
