"""The unit format of MiniCPM-o 4.5's thinker: what a unit looks like in its sequence, and what an answer means.

A session is ``<|im_start|>system``, instructions, the reference voice between ``<|audio_start|>`` and
``<|audio_end|>``, ``<|im_end|>``, then units: ``<unit>``, ten rows of audio, the answer, ``</unit>``. What was sampled
last was not fed: it goes back, with ``</unit>``, in front of the next unit. Answers stand in the sequence as they were
sampled (facts of the released ``MiniCPMODuplex``, which these equal token by token where it is greedy):

* The first token decides: ``<|listen|>``, or whatever else for speaking. It is neither text nor condition.
* ``<|listen|>``, ``<|chunk_eos|>`` and ``<|chunk_tts_eos|>`` end a unit; the 20th token is always ``<|chunk_eos|>``.
* ``<|turn_eos|>`` is fed like text. A reply is whole if it is the last token that was; text behind it takes it back.
* A ``<|listen|>`` within a reply becomes ``<|tts_bos|>``: the released model may not stop halfway.

In three things this is not the released code. ``listen_prob_scale`` and ``listen_top_k`` act on ``<|listen|>``; there
they act on ``<|im_end|>``, which its decoder takes for it. The former is a factor on the odds; there it multiplies the
logit, which turns the wish around below 0. And a ``<|tts_bos|>`` that was sampled as such counts for the repetition
penalty as a ``<|listen|>``. The 28 characters that the release's demo server cuts a unit at are not in its model, nor
here.

The release forgets in one of three ways: not at all (``off``), by units above a mark (``basic``, 4,000 down to 3,500),
or to 24 units with the text of the others in the system block (``context``). It cuts its KV and turns the keys of the
rest. Ours is the window of all families (``runners.window``): by units above a mark, with rule ``text`` the words said
in them kept in a block of their own behind the system block, and the KV computed anew: what is kept of it otherwise
knows what is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import log

from pydantic import Field
from tokenizers import Tokenizer

from duologue.engine.messages import INPUT_RATE
from duologue.engine.models.duplex.family import Ask
from duologue.engine.models.duplex.floor import Rule
from duologue.engine.models.minicpmo.config import MiniCPMOConfig
from duologue.engine.models.minicpmo.tokens import SpecialTokens
from duologue.engine.runners.base import Embeddings, Piece, Sampling, Swap, Tokens
from duologue.engine.runners.log import Grammar
from duologue.strict import Strict

DEFAULT_INSTRUCTIONS = "Streaming Omni Conversation."
"""The release's, where a session has none of its own."""

MAX_UNIT_TOKENS = 20
"""Tokens of one unit's answer at most, its terminator included (``max_new_speak_tokens_per_chunk``)."""


class SamplingOptions(Strict):
    """How a thinker's tokens are chosen; the defaults are the release's."""

    temperature: float = Field(default=0.7, ge=0)
    top_k: int = Field(default=20, ge=0)
    top_p: float = Field(default=0.8, gt=0, le=1)
    repetition_penalty: float = Field(default=1.05, gt=0)
    """Divides the logits of tokens that were sampled before, those below 0 as well."""
    repetition_window: int = Field(default=512, gt=0)
    """Sampled tokens back that the penalty covers, decisions among them."""
    seed: int = Field(default=0, ge=0)
    """With the same seed a unit of the same session is answered the same by the same runner."""
    force_listen_count: int = Field(default=3, ge=0)
    """Units at the start of a session in which the thinker only listens."""
    listen_prob_scale: float = Field(default=1.0, gt=0)
    """Multiplies the odds of ``<|listen|>``."""
    listen_top_k: int | None = Field(default=None, gt=0)
    """Choose ``<|listen|>`` wherever it is among so many most probable tokens."""
    length_penalty: float = Field(default=1.1, gt=0)
    """Above 1 ``<|turn_eos|>`` becomes less probable, and replies longer."""
    may_yield: bool = False
    """Whether the thinker may listen within a reply, which ends it there: for weights that do give way. The released
    ones are reported to do it within 0.6 s of an interruption, and not to do it in 70 units of one."""


