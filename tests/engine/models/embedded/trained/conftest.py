"""A trained voice without training: random weights in the real shapes, made by the modules that are trained."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from duologue.engine.models.embedded.voice import weights
from duologue.engine.models.embedded.voice.pronouncer import LEXICON
from training.voice.codec import Codec
from training.voice.export import export
from training.voice.letters import Reader
from training.voice.model import Talker


@dataclass(frozen=True)
class Modules:
    """What is trained, and the ``folder`` it was exported to."""

    codec: Codec
    talker: Talker
    reader: Reader
    folder: Path


@pytest.fixture(scope="package")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Modules:
    """As lively as trained ones: what comes out depends on all that goes in."""
    torch.manual_seed(5)
    parts = {"codec": Codec(), "talker": Talker(), "letters": Reader()}
    made = tmp_path_factory.mktemp("voice")
    with torch.no_grad():
        for name, part in parts.items():
            for parameter in part.parameters():
                if parameter.dim() > 1:
                    parameter.normal_(0, 0.5 if parameter.dim() == 3 else 2 / parameter.shape[-1] ** 0.5)
            part.half().float()
            torch.save({name: part.state_dict()}, made / f"{name}.pt")
    shutil.copyfile(weights.FOLDER / LEXICON, made / LEXICON)
    export(made, made / "exported")
    codec, talker, reader = parts.values()
    assert isinstance(codec, Codec)
    assert isinstance(talker, Talker)
    assert isinstance(reader, Reader)
    return Modules(codec, talker, reader, made / "exported")
