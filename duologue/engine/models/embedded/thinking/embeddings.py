"""A decoder's table of embeddings: what its tokens are as rows, and, since it is tied, what its states say of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from duologue.engine.config import ConfigError
from duologue.engine.runners.base import Rows


def embeddings(file: Path) -> Rows:
    """A decoder's input embeddings, float32 (tokens, hidden_size); raises ``ConfigError`` where it has none."""
    try:
        with safe_open(file, "np") as held:
            table: Rows = held.get_tensor("model.embed_tokens.weight").astype(np.float32)
            return table
    except (OSError, SafetensorError, TypeError) as error:
        raise ConfigError(f"{file}: the trained thinker's embeddings cannot be read ({error})") from None
