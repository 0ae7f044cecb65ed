"""The trained thinker's units: what one looks like in its sequence, and what an answer means.

A session is ``<bos>``, then units. A unit is ``<unit>``, what was heard, the answer, ``</unit>``. What was heard is one
utterance as far as it is known: ``<over>`` where it is over the agent's voice, its words, ``<long>`` where over the
voice it has gone on for longer than any "mm-hm", and how long the caller has been silent since (``<pause_160>``).
A word that the neural encoder heard stands there as the rows it sounded like.
While the utterance goes on its unit is written anew, so that the sequence holds what was heard last and nothing else.
A unit in which nothing was heard is ``<unit>`` alone: the agent spoke unasked, or goes on.

An answer is one of

* ``<|listen|>``: the caller has the floor. Over the agent's voice: the agent falls silent.
* ``<|speak|> <|chunk_eos|>``: over the agent's voice: it goes on.
* ``<|speak|>`` text ``<|turn_eos|> <|chunk_eos|>``: a reply. Without ``<|turn_eos|>`` the next unit has more of it.
* ``<|speak|> <call:NAME> <slot:NAME>`` words ... ``</call>``: a skill is to make the reply. What it said follows.

In the sequence a reply that was cut ends with ``<cut>`` in place of ``<|turn_eos|>``, behind the words that were heard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from duologue.engine.models.embedded.sound import Sounds
from duologue.engine.models.embedded.thinking.vocabulary import Vocabulary
from duologue.engine.runners.base import Copy, Embeddings, Piece, Sampling, Tokens
from duologue.engine.runners.log import Grammar, joined

PAUSES_MS = (0, 80, 160, 240, 400, 640, 960, 1440)
"""Silences that have a token; what is between two counts as the shorter."""
LONG_MS = 700
"""Speech over the agent's voice that goes on this long is no "mm-hm"."""
MAX_ANSWER = 48
"""Tokens of an answer at most."""
MAX_TOLD = 24
"""Tokens of what a skill said that stay in the sequence: the beginning of a story is enough."""
MARKS = ("<unk>", "<bos>", "<unit>", "</unit>", "<over>", "<long>", "<|listen|>", "<|speak|>", "<|turn_eos|>",
         "<|chunk_eos|>", "<cut>", "</call>", *(f"<pause_{ms}>" for ms in PAUSES_MS))
"""Special tokens besides those of calls and slots."""


def call_token(name: str) -> str:
    """The token that calls skill ``name``."""
    return f"<call:{name}>"


def slot_token(name: str) -> str:
    """The token behind which the words of slot ``name`` stand."""
    return f"<slot:{name}>"


def pause_token(silent_ms: int) -> str:
    """The token of a silence."""
    return f"<pause_{max(ms for ms in PAUSES_MS if ms <= silent_ms)}>"


@dataclass(frozen=True, slots=True)
class Heard:
    """An utterance as far as it is known: lower-case words, silence since, whether over the agent's voice, and long."""

    words: tuple[str, ...]
    silent_ms: int
    over: bool = False
    long: bool = False
    sounds: Sounds = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A skill that is to make the reply; ``slots`` are words by slot."""

    name: str
    slots: dict[str, str]


Texts = tuple[tuple[str, ...], ...]
"""Words that a slot may be a piece of."""


Units = Sequence[tuple[Heard | None, Call | None]]
"""What was heard in each, and the call that answered it."""


def since_call(units: Units) -> Units:
    """Those after the last that was answered by a call."""
    return units[next((i for i in range(len(units), 0, -1) if units[i - 1][1] is not None), 0):]


def texts(units: Units) -> Texts:
    """What ``units`` have: a value may be said in two of them."""
    said = tuple(word for heard, _ in units if heard is not None for word in heard.words)
    slots = (tuple(words.split()) for _, call in units if call is not None for words in call.slots.values())
    return (said, *slots)


@dataclass(slots=True)
class Answer:
    """What an answer's tokens mean."""

    speaks: bool = False
    text: str = ""
    """What it says itself."""
    whole: bool = False
    """Whether the reply ends with it."""
    call: Call | None = None
    tokens: tuple[int, ...] = field(default=())
    likelihood: float = 1.0
    """Of all of it behind the choice to speak."""

    @property
    def keeps(self) -> bool:
        """Whether it only says that the agent goes on."""
        return self.speaks and not self.text and self.call is None


