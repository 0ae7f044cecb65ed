"""Measure the thinker: ``python -m training.thinker.evaluate [FOLDER]``, the shipped weights or an export in FOLDER.

It answers dialogues that it was not trained on, moment by moment, through the light runner and the format of the run
time: phrasings of which others were trained on, phrasings held out, both with and without a recogniser's errors.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from duologue.engine.models.embedded.thinking.doubt import ASK_BACK, REFUSALS, considered
from duologue.engine.models.embedded.thinking.format import Answer, Heard, Units
from duologue.engine.models.embedded.thinking.model import FOLDER, DecoderOptions, Model, open_model
from duologue.engine.models.embedded.thinking.record import EARLIER
from duologue.engine.models.embedded.thinking.wit import takes
from training.thinker import phrasings
from training.thinker.dialogues import GO_ON, Dialogues
from training.thinker.errors import STATISTICS, Confusions
from training.thinker.moments import KEEP, LISTEN, Moment, path
from training.thinker.phrasebook import Part, Phrasebook
from training.thinker.words import Words

DIALOGUES = 400
_SEED = 1_000_003
_SESSION = "measured"


@dataclass(slots=True)
class Share:
    """How many of how many."""

    right: int = 0
    all: int = 0

    def add(self, right: bool) -> None:
        """Count one."""
        self.right += right
        self.all += 1

    def __str__(self) -> str:
        return f"{self.right / self.all:.2%} of {self.all}" if self.all else "none"


@dataclass(slots=True)
class Figures:
    """What a set of dialogues gave."""

    decisions: defaultdict[str, Share] = field(default_factory=lambda: defaultdict(Share))
    """Whether it listens, speaks or goes on as it should, by what has to be known."""
    intents: Share = field(default_factory=Share)
    slots: Share = field(default_factory=Share)
    """Of calls with slots whose skill is right, those whose slots are."""
    replies: Share = field(default_factory=Share)
    refusals: Share = field(default_factory=Share)
    asks_again: Share = field(default_factory=Share)
    """Of what nobody could understand."""
    wrong_but_asks: Share = field(default_factory=Share)
    """Of wrong answers to what means something, those that ask or refuse and do nothing."""
    errors: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """The figures as text."""
        decided = Share(sum(share.right for share in self.decisions.values()),
                        sum(share.all for share in self.decisions.values()))
        return [f"decisions {decided}: " + ", ".join(f"{kind} {share}" for kind, share in self.decisions.items()),
                f"calls {self.intents}, their slots {self.slots}; replies {self.replies}; refusals {self.refusals}; "
                f"asks again {self.asks_again}; wrong, but asks {self.wrong_but_asks}"]


class Judge:
    """Says which answers are right: those of ``made``'s phrasings."""

    def __init__(self, made: phrasings.Phrasings) -> None:
        self._says = {intent: frozenset(reply.says) for intent, reply in made.replies.items()}
        self._refusals = frozenset(REFUSALS)
        self._asks = self._refusals | {ASK_BACK, GO_ON} | {entry.asks for entry in made.unfinished}

    def judge(self, moment: Moment, answer: Answer, figures: Figures, *, refused: bool = False) -> bool:
        """Count ``answer``, whose call is not made if it is ``refused``; returns whether it is as wanted."""
        wanted = moment.wanted
        kind, _, intent = moment.kind.partition(":")
        decided = (wanted.speaks, wanted.keeps) == (answer.speaks, answer.keeps)
        figures.decisions["answers" if wanted not in (LISTEN, KEEP) else kind].add(decided)
        if not decided or wanted in (LISTEN, KEEP):
            return decided
        if kind == "ask_again":
            right = answer.text in self._asks
            figures.asks_again.add(right)
            return right
        if kind == "out_of_domain":
            right = answer.text in self._refusals
            figures.refusals.add(right)
            return right
        if wanted.call is not None:
            called = answer.call is not None and answer.call.name == wanted.call.name
            figures.intents.add(called)
            right = called and answer.call == wanted.call
            if called and wanted.call.slots:
                figures.slots.add(right)
        else:
            right = answer.text in self._says.get(intent, {wanted.text})
            figures.replies.add(right)
        if not right:
            figures.wrong_but_asks.add(refused or answer.text in self._asks)
        return right


