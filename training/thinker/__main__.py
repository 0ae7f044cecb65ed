"""Make the thinker: ``python -m training.thinker OUT`` makes its dialogues, trains, exports and prints its figures.

What is in ``OUT`` already is kept and gone on with; about two hours of CPU time.
"""

from __future__ import annotations

from training import command
from training.command import Step


def main() -> None:
    """Do all steps."""
    command.every("training.thinker", __doc__, [
        Step("pool"), Step("vectors"), Step("train", trains=True), Step("export"), Step("evaluate", folder=False)])


if __name__ == "__main__":
    main()
