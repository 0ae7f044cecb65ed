"""Put the trained parts into the package: ``python -m training.voice.export OUT [--to FOLDER]``.

It writes ``voice.safetensors`` (float16; the codec's encoder stays behind) and copies ``lexicon.xz``.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from duologue.engine.models.embedded.voice import weights
from duologue.engine.models.embedded.voice.pronouncer import LEXICON
from training import course


def export(folder: Path, to: Path) -> int:
    """Write ``to``'s files from the checkpoints in ``folder``; says how many parameters there are."""
    parts = {part: course.weights(folder / f"{part}.pt", part) for part in ("codec", "talker", "letters")}
    tensors = {f"{part}.{name}": tensor.numpy().astype(np.float16)
               for part, state in parts.items() for name, tensor in state.items() if not name.startswith("encoder")}
    to.mkdir(parents=True, exist_ok=True)
    save_file(tensors, to / weights.FILE)
    shutil.copyfile(folder / LEXICON, to / LEXICON)
    return sum(tensor.size for tensor in tensors.values())


def main() -> None:
    """Export as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.voice.export", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--to", type=Path, default=weights.FOLDER)
    arguments = parser.parse_args()
    count = export(arguments.folder, arguments.to)
    size = sum((arguments.to / name).stat().st_size for name in (weights.FILE, LEXICON))
    print(f"{count / 1e6:.2f} M parameters, {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
