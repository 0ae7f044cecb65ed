"""The unit format of a duplex thinker: what a unit looks like in its sequence, and what an answer means.

A session is ``<|im_start|>system`` instructions ``<|im_end|>``, then units: ``<unit>``, the rows of its audio, the
answer, ``</unit>``. An answer is ``<|listen|>``, or ``<|speak|>``, text, ``<|turn_eos|>`` where the reply is whole, and
``<|chunk_eos|>``. Text the caller typed stands between two units as ``<|im_start|>user`` ... ``<|im_end|>``.

As in MiniCPM-o 4.5 the last token of an answer was not fed when it was sampled and goes back with the next unit. Unlike
there every answer in the sequence is well formed: what a model says after its own end is not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import Field
from tokenizers import Tokenizer

from duologue.engine.messages import INPUT_RATE
from duologue.engine.models.duplex.config import DuplexConfig, UnitTokens
from duologue.engine.models.duplex.family import Ask
from duologue.engine.models.duplex.floor import Rule
from duologue.engine.runners.base import Embeddings, Piece, Sampling, Tokens
from duologue.engine.runners.log import Grammar
from duologue.strict import Strict

DEFAULT_INSTRUCTIONS = "Streaming Omni Conversation."
"""MiniCPM-o 4.5's, where a session has none of its own."""


class SamplingOptions(Strict):
    """How a thinker's tokens are chosen; the defaults are MiniCPM-o 4.5's."""

    temperature: float = Field(default=0.7, ge=0)
    top_k: int = Field(default=20, ge=0)
    top_p: float = Field(default=0.8, gt=0, le=1)
    repetition_penalty: float = Field(default=1.05, gt=0)
    repetition_window: int = Field(default=512, ge=0)
    """Text tokens back that the penalty covers, of the session's answers."""
    seed: int = Field(default=0, ge=0)
    """With the same seed a unit of the same session is answered the same by the same runner."""
    force_listen_count: int = Field(default=0, ge=0)
    """Units at the start of a session in which the thinker only listens."""
    listen_bias: float = 0.0
    """Added to the logit of ``<|listen|>``, which stands against ``<|speak|>`` at first; the others likewise."""
    turn_eos_bias: float = 0.0
    chunk_eos_bias: float = 0.0


@dataclass(slots=True)
class Answer:
    """An answer as its tokens come."""

    tokens: UnitTokens
    text: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    """Of each text token which of the sampled ones it is."""
    sampled: list[int] = field(default_factory=list)
    speaks: bool = False
    ends: bool = False
    """Whether the reply is over with it: it is whole, or the thinker said its text and then chose to listen."""
    listens: bool = False
    """Whether the thinker chose to listen: within a reply it gives up the floor."""
    _over: bool = False

    def take(self, sampled: Sequence[int]) -> None:
        """Take the next tokens; those after the answer's end are passed over."""
        for token in sampled:
            self.sampled.append(token)
            if self._over:
                continue
            if not self.speaks:
                self.speaks = token == self.tokens.speak
                self._over = self.listens = not self.speaks
            elif token in (self.tokens.turn_eos, self.tokens.listen):
                self.ends = self._over = True
            elif token == self.tokens.chunk_eos:
                self._over = True
            elif token != self.tokens.speak:
                self.text.append(token)
                self.places.append(len(self.sampled) - 1)

    @property
    def lead(self) -> tuple[int, ...]:
        """The tokens before its text."""
        return (self.tokens.speak,)

    @property
    def well_formed(self) -> tuple[int, ...]:
        """The answer as it stands in the sequence."""
        if not self.speaks:
            return (self.tokens.listen,)
        end = (self.tokens.turn_eos,) if self.ends else ()
        return (self.tokens.speak, *self.text, *end, self.tokens.chunk_eos)


