"""One session of the duplex thinker: units in, one decision each, replies in pieces of a unit's text.

One unit is answered at a time; what comes meanwhile waits. Only an interruption does not: it stops the answer in
progress. It is taken into account once that has ended, so that an answer is in the sequence before it is cut.

A session that is opened again is given the answers its units had. They are put back in their order, and what else came
between them at its place, so that the sequence is the one it was, slides of the window included.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from duologue.engine.messages import (
    AppendUnit,
    CallerText,
    Choice,
    Conditioning,
    Decided,
    Decision,
    Fence,
    Inject,
    Instructions,
    Interrupt,
    Item,
    Open,
    ReplyText,
    StageOutput,
    ToolResult,
    Tools,
    Unit,
)
from duologue.engine.models.duplex.ear import Ear, Hearing
from duologue.engine.models.duplex.format import Answer, Format, Spoken
from duologue.engine.models.duplex.past import Past
from duologue.engine.models.duplex.words import Text, Words
from duologue.engine.runners.base import Embeddings, Rows
from duologue.engine.runners.sessions import Output, Sessions
from duologue.metrics import DROPS

REPLIES_KEPT = 32
"""Replies that can still be cut, as many as the hub keeps."""


@dataclass(frozen=True, slots=True)
class Model:
    """What all sessions share."""

    format: Format
    words: Words
    ear: Ear
    max_typed_tokens: int


@dataclass(slots=True)
class _Reply:
    number: int
    epoch: int
    text: Text
    spoken: list[Spoken] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)
    """Hidden states of the tokens that have not been told."""
    told: int = 0
    """Tokens that have been told."""
    start: int = 0
    """Where in the text what has not been told begins."""
    seq: int = 0
    over: bool = False
    """Whether its end has been told, or it has failed."""

    @property
    def known(self) -> bool:
        """Whether anybody has been told of it."""
        return self.start > 0

    def pass_over(self) -> None:
        """Take the tokens before ``start`` for told, as they were in the session's life before."""
        while self.told < self.text.whole and self.text.ends[self.told] <= self.start:
            self.told += 1
            del self.rows[:1]


@dataclass(slots=True)
class _Asked:
    """The unit that is being answered."""

    unit: Unit
    filed: float
    entry: int
    answer: Answer
    begun: int
    """Tokens of the answer that were there before."""
    rows: dict[int, Rows] = field(default_factory=dict)
    """Hidden states by the token they are of."""


