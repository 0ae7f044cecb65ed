"""Make the encoder: ``python -m training.hearing OUT`` speaks its sentences, trains, exports and prints its figures.

What is in ``OUT`` already is kept and gone on with; about half an hour of CPU time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Do all steps, each in a process of its own, so that one's memory is free for the next."""
    parser = argparse.ArgumentParser(prog="python -m training.hearing", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    for name, *arguments in (["corpus", str(folder)], ["train", str(folder)], ["export", str(folder)], ["evaluate"]):
        print(f"--- {name}", flush=True)
        subprocess.run([sys.executable, "-m", f"training.hearing.{name}", *arguments], check=True)


if __name__ == "__main__":
    main()
