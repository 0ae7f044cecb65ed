"""Make the thinker's vocabulary: word pieces of what is said in dialogues, and every letter, so that any word has some.

Pieces are found as WordPiece does (arXiv 1609.08144), by the ``tokenizers`` library.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from string import ascii_letters, ascii_lowercase, digits

from tokenizers import Regex, Tokenizer, decoders
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Split
from tokenizers.trainers import WordPieceTrainer

from duologue.engine.models.embedded.dialogue import intents
from duologue.engine.models.embedded.dialogue.policy import HANDLERS
from duologue.engine.models.embedded.dialogue.templates import Alt, Node, Ref, Seq, read
from duologue.engine.models.embedded.thinking.format import MARKS, call_token, slot_token
from duologue.engine.models.embedded.thinking.vocabulary import WORD
from training.thinker.phrasings import Phrasings

FILE = "tokenizer.json"
_PIECES = 1000
"""Pieces, letters counted."""
_WORDS = 2900
"""The most frequent words are tokens of their own: a word in pieces means nothing."""
_INNER = "##"
_UNKNOWN = "<unk>"
_SIGNS = ".,?!:;'-"


def write(file: Path, texts: Iterable[str], phrasings: Phrasings) -> None:
    """Write ``tokenizer.json``: the words most frequent in ``texts``, the pieces that they are best made of, and the
    tokens of calls and slots."""
    trained = Tokenizer(WordPiece(unk_token=_UNKNOWN))
    trained.pre_tokenizer = _words()
    read = list(texts)
    trained.train_from_iterator(read, WordPieceTrainer(vocab_size=_PIECES, show_progress=False))
    pieces = sorted(trained.get_vocab(), key=trained.get_vocab().__getitem__)
    words = [word for word, _ in Counter(word for text in read for word in WORD.findall(text)).most_common(_WORDS)]
    letters = [*ascii_letters, *digits, *_SIGNS, *(_INNER + letter for letter in (*ascii_lowercase, "'", "-"))]
    special = special_tokens(phrasings)
    ids = {token: id for id, token in enumerate(dict.fromkeys((*special, *letters, *pieces, *words)))}
    made = Tokenizer(WordPiece(ids, unk_token=_UNKNOWN, max_input_chars_per_word=100))
    made.pre_tokenizer = _words()
    made.decoder = decoders.WordPiece(prefix=_INNER)
    made.add_special_tokens(special)
    made.save(str(file))


def special_tokens(phrasings: Phrasings) -> list[str]:
    """Marks, a token for each skill that can be called, and one for each slot."""
    calls = sorted(set(HANDLERS) - {"backchannel"})
    templates = [text for texts in (*intents.INTENTS.values(), *phrasings.calls.values()) for text in texts]
    slots = sorted({slot for text in templates for slot in _slots(read(text))})
    return [*MARKS, *map(call_token, calls), *map(slot_token, slots)]


def _words() -> Split:
    return Split(Regex(WORD.pattern), behavior="removed", invert=True)


def _slots(node: Node) -> Iterator[str]:
    match node:
        case Ref(_, slot) if slot:
            yield slot
        case Seq(parts):
            for part in parts:
                yield from _slots(part)
        case Alt(choices, _):
            for choice in choices:
                yield from _slots(choice)