class Mind:
    """One session, which is open in ``sessions`` from now on."""

    def __init__(self, opening: Open, model: Model, sessions: Sessions) -> None:
        self._session = opening.session
        self._model = model
        self._sessions = sessions
        self._hearing = Hearing(model.ear)
        self._nothing = np.zeros(model.ear.hidden_size, np.float32)
        """The state of a token whose own is not known any more."""
        self._epoch = 0
        self._inbox: deque[tuple[float, AppendUnit | Inject]] = deque()
        self._interrupts: deque[Interrupt] = deque()
        self._stopped = False
        """Whether the answer in progress has been told to end."""
        self._asked: _Asked | None = None
        self._replies: dict[int, _Reply] = {}
        self._reply: _Reply | None = None
        """The reply that is open: its text is not whole."""
        self._begun: tuple[int, ...] = ()
        """What the next answer begins with."""
        self._past = Past(opening)
        self._lives = False
        """Whether the past has been put back."""
        self._lost = 0
        """Entries in the sequence whose audio is gone are before this one."""
        self._next_turn = max(opening.next_turn, self._past.next_turn)
        sessions.open(opening.session, model.format.prefix(opening.instructions))

    # --- messages -------------------------------------------------------------------------------------------

    def receive(self, message: AppendUnit | Inject | Interrupt, now: float) -> None:
        """File a message at ``now``, in seconds."""
        if isinstance(message, Interrupt):
            self._interrupts.append(message)
        else:
            self._inbox.append((now, message))

    @property
    def ready(self) -> bool:
        """Whether ``advance`` has anything to do."""
        if self._asked is not None:
            return bool(self._interrupts) and not self._stopped
        return bool(self._interrupts or self._inbox)

    def advance(self, late: Callable[[], bool]) -> None:
        """Do everything up to the next answer that has to be waited for; of what is put back a part, when it is late.

        Raises ``ValueError`` for a unit that is not whole.
        """
        if self._asked is not None:
            if self._interrupts and not self._stopped:
                self._sessions.interrupt(self._session)
                self._stopped = True
            return
        while self._inbox and isinstance(message := self._inbox[0][1], AppendUnit) \
                and message.unit.index < self._past.decided:
            self._inbox.popleft()
            self._put_back(message.unit)
            if late():
                return
        while self._interrupts:
            self._live()
            self._interrupt(self._interrupts.popleft())
        while self._inbox and self._asked is None:
            filed, message = self._inbox.popleft()
            self._live()
            if isinstance(message, Inject):
                self._type(*self._past.typed(None))
                self._inject(message.item)
            else:
                self._type(*self._past.typed(message.unit.index))
                self._ask(message.unit, filed)

    # --- answers --------------------------------------------------------------------------------------------

    def _ask(self, unit: Unit, filed: float) -> None:
        form, begun = self._model.format, self._begun
        self._begun = ()
        entry = self._sessions.append(self._session, form.unit(self._hearing.hear(unit.pcm)))
        recent = self._sessions.said(self._session, form.recent)
        self._sessions.generate(self._session, form.sampling(unit.index, recent, begun), "generated", begun)
        self._asked = _Asked(unit, filed, entry, form.answer(), len(begun))
        self._asked.answer.take(begun)

    def take(self, output: Output, now: float) -> list[StageOutput]:
        """Take what came of the answer; once it is whole returns the text told with it, then the decision."""
        asked = self._asked
        assert asked is not None
        answer = asked.answer
        answer.take(output.tokens)
        for i, row in enumerate(output.rows if output.rows is not None else ()):
            asked.rows[asked.begun + output.first_row + i] = row
        if output.finish is None:
            return []
        self._asked, self._stopped = None, False
        if answer.well_formed != tuple(answer.sampled):
            self._sessions.revise(self._session, asked.entry, answer.well_formed)
        reply = self._note(asked.entry, answer, self._next_turn, self._epoch, asked.rows)
        if reply is not None and asked.begun:
            reply.pass_over()
        # What an interruption has made void already is not told.
        told = self._tell(reply) if reply is not None and not self._interrupts else None
        known = reply is not None and reply.known
        yields = answer.listens and known
        decision = Decision(
            self._session, self._epoch, reply.number if reply else max(self._next_turn - 1, 0), asked.unit.index,
            Choice.SPEAK if answer.speaks and known else Choice.LISTEN, yields, now - asked.filed,
            answer.well_formed)
        return [decision] if told is None else [told, decision]

    def _note(self, entry: int, answer: Answer, next_turn: int, epoch: int, rows: Mapping[int, Rows]) -> _Reply | None:
        """Note an answer that adds to the open reply, or begins one; returns the reply it is about, if any."""
        reply = self._reply
        if answer.speaks:
            if reply is None:
                reply = self._begin(next_turn, epoch)
            first = len(reply.text.tokens)
            for token in answer.text:
                reply.text.add(token)
            reply.spoken.append(Spoken(entry, first, len(reply.text.tokens)))
            reply.rows += [rows.get(place, self._nothing) for place in answer.places]
        if reply is not None and (answer.ends or answer.listens):
            reply.text.end()
            self._reply = None
        return reply

    def _begin(self, number: int, epoch: int) -> _Reply:
        self._reply = self._replies[number] = _Reply(number, epoch, Text(self._model.words))
        self._next_turn = max(self._next_turn, number + 1)
        if len(self._replies) > REPLIES_KEPT:
            del self._replies[min(self._replies)]
        return self._reply

    def _tell(self, reply: _Reply) -> ReplyText | None:
        """Tell what of the reply's text is new, or that it is whole. One without a word is told to nobody."""
        if reply.over:
            return None
        text, first, behind = reply.text, reply.told, reply.text.whole
        last = reply is not self._reply
        end = text.ends[behind - 1] if behind else 0
        if end == reply.start and not (last and reply.known):
            return None
        count = behind - first
        conditioning = Conditioning(
            np.array(text.tokens[first:behind], np.int32), np.stack(reply.rows[:count]),
            np.array(text.ends[first:behind], np.int32)) if count else None
        message = ReplyText(Fence(self._session, self._epoch, reply.number, reply.seq), reply.start,
                            text.text[reply.start:end], last, conditioning=conditioning)
        del reply.rows[:count]
        reply.told, reply.start, reply.seq, reply.over = behind, end, reply.seq + 1, last
        return message

    # --- what comes between two units -----------------------------------------------------------------------

    def _type(self, *texts: str) -> None:
        most = self._model.max_typed_tokens
        for text in texts:
            tokens = self._model.format.encode(text)
            DROPS.labels(what="typed_token", reason="too_long").inc(max(len(tokens) - most, 0))
            self._sessions.append(self._session, self._model.format.typed(tokens[:most]))

    def _inject(self, item: Item) -> None:
        match item:
            case CallerText():
                self._type(item.text)
            case ToolResult():
                self._type(item.output)
            case Instructions():
                # What the session is opened again with: its sequence must be the same then.
                self._sessions.begin_with(self._session, self._model.format.prefix(item.text))
            case Tools():
                DROPS.labels(what="tool", reason="unsupported").inc(len(item.tools))

    def _interrupt(self, message: Interrupt) -> None:
        cut = {} if message.turn is None else {message.turn: message.heard}
        self._raise_epoch(message.epoch, cut, lambda turn: turn <= message.last_turn)

    def _raise_epoch(self, epoch: int, cut: Mapping[int, str], known: Callable[[int], bool]) -> None:
        """Cut the replies in ``cut`` at what was heard of them, and void those begun before that are not ``known``."""
        self._epoch = epoch
        ended = self._reply if self._reply is not None and self._reply.epoch < epoch else None
        for number, reply in self._replies.items():
            if number in cut:
                self._cut(reply, len(cut[number]))
            elif reply.epoch < epoch and reply.text.text and not known(number):
                self._cut(reply, 0)
            elif reply is ended:
                # It is without a word so far; or it has failed further on, and nobody waits for more of it.
                self._cut(reply, len(reply.text.text))

    def _cut(self, reply: _Reply, heard: int) -> None:
        reply.text.end()
        if reply is self._reply:
            self._reply = None
        for entry, tokens in self._model.format.cut(reply.spoken, reply.text.tokens, reply.text.ends, heard):
            self._sessions.revise(self._session, entry, tokens)

    # --- opened again ---------------------------------------------------------------------------------------

    def _put_back(self, unit: Unit) -> None:
        """Put a decided unit back into the sequence, with its answer, and whatever came before it."""
        heard = self._hearing.hear(unit.pcm)
        self._put_back_lost(unit.index)
        for output in self._past.answers(unit.index + 1):
            self._put(output, heard)

    def _put_back_lost(self, before: int) -> None:
        """Put back units whose audio is gone: they count as far as they make the window slide."""
        form = self._model.format
        lost = Embeddings(np.zeros((form.rows, self._model.ear.hidden_size), np.float32), b"lost")
        for output in self._past.answers(before):
            self._put(output, lost)
            self._lost = self._sessions.mark(self._session)

    def _put(self, output: Decided, heard: Embeddings) -> None:
        for epoch, cut in self._past.epochs(output.epoch):
            self._raise_epoch(epoch, cut, self._past.known)
        self._type(*self._past.typed(output.unit))
        form = self._model.format
        entry = self._sessions.record(self._session, form.unit(heard), output.tokens,
                                      max(form.room, len(output.tokens)))
        answer = form.answer()
        answer.take(output.tokens)
        self._note(entry, answer, output.turn, output.epoch, {})

    def _live(self) -> None:
        """The past has been put back: from here on units are answered."""
        if self._lives:
            return
        self._lives = True
        self._put_back_lost(self._past.decided)
        for epoch, cut in self._past.epochs():
            self._raise_epoch(epoch, cut, self._past.known)
        self._sessions.forget(self._session, self._lost)
        said = self._past.last
        if said is None:
            return
        reply = self._replies.get(said.turn)
        if reply is None and not self._past.answered(said.turn):
            # All that was told of it was told in the first unit without a decision.
            reply = self._begin(said.turn, self._epoch)
        if reply is None or reply is not self._reply:
            return
        reply.start, reply.over = len(said.text), not said.open
        reply.pass_over()
        more = said.text[len(reply.text.text):]
        if more:
            self._begun = self._model.format.begun(more, ends=not said.open)
        elif not said.open:
            self._cut(reply, len(said.text))