def measure(model: Model, dialogues: Sequence[Sequence[Moment]], judge: Judge) -> Figures:
    """The figures of ``dialogues``."""
    figures = Figures()
    for dialogue in dialogues:
        for moment, answer, refused in answered(model, dialogue):
            if not judge.judge(moment, answer, figures, refused=refused):
                figures.errors.append(f"[{moment.kind}] {_text(moment.heard)} -> {shown(answer)} "
                                      f"(wanted {shown(moment.wanted)})")
    return figures


def answered(model: Model, dialogue: Sequence[Moment]) -> Iterator[tuple[Moment, Answer, bool]]:
    """What ``model`` answers at each moment that is to be learnt, given what is wanted at those before.

    The last says that it is a call which the run time does not make, and asks back instead.
    """
    after: defaultdict[int | None, list[int]] = defaultdict(list)
    for index, moment in enumerate(dialogue):
        after[moment.after].append(index)
    model.sessions.open(_SESSION, model.format.prefix)
    try:
        yield from _answered(model, dialogue, after, None)
    finally:
        model.sessions.close(_SESSION)


def _answered(model: Model, dialogue: Sequence[Moment], after: dict[int | None, list[int]],
              before: int | None) -> Iterator[tuple[Moment, Answer, bool]]:
    sessions, form = model.sessions, model.format
    for index in after.get(before, ()):
        moment = dialogue[index]
        mark = sessions.mark(_SESSION)
        if moment.learnt:
            answer = model.answer(_SESSION, moment.heard, earlier(dialogue, index))
            if moment.heard is not None:
                answer = considered(answer, moment.heard)
            yield moment, answer, answer.call is not None and not takes(answer.call)
            sessions.rollback(_SESSION, mark)
        if index in after:
            tokens = form.listening() if moment.wanted == LISTEN else form.keeping() if moment.wanted == KEEP \
                else form.told(moment.wanted.call, moment.told, cut=moment.cut)
            sessions.record(_SESSION, (form.unit(moment.heard),), tokens, len(tokens))
            yield from _answered(model, dialogue, after, index)
            sessions.rollback(_SESSION, mark)


def earlier(dialogue: Sequence[Moment], index: int) -> Units:
    """The units before that moment from which a call may have words, as at run time."""
    *before, _ = path(dialogue, index)
    return [(dialogue[i].heard, dialogue[i].wanted.call) for i in before[-EARLIER:]]


def shown(answer: Answer) -> str:
    """``answer`` for people to read."""
    if answer.call is not None:
        return f"{answer.call.name} {answer.call.slots}"
    return answer.text or ("goes on" if answer.speaks else "listens")


def _text(heard: Heard | None) -> str:
    if heard is None:
        return "nothing"
    return " ".join((*("over",) * heard.over, *heard.words, *("long",) * heard.long, str(heard.silent_ms)))


def sets(made: phrasings.Phrasings, words: Words, count: int) -> Iterator[tuple[str, list[list[Moment]]]]:
    """The sets to measure with, ``count`` dialogues each."""
    confusions = Confusions.read(STATISTICS, words)
    parts: dict[Part, str] = {"train": "phrasings seen", "held out": "phrasings held out"}
    for part, name in parts.items():
        book = Phrasebook(made, words, part)
        for level, heard in ((0.0, "heard right"), (1.0, "heard with errors")):
            dialogues = Dialogues(book, confusions, "test", {level: 1.0})
            yield f"{name}, {heard}", list(islice(dialogues.endless(_SEED), count))


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.thinker.evaluate", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--dialogues", type=int, default=DIALOGUES, help="of each set")
    parser.add_argument("--errors", type=Path, help="where to write what was answered wrong")
    arguments = parser.parse_args()
    made = phrasings.load()
    model = open_model(DecoderOptions(checkpoint=arguments.folder))
    errors: list[str] = []
    for name, dialogues in sets(made, Words(), arguments.dialogues):
        figures = measure(model, dialogues, Judge(made))
        print(f"--- {name}", *figures.lines(), sep="\n", flush=True)
        errors += [f"--- {name}", *figures.errors]
    if arguments.errors is not None:
        arguments.errors.write_text("\n".join(errors) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
