"""Put the trained encoder into the package: ``python -m training.hearing.export OUT [--to FILE]``.

It writes ``hearing.safetensors`` (float16; what told phones stays behind) with the pieces' names.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from duologue.engine.models.embedded.hearing.opening import FILE
from duologue.engine.models.embedded.hearing.pieces import Pieces
from duologue.engine.models.embedded.thinking.model import FOLDER
from duologue.engine.models.embedded.thinking.vocabulary import Vocabulary
from training import course


def export(folder: Path, to: Path) -> int:
    """Write ``to`` from the checkpoint in ``folder``; says how many parameters there are."""
    tensors = {name: tensor.numpy().astype(np.float16)
               for name, tensor in course.weights(folder / "hearing.pt", "hearing").items()
               if not name.startswith("phones.")}
    pieces = Pieces.of(Vocabulary.read(FOLDER / "tokenizer.json"))
    save_file(tensors, to, {"pieces": json.dumps(pieces.names)})
    return sum(tensor.size for tensor in tensors.values())


def main() -> None:
    """Export as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.hearing.export", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--to", type=Path, default=FILE)
    arguments = parser.parse_args()
    count = export(arguments.folder, arguments.to)
    print(f"{count / 1e6:.2f} M parameters, {arguments.to.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
