"""A tiny checkpoint in a folder, and copies of it to spoil."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from duologue.engine.models.minicpmo import random

STORED_SEED = 3


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint as ``random`` writes it. Read only."""
    folder = tmp_path_factory.mktemp("minicpmo") / "tiny"
    random.write(folder, "tiny", STORED_SEED)
    return folder


@pytest.fixture
def folder(stored: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(stored, tmp_path / "checkpoint"))