@dataclass(slots=True)
class Answer:
    """An answer as its tokens come."""

    tokens: SpecialTokens
    open: bool
    """Whether a reply was open before it."""
    text: list[int] = field(default_factory=list)
    """What the talker is given: all but the first token and the last."""
    places: list[int] = field(default_factory=list)
    """Of each of these which of the sampled ones it is."""
    sampled: list[int] = field(default_factory=list)
    speaks: bool = False
    """Whether it begins a reply, or goes on with the one that is open."""
    ends: bool = False
    """Whether the reply is over with it: it is whole, or the thinker said its text and then chose to listen."""
    listens: bool = False
    """Whether the thinker chose to listen: within a reply it gives up the floor."""
    _over: bool = False

    def take(self, sampled: Sequence[int]) -> None:
        """Take the next tokens; those after the answer's end are passed over."""
        tokens = self.tokens
        for token in sampled:
            first = not self.sampled
            self.sampled.append(token)
            if self._over:
                continue
            if token == tokens.listen:
                self._over = True
                self.listens, self.ends = first, not first
            elif token in (tokens.chunk_eos, tokens.chunk_tts_eos):
                self._over = True
                self.speaks = self.speaks or self.open
            else:
                self.speaks = True
                self.ends = token == tokens.turn_eos
                if not first:
                    self.text.append(token)
                    self.places.append(len(self.sampled) - 1)

    @property
    def lead(self) -> tuple[int, ...]:
        """The tokens before its text."""
        return tuple(self.sampled[:1])

    @property
    def well_formed(self) -> tuple[int, ...]:
        """The answer as it stands in the sequence: as it was sampled, and closed if it was interrupted."""
        if not self.sampled:
            return (self.tokens.listen,)
        return tuple(self.sampled) if self._over else (*self.sampled, self.tokens.chunk_eos)