class Format:
    """The format over one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        token = vocabulary.__getitem__
        self._listen, self._speak = token("<|listen|>"), token("<|speak|>")
        self._turn_eos, self._chunk_eos = token("<|turn_eos|>"), token("<|chunk_eos|>")
        self._cut, self._call_end = token("<cut>"), token("</call>")
        self._unit, self._over, self._long = token("<unit>"), token("<over>"), token("<long>")
        self._unknown = token("<unk>")
        self._slots = tuple(sorted(token(name) for name in vocabulary.special if name.startswith("<slot:")))
        self.prefix = (Tokens((token("<bos>"),)),)
        """How a session begins."""
        self.grammar = Grammar(terminators=True, tail=(token("</unit>"),))
        """What is around answers."""
        self._never = tuple(token(mark) for mark in MARKS if mark not in (
            "<|listen|>", "<|speak|>", "<|turn_eos|>", "<|chunk_eos|>", "</call>"))

    def unit(self, heard: Heard | None) -> Tokens:
        """A unit of words up to its answer; None is one in which nothing was heard."""
        if heard is None:
            return Tokens((self._unit,))
        words = (id for word in heard.words for id in self.vocabulary.encode(word))
        return Tokens((*self._begun(heard), *words, *self._ended(heard)))

    def pieces(self, heard: Heard | None) -> tuple[Piece, ...]:
        """The same, with a word's sound in place of its tokens where it has one."""
        if heard is None or not heard.sounds:
            return (self.unit(heard),)
        words = (Tokens(self.vocabulary.encode(word)) if sound is None else sound.piece
                 for word, sound in zip(heard.words, heard.sounds, strict=True))
        return joined((Tokens(self._begun(heard)), *words, Tokens(self._ended(heard))))

    def question(self, heard: Heard) -> tuple[object, ...]:
        """What is the same for units of the same positions."""
        return tuple(piece.key if isinstance(piece, Embeddings) else piece for piece in self.pieces(heard))

    def _begun(self, heard: Heard) -> tuple[int, ...]:
        return (self._unit, self._over) if heard.over else (self._unit,)

    def _ended(self, heard: Heard) -> tuple[int, ...]:
        pause = self.vocabulary[pause_token(heard.silent_ms)]
        return (self._long, pause) if heard.long else (pause,)

    def sampling(self, texts: Texts) -> Sampling:
        """How an answer is chosen: greedily, so that every runner chooses the same; a slot is a piece of ``texts``."""
        return Sampling(MAX_ANSWER, stop=frozenset({self._listen, self._chunk_eos, self._call_end}),
                        first=(self._listen, self._speak), copy=self._copy(texts), forbidden=self._never,
                        at_budget=self._chunk_eos)

    def _copy(self, texts: Texts) -> Copy | None:
        words = (tuple(filter(self._readable, map(self.vocabulary.encode, text))) for text in texts)
        found = tuple(filter(None, words))
        return Copy(self._slots, (*self._slots, self._call_end), found) if found else None

    def _readable(self, word: tuple[int, ...]) -> bool:
        """Whether there are letters for it."""
        return bool(word) and self._unknown not in word

    def read(self, tokens: Sequence[int]) -> Answer:
        """What an answer means; a call that is not well formed is none, and a reply without words is none either."""
        if not tokens or tokens[0] != self._speak:
            return Answer(tokens=(self._listen,))
        body = tuple(tokens[1:])
        if self._call_end in body:
            call = self._called(body[:body.index(self._call_end)])
            if call is not None:
                return Answer(speaks=True, call=call, tokens=(self._speak, *body))
            return Answer(tokens=(self._listen,))
        return Answer(speaks=True, text=self.vocabulary.decode(body), whole=self._turn_eos in body,
                      tokens=(self._speak, *body))

    def _called(self, tokens: Sequence[int]) -> Call | None:
        names = [self.vocabulary.name(id) for id in tokens]
        if not names or not names[0].startswith("<call:"):
            return None
        slots: dict[str, list[int]] = {}
        slot = ""
        for id, name in zip(tokens[1:], names[1:], strict=True):
            if name.startswith("<slot:"):
                slot = name[len("<slot:"):-1]
                slots[slot] = []
            elif name in self.vocabulary.special or not slot:
                return None
            else:
                slots[slot].append(id)
        return Call(names[0][len("<call:"):-1], {name: self.vocabulary.decode(ids) for name, ids in slots.items()})

    # --- answers as they stand in the sequence ----------------------------------------------------------------

    def listening(self) -> tuple[int, ...]:
        """The caller has the floor."""
        return (self._listen,)

    def keeping(self) -> tuple[int, ...]:
        """The agent goes on."""
        return (self._speak, self._chunk_eos)

    def calling(self, call: Call) -> tuple[int, ...]:
        """The part of an answer that calls a skill."""
        slots = (id for name, words in call.slots.items()
                 for id in (self.vocabulary[slot_token(name)], *self.vocabulary.encode(words)))
        return (self._speak, self.vocabulary[call_token(call.name)], *slots, self._call_end)

    def told(self, call: Call | None, text: str, *, cut: bool = False) -> tuple[int, ...]:
        """An answer whose reply was ``text``, or as far as it was heard where it was ``cut``."""
        lead = (self._speak,) if call is None else self.calling(call)
        said = self.vocabulary.encode(text)[:MAX_TOLD]
        return (*lead, *said, self._cut if cut else self._turn_eos, self._chunk_eos)
