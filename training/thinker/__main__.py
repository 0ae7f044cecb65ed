"""Make the thinker: ``python -m training.thinker OUT`` makes its dialogues, trains, exports and prints its figures.

What is in ``OUT`` already is kept and gone on with; about two hours of CPU time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Do all steps, each in a process of its own, so that one's memory is free for the next."""
    parser = argparse.ArgumentParser(prog="python -m training.thinker", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    for name in ("pool", "vectors", "train", "export", "evaluate"):
        print(f"--- {name}", flush=True)
        arguments = [] if name == "evaluate" else [str(folder)]
        subprocess.run([sys.executable, "-m", f"training.thinker.{name}", *arguments], check=True)


if __name__ == "__main__":
    main()
