"""Measure the thinker by ear: ``python -m training.thinker.spoken [FOLDER]``.

Sentences in flite's ``rms``, a voice of which nothing was learnt, through the run time's ear and recogniser; the
thinker is asked at every silence until it answers, as in a call.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from random import Random

from duologue.engine.models.embedded.options import Options
from duologue.engine.models.embedded.thinking.doubt import considered
from duologue.engine.models.embedded.thinking.format import PAUSES_MS, Answer, Heard
from duologue.engine.models.embedded.thinking.model import FOLDER, DecoderOptions, Model, open_model
from training.thinker import phrasings
from training.thinker.evaluate import Figures, Judge, shown
from training.thinker.hearing import answer
from training.thinker.listening import Caller, fitted
from training.thinker.moments import LISTEN, Moment
from training.thinker.phrasebook import Part, Phrasebook, Said
from training.thinker.words import Words

SENTENCES = 80
VOICE = "rms"
_SEED = 17
_SESSION = "spoken"


def hears(model: Model, words: Sequence[str]) -> Answer:
    """What is answered, and asked again at every silence until it is, to ``words`` after the greeting."""
    sessions, form = model.sessions, model.format
    sessions.open(_SESSION, form.prefix)
    try:
        told = form.told(None, Options.model_fields["greeting"].default)
        sessions.record(_SESSION, (form.unit(None),), told, len(told))
        mark = sessions.mark(_SESSION)
        for silent_ms in PAUSES_MS[1:]:
            heard = Heard(tuple(words), silent_ms)
            found = considered(model.answer(_SESSION, heard), heard)
            sessions.rollback(_SESSION, mark)
            if found.speaks:
                return found
        return LISTEN
    finally:
        sessions.close(_SESSION)


def sentences(book: Phrasebook, count: int, random: Random) -> list[tuple[Said, str]]:
    """``count`` sentences, to skills and of small talk, with what is to be replied; a skill's reply is empty."""
    found: list[tuple[Said, str]] = []
    while len(found) < count:
        intent = random.choice(book.calls if random.random() < 0.6 else book.replies)
        reply = book.phrasings.replies.get(intent)
        found.append((book.sentence(intent, random), reply.says[0] if reply is not None else ""))
    return found


def measure(model: Model, caller: Caller, said: Sequence[tuple[Said, str]], judge: Judge) -> tuple[Figures, int]:
    """The figures of sentences spoken by ``caller``, and how many of them were heard right."""
    figures, exact = Figures(), 0
    for place, (one, says) in enumerate(said):
        heard = caller.say(" ".join(one.words), place)
        exact += heard == one.words
        wanted = answer(one, {slot: one.value(slot) for slot in one.slots}, says)
        moment = Moment(None, None, wanted, f"{'reply' if says else 'call'}:{one.intent}")
        got = hears(model, heard)
        if not judge.judge(moment, got, figures):
            figures.errors.append(f"{' '.join(one.words)} | {' '.join(heard)} -> {shown(got)} (wanted {shown(wanted)})")
    return figures, exact


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.thinker.spoken", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--sentences", type=int, default=SENTENCES, help="of each set")
    parser.add_argument("--show", action="store_true", help="print what was answered wrong")
    arguments = parser.parse_args()
    made, words = phrasings.load(), Words()
    model = open_model(DecoderOptions(checkpoint=arguments.folder))
    ear = fitted()
    caller = Caller(VOICE, ear.pool(), ear.reader)
    parts: dict[Part, str] = {"train": "phrasings seen", "held out": "phrasings held out"}
    for part, name in parts.items():
        said = sentences(Phrasebook(made, words, part), arguments.sentences, Random(_SEED))
        figures, exact = measure(model, caller, said, Judge(made))
        print(f"--- {name}, {exact} of {len(said)} heard right", *figures.lines(), sep="\n", flush=True)
        if arguments.show:
            print(*figures.errors, sep="\n", flush=True)


if __name__ == "__main__":
    main()
