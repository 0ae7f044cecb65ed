"""The voice's weights: one file of float16 tensors, a prefix for each part (``training/voice/export.py`` writes it)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from duologue.engine.config import ConfigError
from duologue.engine.models.embedded.voice.layers import Floats

FOLDER = Path(__file__).parent.parent / "weights"
"""Where the shipped voice is."""
FILE = "voice.safetensors"


def load(folder: Path, part: str) -> dict[str, Floats]:
    """The tensors of ``part`` ("talker", "codec" or "letters"), float32; raises ``ConfigError`` if they are missing."""
    prefix = f"{part}."
    return {name.removeprefix(prefix): tensor.astype(np.float32)
            for name, tensor in load_file(present(folder / FILE)).items() if name.startswith(prefix)}


def present(file: Path) -> Path:
    """``file`` itself; raises ``ConfigError`` if it is missing."""
    if not file.is_file():
        raise ConfigError(f"the trained voice needs {file}: install the package whole, or run python -m training.voice")
    return file
