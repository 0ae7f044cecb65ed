"""Make the encoder: ``python -m training.hearing OUT`` speaks its sentences, trains, exports and prints its figures.

What is in ``OUT`` already is kept and gone on with; about half an hour of CPU time.
"""

from __future__ import annotations

from training import command
from training.command import Step


def main() -> None:
    """Do all steps."""
    command.every("training.hearing", __doc__, [
        Step("corpus"), Step("train", trains=True), Step("export"), Step("evaluate", folder=False)])


if __name__ == "__main__":
    main()