class Format:
    """One checkpoint's units, as pieces of a sequence, and the rules its answers are sampled by."""

    def __init__(self, config: DuplexConfig, tokenizer: Tokenizer, options: SamplingOptions) -> None:
        self._tokens = tokens = config.tokens
        self._tokenizer = tokenizer
        # What a caller types is text, whatever it looks like.
        self._tokenizer.encode_special_tokens = True
        self._options = options
        self._budget = config.max_unit_tokens
        self.unit_samples = INPUT_RATE * config.unit_ms // 1000
        """Samples of a unit."""
        self.rows = config.unit_ms // config.row_ms
        """Rows of audio in a unit."""
        self.force_listen = options.force_listen_count
        """Units at the start of a session in which the thinker only listens."""
        self.recent = options.repetition_window if options.repetition_penalty != 1 else 0
        """Tokens that ``Ask.recent`` is to have at most."""
        self.pauses = False
        """Whether a unit of a reply without a word is told too."""
        self.silent = (tokens.listen,)
        """The answer of a unit in which nothing was said."""
        self.grammar = Grammar(
            terminators=True, tail=(tokens.unit_end,),
            unsaid=frozenset({tokens.listen, tokens.speak, tokens.turn_eos, tokens.chunk_eos}),
            memory=((tokens.im_start, *self.encode("assistant\n")), (tokens.im_end,)))

    @property
    def room(self) -> int:
        """Tokens an answer takes at most."""
        return self._budget

    def encode(self, text: str) -> tuple[int, ...]:
        """The tokens of ``text``; what looks like a special token in it is text."""
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def prefix(self, instructions: str, _voice: str = "") -> tuple[Piece, ...]:
        """How a session begins; what it sounds like is none of the thinker's business."""
        return self.block("system", self.encode(instructions or DEFAULT_INSTRUCTIONS))

    def block(self, role: str, text: Sequence[int]) -> tuple[Piece, ...]:
        """Text tokens between two units, said by ``role``."""
        return (Tokens((self._tokens.im_start, *self.encode(f"{role}\n"), *text, self._tokens.im_end)),)

    def unit(self, rows: Embeddings) -> tuple[Piece, ...]:
        """A unit of the caller's audio; raises ``ValueError`` unless it is whole."""
        if len(rows) != self.rows:
            raise ValueError(f"a unit is {self.rows} rows of audio, not {len(rows)}")
        return (Tokens((self._tokens.unit,)), rows)

    def answer(self, *, open: bool = False) -> Answer:
        """Begin to read an answer, which reads the same whether a reply is ``open`` or not."""
        return Answer(self._tokens)

    def begun(self, text: str, *, ends: bool) -> tuple[int, ...]:
        """The beginning of an answer of which ``text`` has been told already, and that the reply ``ends`` there.

        What was no text was told as U+FFFD, so that it may be longer than an answer is.
        """
        return (self._tokens.speak, *self.encode(text), *((self._tokens.turn_eos,) if ends else ()))

    def sampling(self, ask: Ask) -> Sampling:
        """How an answer is chosen."""
        tokens, options = self._tokens, self._options
        firsts = {Rule.FREE: (tokens.listen, tokens.speak), Rule.LISTEN: (tokens.listen,), Rule.SPEAK: (tokens.speak,)}
        bias = ((tokens.listen, options.listen_bias), (tokens.turn_eos, options.turn_eos_bias),
                (tokens.chunk_eos, options.chunk_eos_bias))
        return Sampling(
            max_tokens=max(self._budget - len(ask.begun), 1), stop=frozenset({tokens.listen, tokens.chunk_eos}),
            temperature=options.temperature, top_k=options.top_k, top_p=options.top_p,
            repetition_penalty=options.repetition_penalty, recent=ask.recent,
            forbidden=(tokens.unit, tokens.unit_end, tokens.im_start, tokens.im_end),
            first=() if ask.begun else firsts[ask.rule], bias=tuple(each for each in bias if each[1]),
            at_budget=tokens.chunk_eos, seed=options.seed << 32 | ask.unit)

    def counted(self, answer: Sequence[int]) -> Sequence[int]:
        """Those of an answer's tokens that count for the repetition penalty: its text."""
        return [token for token in answer if token not in self.grammar.unsaid]

    def ended(self, lead: Sequence[int], text: Sequence[int]) -> tuple[int, ...]:
        """The answer that says ``text`` and ends its reply."""
        return (*lead, *text, self._tokens.turn_eos, self._tokens.chunk_eos)