class Format:
    """A checkpoint's units, as pieces of a sequence, and the rules its answers are sampled by."""

    def __init__(self, config: MiniCPMOConfig, tokens: SpecialTokens, tokenizer: Tokenizer, options: SamplingOptions,
                 reference: Callable[[str], Embeddings | None]) -> None:
        """``reference`` gives the rows of the reference recording that a voice has, None where it has none."""
        self._tokens = tokens
        self._tokenizer = tokenizer
        # What a caller types is text, whatever it looks like.
        self._tokenizer.encode_special_tokens = True
        self._options = options
        self._reference = reference
        self.unit_samples = INPUT_RATE * config.unit_ms // 1000
        """Samples of a unit."""
        self.rows = config.unit_ms // config.row_ms
        """Rows of audio in a unit."""
        self.room = MAX_UNIT_TOKENS
        """Tokens an answer takes at most."""
        self.force_listen = options.force_listen_count
        """Units at the start of a session in which the thinker only listens."""
        self.recent = options.repetition_window if options.repetition_penalty != 1 else 0
        """Tokens that ``Ask.recent`` is to have at most."""
        self.pauses = True
        """A unit of a reply without a word is told too: the talker may still be at what was written before."""
        self.silent = (tokens.listen,)
        """The answer of a unit in which nothing was said."""
        self.grammar = Grammar(
            terminators=True, tail=(tokens.unit_end,),
            unsaid=frozenset({tokens.listen, tokens.speak, tokens.turn_eos, tokens.chunk_eos, tokens.chunk_tts_eos,
                              tokens.tts_bos}),
            memory=((tokens.im_start, *self.encode("assistant\n")), (tokens.im_end,)))
        self._stop = frozenset({tokens.listen, tokens.chunk_eos, tokens.chunk_tts_eos})

    def encode(self, text: str) -> tuple[int, ...]:
        """The tokens of ``text``; what looks like a special token in it is text."""
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def prefix(self, instructions: str, voice: str) -> tuple[Piece, ...]:
        """How a session begins."""
        tokens, text = self._tokens, f"system\n{instructions or DEFAULT_INSTRUCTIONS}"
        rows = self._reference(voice)
        if rows is None:
            return (Tokens((tokens.im_start, *self.encode(text), tokens.im_end)),)
        return (Tokens((tokens.im_start, *self.encode(f"{text}\n"), tokens.audio_start)), rows,
                Tokens((tokens.audio_end, tokens.im_end)))

    def block(self, role: str, text: Sequence[int]) -> tuple[Piece, ...]:
        """Text tokens between two units, said by ``role``."""
        return (Tokens((self._tokens.im_start, *self.encode(f"{role}\n"), *text, self._tokens.im_end)),)

    def unit(self, rows: Embeddings) -> tuple[Piece, ...]:
        """A unit of the caller's audio; raises ``ValueError`` unless it is whole."""
        if len(rows) != self.rows:
            raise ValueError(f"a unit is {self.rows} rows of audio, not {len(rows)}")
        return (Tokens((self._tokens.unit,)), rows)

    def answer(self, *, open: bool) -> Answer:
        """Begin to read an answer; ``open`` says that a reply is."""
        return Answer(self._tokens, open)

    def begun(self, text: str, *, ends: bool) -> tuple[int, ...]:
        """The beginning of an answer of which ``text`` has been told already, and that the reply ``ends`` there.

        What was no text was told as U+FFFD, so that it may be longer than an answer is.
        """
        return (self._tokens.speak, *self.encode(text), *((self._tokens.turn_eos,) if ends else ()))

    def sampling(self, ask: Ask) -> Sampling:
        """How an answer is chosen."""
        tokens, options = self._tokens, self._options
        seed = options.seed << 32 | ask.unit
        if ask.rule is Rule.LISTEN and not ask.begun:
            return Sampling(max_tokens=MAX_UNIT_TOKENS, stop=self._stop, first=(tokens.listen,), seed=seed)
        whole = ask.begun[-1:] == (tokens.turn_eos,)
        first = (tokens.chunk_eos,) if whole else (tokens.speak,) if ask.rule is Rule.SPEAK and not ask.begun else ()
        return Sampling(
            max_tokens=max(MAX_UNIT_TOKENS - len(ask.begun), 1), stop=self._stop,
            temperature=options.temperature, top_k=options.top_k, top_p=options.top_p,
            repetition_penalty=options.repetition_penalty, repetition="divide",
            repetition_window=options.repetition_window, recent=ask.recent, forbidden=tokens.forbidden, first=first,
            bias=((tokens.listen, log(options.listen_prob_scale)),) if options.listen_prob_scale != 1 else (),
            damp=((tokens.turn_eos, options.length_penalty),) if options.length_penalty != 1 else (),
            tried=None if whole else tokens.chunk_eos,
            at_once=None if options.listen_top_k is None else (tokens.listen, options.listen_top_k),
            swap=None if options.may_yield else Swap(tokens.listen, tokens.tts_bos, but_after=tokens.turn_eos,
                                                     at_first=ask.open or bool(ask.begun)),
            at_budget=tokens.chunk_eos, seed=seed)

    def counted(self, answer: Sequence[int]) -> Sequence[int]:
        """Those of an answer's tokens that count for the repetition penalty: what was drawn among many."""
        return [self._tokens.listen if token == self._tokens.tts_bos and not self._options.may_yield else token
                for token in answer if token != self._tokens.chunk_eos]

    def ended(self, lead: Sequence[int], text: Sequence[int]) -> tuple[int, ...]:
        """The answer that says ``text`` and ends its reply."""
        ends = () if text and text[-1] == self._tokens.turn_eos else (self._tokens.turn_eos,)
        return (*lead, *text, *ends, self._tokens.chunk_eos)
