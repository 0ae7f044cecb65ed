"""Put the trained thinker into the package: ``python -m training.thinker.export OUT [--to FOLDER]``.

It writes a stock folder, which others load as it is: ``config.json``, ``model.safetensors`` (float16) and
``tokenizer.json``.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from safetensors.torch import save_file

from duologue.engine.models.embedded.thinking.model import FOLDER
from duologue.engine.models.embedded.thinking.vocabulary import Vocabulary
from training.thinker import vocabulary
from training.thinker.model import config, trained


def export(folder: Path, to: Path) -> int:
    """Write ``to``'s files from the checkpoint in ``folder``; says how many parameters there are."""
    state = trained(folder)
    to.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.half().contiguous() for name, tensor in state.items()}, to / "model.safetensors",
              metadata={"format": "pt"})
    made = config(len(Vocabulary.read(folder / vocabulary.FILE)))
    (to / "config.json").write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    shutil.copyfile(folder / vocabulary.FILE, to / vocabulary.FILE)
    return sum(tensor.numel() for tensor in state.values())


def main() -> None:
    """Export as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.thinker.export", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--to", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    count = export(arguments.folder, arguments.to)
    size = sum(file.stat().st_size for file in arguments.to.iterdir())
    print(f"{count / 1e6:.2f} M parameters, {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
