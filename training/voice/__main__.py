"""Make the voice: ``python -m training.voice OUT`` speaks the corpus, trains, exports and prints the held-out figures.

What is in ``OUT`` already is kept and gone on with; about two hours of CPU time.
"""

from __future__ import annotations

from training import command
from training.command import Step


def main() -> None:
    """Do all steps."""
    command.every("training.voice", __doc__, [
        Step("lexicon", made="lexicon.xz"), Step("corpus", made="corpus.npz"), Step("codec", trains=True),
        Step("letters", trains=True), Step("talker", trains=True), Step("export"), Step("compare", folder=False),
        Step("evaluate", folder=False), Step("align", folder=False)])


if __name__ == "__main__":
    main()
