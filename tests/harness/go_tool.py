"""Go programs that tests use."""

from __future__ import annotations

import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Literal

_SCRIPT = Path(__file__).parents[2] / "scripts" / "go-tool.sh"


@lru_cache
def go_tool(name: Literal["livekit-server", "compose-spec"]) -> str:
    """Where a program lies; it is built if there is none of the wanted version (see the script)."""
    return subprocess.run(["sh", str(_SCRIPT), name], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
