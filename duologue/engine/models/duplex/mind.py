"""One session of a duplex thinker, of whatever family: units in, one decision each, replies in pieces of a unit's text.

One unit is answered at a time; what comes meanwhile waits. Only an interruption does not: it stops the answer in
progress. It is taken into account once that has ended, so that an answer is in the sequence before it is cut.

A session that is opened again is given the answers its units had. They are put back in their order, and what else came
between them at its place, so that the sequence is the one it was, slides of the window included.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from duologue.engine.messages import (
    AppendUnit,
    CallerText,
    Choice,
    Decided,
    Decision,
    Inject,
    Instructions,
    Interrupt,
    Item,
    Open,
    Pcm,
    Respond,
    StageOutput,
    ToolResult,
    Tools,
    Unit,
)
from duologue.engine.models.duplex.family import Answer, Ask, Ear, Format, Hearing
from duologue.engine.models.duplex.floor import Floor, FloorOptions, Rule
from duologue.engine.models.duplex.past import Past
from duologue.engine.models.duplex.replies import Reply
from duologue.engine.models.duplex.words import Text, Words
from duologue.engine.runners.base import Embeddings, Rows
from duologue.engine.runners.sessions import Output, Sessions
from duologue.metrics import DROPS, UNANSWERED

_log = logging.getLogger(__name__)

REPLIES_KEPT = 32
"""Replies that can still be cut, as many as the hub keeps."""

Message = AppendUnit | Inject | Respond
"""What waits for its turn."""


@dataclass(frozen=True, slots=True)
class Model:
    """What all sessions share."""

    format: Format
    words: Words
    ear: Ear
    max_typed_tokens: int
    floor: FloorOptions


@dataclass(slots=True)
class _Asked:
    """The unit that is being answered."""

    unit: Unit
    filed: float
    ask: Ask
    entry: int
    answer: Answer
    rows: dict[int, Rows] = field(default_factory=dict)
    """Hidden states by the token they are of."""


class Mind:
    """One session, which is open in ``sessions`` from now on."""

    def __init__(self, opening: Open, model: Model, sessions: Sessions) -> None:
        self._session = opening.session
        self._model = model
        self._sessions = sessions
        self._voice = opening.voice
        self._hearing: Hearing = model.ear.stream()
        self._nothing = np.zeros(model.ear.hidden_size, np.float32)
        """The state of a token whose own is not known any more."""
        self._epoch = 0
        self._inbox: deque[tuple[float, Message]] = deque()
        self._interrupts: deque[Interrupt] = deque()
        self._stopped = False
        """Whether the answer in progress has been told to end."""
        self._unheard: tuple[Unit, float] | None = None
        """The unit that is to be answered next, and when it came."""
        self._asked: _Asked | None = None
        self._replies: dict[int, Reply] = {}
        self._reply: Reply | None = None
        """The reply that is open: its text is not whole."""
        self._begun: tuple[int, ...] = ()
        """What the next answer begins with."""
        self._floor = Floor(model.floor, model.format.force_listen, auto=opening.auto_respond)
        self._recent: deque[int] = deque(maxlen=model.format.recent)
        """Tokens that count for the repetition penalty."""
        self._past = Past(opening)
        self._lives = False
        """Whether the past has been put back."""
        self._lost = 0
        """Entries in the sequence whose audio is gone are before this one."""
        self._next_turn = max(opening.next_turn, self._past.next_turn)
        self._refuses_tools = False
        """Whether it has been logged that this model calls none."""
        self._refuse(Tools(opening.tools))
        sessions.open(opening.session, model.format.prefix(opening.instructions, opening.voice))

    # --- messages -------------------------------------------------------------------------------------------

    def receive(self, message: Message | Interrupt, now: float) -> None:
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
        """Do everything up to the next unit that is to be heard; of what is put back a part, when it is late.

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
            self._put_back(self._whole(message.unit))
            if late():
                return
        while self._interrupts:
            self._live()
            self._interrupt(self._interrupts.popleft())
        while self._inbox and self._unheard is None:
            filed, message = self._inbox.popleft()
            self._live()
            match message:
                case AppendUnit():
                    self._type("user", *self._past.typed(message.unit.index))
                    self._unheard = self._whole(message.unit), filed
                case Inject():
                    self._type("user", *self._past.typed(None))
                    self._inject(message.item)
                case Respond():
                    self._respond(message)

    @property
    def unheard(self) -> tuple[Hearing, Pcm] | None:
        """The session's stream, and the unit it is to hear before ``ask``; None when there is none."""
        return None if self._unheard is None else (self._hearing, self._unheard[0].pcm)

    def _whole(self, unit: Unit) -> Unit:
        if len(unit.pcm) != self._model.format.unit_samples:
            raise ValueError(f"a unit is {self._model.format.unit_samples} samples, but unit {unit.index} has "
                             f"{len(unit.pcm)}")
        return unit

    # --- answers --------------------------------------------------------------------------------------------

    def ask(self, heard: Embeddings) -> None:
        """Ask for the answer to the unit that is unheard, whose rows these are."""
        assert self._unheard is not None
        (unit, filed), self._unheard = self._unheard, None
        form, reply = self._model.format, self._reply is not None
        ask = Ask(unit.index, self._floor.rule(unit.index, open=reply), reply, tuple(self._recent), self._begun)
        self._begun = ()
        entry = self._sessions.append(self._session, form.unit(heard))
        self._sessions.generate(self._session, form.sampling(ask), "generated", ask.begun)
        self._asked = _Asked(unit, filed, ask, entry, form.answer(open=reply))
        self._asked.answer.take(ask.begun)

    def take(self, output: Output, now: float) -> list[StageOutput]:
        """Take what came of the answer; once it is whole returns the text told with it, then the decision."""
        asked = self._asked
        assert asked is not None
        answer = asked.answer
        answer.take(output.tokens)
        for i, row in enumerate(output.rows if output.rows is not None else ()):
            asked.rows[len(asked.ask.begun) + output.first_row + i] = row
        if output.finish is None:
            return []
        self._asked, self._stopped = None, False
        tokens = answer.well_formed
        if tokens != tuple(answer.sampled):
            self._sessions.revise(self._session, asked.entry, tokens)
        reply = self._note(asked.entry, answer, self._next_turn, self._epoch, asked.rows)
        if reply is not None and asked.ask.begun:
            reply.pass_over()
        self._count(asked.ask.rule, tokens)
        # What an interruption has made void already is not told.
        told = reply.tell(self._session, self._epoch, last=reply is not self._reply,
                          pause=answer.speaks and self._model.format.pauses) \
            if reply is not None and not self._interrupts else None
        known = reply is not None and reply.known
        speaks = answer.speaks and known
        if self._floor.answered(asked.unit, speaks=speaks):
            UNANSWERED.inc()
            _log.warning("session %s: the caller spoke, and the thinker has only listened for %d units since",
                         self._session, self._model.floor.unanswered_units)
        decision = Decision(
            self._session, self._epoch, reply.number if reply else max(self._next_turn - 1, 0), asked.unit.index,
            Choice.SPEAK if speaks else Choice.LISTEN, answer.listens and known, now - asked.filed, tokens)
        return [decision] if told is None else [told, decision]

    def _note(self, entry: int, answer: Answer, next_turn: int, epoch: int, rows: Mapping[int, Rows]) -> Reply | None:
        """Note an answer that adds to the open reply, or begins one; returns the reply it is about, if any."""
        reply = self._reply
        if answer.speaks:
            if reply is None:
                reply = self._begin(next_turn, epoch)
            reply.add(entry, answer, rows)
        if reply is not None and (answer.ends or answer.listens):
            reply.text.end()
            self._reply = None
        return reply

    def _begin(self, number: int, epoch: int) -> Reply:
        self._reply = self._replies[number] = Reply(number, epoch, Text(self._model.words), self._nothing)
        self._next_turn = max(self._next_turn, number + 1)
        if len(self._replies) > REPLIES_KEPT:
            del self._replies[min(self._replies)]
        return self._reply

    def _count(self, rule: Rule, tokens: tuple[int, ...]) -> None:
        if rule is not Rule.LISTEN:
            self._recent.extend(self._model.format.counted(tokens))

    # --- what comes between two units -----------------------------------------------------------------------

    def _type(self, role: str, *texts: str) -> None:
        most = self._model.max_typed_tokens
        for text in texts:
            tokens = self._model.format.encode(text)
            DROPS.labels(what="typed_token", reason="too_long").inc(max(len(tokens) - most, 0))
            self._sessions.append(self._session, self._model.format.block(role, tokens[:most]))

    def _inject(self, item: Item) -> None:
        match item:
            case CallerText():
                self._type("user", item.text)
            case ToolResult():
                self._type("tool", item.output)
            case Instructions():
                # A session is opened again with its present instructions: its sequence must be the same then.
                self._sessions.begin_with(self._session, self._model.format.prefix(item.text, self._voice))
            case Tools():
                self._refuse(item)

    def _refuse(self, item: Tools) -> None:
        if not item.tools:
            return
        DROPS.labels(what="tool", reason="not_callable").inc(len(item.tools))
        if not self._refuses_tools:
            _log.warning("session %s has tools, but this model calls none", self._session)
        self._refuses_tools = True

    def _respond(self, message: Respond) -> None:
        if message.epoch < self._epoch:
            DROPS.labels(what="message", reason="stale").inc()
            return
        if message.instructions:
            self._type("system", message.instructions)
        self._floor.respond()

    def _interrupt(self, message: Interrupt) -> None:
        cut = {} if message.turn is None else {message.turn: message.heard}
        if message.turn is None or self._replies.get(message.turn) is self._reply:
            self._floor.cancel()
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

    def _cut(self, reply: Reply, heard: int) -> None:
        if reply is self._reply:
            self._reply = None
        for entry, tokens in reply.cut(self._model.format, heard):
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
        self._type("user", *self._past.typed(output.unit))
        form = self._model.format
        entry = self._sessions.record(self._session, form.unit(heard), output.tokens,
                                      max(form.room, len(output.tokens)))
        opened = self._reply is not None
        answer = form.answer(open=opened)
        answer.take(output.tokens)
        self._count(self._floor.rule(output.unit, open=opened), output.tokens)
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
