"""Make the voice: ``python -m training.voice OUT`` speaks the corpus, trains, exports and prints the held-out figures.

What is in ``OUT`` already is kept and gone on with; about two hours of CPU time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Do all steps, each in a process of its own, so that one's memory is free for the next."""
    parser = argparse.ArgumentParser(prog="python -m training.voice", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    steps = [["lexicon", str(folder)], ["corpus", str(folder)], ["codec", str(folder)], ["letters", str(folder)],
             ["talker", str(folder)], ["export", str(folder)], ["compare"], ["evaluate"], ["align"]]
    made = {"lexicon": "lexicon.xz", "corpus": "corpus.npz"}
    for name, *arguments in steps:
        if name in made and (folder / made[name]).exists():
            continue
        print(f"--- {name}", flush=True)
        subprocess.run([sys.executable, "-m", f"training.voice.{name}", *arguments], check=True)


if __name__ == "__main__":
    main()
