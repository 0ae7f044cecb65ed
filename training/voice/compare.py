"""Hold the text side to flite's own: ``python -m training.voice.compare`` counts words that are said otherwise.

Both read the same held-out sentences and some with figures, names and abbreviations; flite's phones are the truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from duologue.engine.models.embedded.speakable import Scanner
from duologue.engine.models.embedded.voice import weights
from duologue.engine.models.embedded.voice.pronouncer import Pronouncer
from duologue.engine.models.embedded.voice.sentences import Sentences
from duologue.engine.models.embedded.voice.symbols import PHONES, SYMBOLS
from training.voice import texts
from training.voice.corpus import Speaker

SENTENCES = 500
_SHOWN = 40


def ours(pronouncer: Pronouncer, text: str) -> list[tuple[str, ...]]:
    """The phones of each word that the trained voice would say."""
    scanner, sentences = Scanner(), Sentences(pronouncer)
    sentences.push([*scanner.push(text), *scanner.finish()])
    sentences.finish()
    said = list[tuple[str, ...]]()
    while sentences.ready:
        word, _ = sentences.next()
        said.append(tuple(SYMBOLS[i] for i in word.symbols if SYMBOLS[i] in PHONES))
    return said


def differences(got: list[tuple[str, ...]], wanted: list[tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    """Runs of words in which the two differ: what is said, what flite says."""
    for kind, a, b, c, d in SequenceMatcher(a=got, b=wanted, autojunk=False).get_opcodes():
        if kind != "equal":
            yield " | ".join(" ".join(word) for word in got[a:b]), " | ".join(" ".join(word) for word in wanted[c:d])


def main() -> None:
    """Print the share of words and the first differences."""
    speaker, pronouncer = Speaker(), Pronouncer(weights.FOLDER)
    words, found = 0, list[tuple[str, str, str]]()
    for text in texts.held_out(SENTENCES):
        wanted = [word.phones for word in speaker.say(text).words]
        words += len(wanted)
        found += [(*pair, text) for pair in differences(ours(pronouncer, text), wanted)]
    for got, said, text in found[:_SHOWN]:
        print(f"{got}  (flite: {said})  in: {text}")
    print(f"{len(found)} of {words} words ({len(found) / words:.2%}) are said otherwise")


if __name__ == "__main__":
    main()
