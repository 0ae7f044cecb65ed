"""One session of the thinker: hears units, decides for each whether to listen or to speak, writes replies.

The floor. An utterance over a reply either keeps the floor where it is or takes it. If it takes it the thinker
yields, writes no more and waits for the interruption, which brings what was heard; then it answers in the new
epoch. If none comes there was nothing left to interrupt, and it goes on as if it had been.

In turn mode the floor is given and taken by the agent: it listens, yields to nobody, and begins a reply, or calls a
tool, when it is asked to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from duologue.engine.messages import (
    INPUT_RATE,
    CallerText,
    CallerWords,
    Choice,
    Decision,
    Fence,
    Interrupt,
    Item,
    Open,
    ReplyText,
    StageOutput,
    ToolCall,
    ToolResult,
    Tools,
    Unit,
)
from duologue.engine.models.embedded.dialogue.calling import Request
from duologue.engine.models.embedded.dialogue.dialogue import Dialogue
from duologue.engine.models.embedded.dialogue.policy import (
    Answer,
    Sentence,
    Trust,
    is_backchannel,
    typed,
)
from duologue.engine.models.embedded.ear import Ear
from duologue.engine.models.embedded.lexicon import Sounds
from duologue.engine.models.embedded.mishearing import mended
from duologue.engine.models.embedded.mouth import Mouth, Piece
from duologue.engine.models.embedded.overlap import ECHO_S, Verdict, is_echo
from duologue.engine.models.embedded.turns import TurnTaking
from duologue.engine.models.embedded.utterance import Utterance

_WAIT_FOR_CUT_UNITS = 6
"""Units after yielding within which an interruption comes, if one comes."""
_LINGER_S = 0.4
"""Time after the agent's voice in which speech is still over it: a reply is paused before speech is certain."""
_UNHEARD_S = 1.5
"""Time a new reply may take until it is audible; until then it is on its way."""
_QUIET_S = 0.5
"""Silence of both before something is said unasked."""
_MIN_SPOKEN_MS = 320
"""What is shorter and was not understood was no speech."""
_TURNS_KEPT = 16


class Mind:
    """One session. ``clock`` gives the local time of day."""

    def __init__(self, opening: Open, dialogue: Dialogue, ear: Ear, turns: TurnTaking, lexicon: Sounds, unit_ms: int,
                 clock: Callable[[], datetime]) -> None:
        self._session = opening.session
        self._epoch = opening.epoch
        self._auto = opening.auto_respond
        self._wanted = False
        """Turn mode: whether a reply has been asked for."""
        self._next_turn = opening.next_turn
        self._turn = max(opening.next_turn - 1, 0)
        self._decided = opening.decided
        self._dialogue = dialogue
        self._ear = ear
        self._turns = turns
        self._lexicon = lexicon
        self._unit_s = unit_ms / 1000
        self._clock = clock
        self._now_s = opening.next_unit * self._unit_s
        """The caller's time: the end of the unit heard last."""
        self._mouth = Mouth()
        self._seq = 0
        self._rate = 1.0
        self._text = ""
        self._begun_s = -_UNHEARD_S
        self._audible_at_s = -_LINGER_S
        """When the agent's voice was last audible."""
        self._audible_s = 0.0
        """How much of it there has been."""
        self._quiet_s = 0.0
        self._begun: dict[int, int] = {}
        """The epoch in which each reply was begun that may have been heard by nobody."""
        self._cuts: dict[int, str] | None = None
        """Replies cut by an interruption not acted on yet, and what was heard of them."""
        self._waiting = 0
        """Units for which an interruption is still waited for."""
        self._to_answer: Sentence | None = None
        self._typed = False
        """Whether typed text has come since the last unit."""
        self._shown = ""
        self._greets = not opening.history and opening.next_turn == 0
        if opening.history:
            continuation, self._to_answer = dialogue.rebuild(opening.history, clock(), self._now_s)
            if continuation is not None:
                self._start(continuation.turn, continuation.answer, continuation.written)

    # --- inputs ---------------------------------------------------------------------------------------------

    def interrupt(self, message: Interrupt) -> None:
        """Take an interruption; all of one epoch are one, and are acted on with the next unit."""
        if message.epoch > self._epoch:
            self._epoch = message.epoch
            self._waiting = 0
            self._mouth.stop()
            if self._ear.utterance is not None:
                self._ear.utterance.granted = True
            self._cuts = {}
            self._wanted = False
        if message.turn is not None and self._cuts is not None:
            self._cuts[message.turn] = message.heard

    def inject(self, item: Item) -> None:
        """Take an item. Typed text takes the floor, and is answered like spoken words; instructions it follows none."""
        match item:
            case CallerText():
                self._to_answer = self._dialogue.joined(self._to_answer, self._dialogue.understand(typed(item.text)))
                self._typed = self._auto
            case ToolResult():
                self._dialogue.errands.returned(item.call, item.output)
            case Tools():
                self._dialogue.errands.use(item.tools)

    def respond(self) -> None:
        """Turn mode: begin a reply when this can be done, to what was understood last."""
        self._wanted = True

    def close(self) -> None:
        """Give back what is leased."""
        self._ear.close()

    def fail(self) -> None:
        """Give back what is leased, after a fault."""
        self._ear.fail()

    def hear(self, unit: Unit) -> list[StageOutput]:
        """Take one unit; returns the caller's words and the reply's text that come of it, the decision last.

        The decision's ``work_s`` is left at 0 for the stage to fill in.
        """
        self._now_s = (unit.index + 1) * self._unit_s
        if unit.agent_audible:
            self._audible_at_s = self._now_s
            self._audible_s += unit.agent_audible / INPUT_RATE
            self._begun.pop(self._turn, None)
        if self._cuts is not None:
            self._take_cuts(self._cuts)
            self._cuts = None
        busy = self._busy
        utterance = self._ear.hear(unit, over_reply=busy)
        self._quiet_s = 0.0 if busy or utterance is not None else self._quiet_s + self._unit_s
        if unit.index < self._decided:
            # Its decision was made before the session was rebuilt.
            return [self._decision(unit, Choice.LISTEN)]
        outputs: list[StageOutput] = []
        yields = self._typed and busy
        self._typed = False
        if utterance is not None:
            utterance.over_reply = self._auto and (utterance.over_reply or busy)
            yields = self._listen(utterance, outputs) or yields
        if yields:
            self._waiting = _WAIT_FOR_CUT_UNITS
            turn = self._turn
            return [*outputs, self._decision(unit, Choice.LISTEN, turn, yields=True)]
        written = self._speak(unit)
        speaks = any(isinstance(output, ReplyText) for output in written) or (self._mouth.open and not self._waiting)
        choice = Choice.SPEAK if speaks else Choice.LISTEN
        return [*outputs, *written, self._decision(unit, choice)]

    # --- listening ------------------------------------------------------------------------------------------

    @property
    def _busy(self) -> bool:
        """Whether a reply is being written, is on its way, or can be heard."""
        return (self._mouth.open or self._now_s - self._audible_at_s < _LINGER_S
                or (self._turn in self._begun and self._now_s - self._begun_s < _UNHEARD_S))

    def _listen(self, utterance: Utterance, outputs: list[StageOutput]) -> bool:
        """Take note of what is being said; returns whether the floor is yielded to it now."""
        yields = False
        if utterance.over_reply and not utterance.granted:
            verdict = self._judge(utterance)
            if verdict is Verdict.TAKES:
                utterance.granted = yields = True
            elif verdict is Verdict.UNDECIDED:
                return False
        taken = not utterance.over_reply or utterance.granted
        sentence = utterance.understanding.sentence
        if utterance.ended:
            if sentence.trust is not Trust.WHOLE:
                words = mended(sentence.words.split(), self._dialogue.errands.skills, self._lexicon)
                sentence = self._dialogue.understand(sentence.saying(words))
                utterance.understanding = replace(utterance.understanding, sentence=sentence)
            self._shown = ""
            if sentence.words and (taken or is_backchannel(sentence.words)):
                outputs.append(self._words(utterance))
            understood = utterance.understanding.parse is not None or " " in sentence.words
            if taken and sentence.words and (understood or utterance.spoken_ms >= _MIN_SPOKEN_MS):
                self._to_answer = self._dialogue.joined(self._to_answer, self._dialogue.understand(sentence))
        elif taken and utterance.understanding.trusted and sentence.words != self._shown:
            # What only the language model hears so far is mostly wrong, and would flicker in the captions.
            self._shown = sentence.words
            outputs.append(self._words(utterance))
        return yields

    def _judge(self, utterance: Utterance) -> Verdict:
        understanding = utterance.understanding
        adapted = self._audible_s >= ECHO_S
        if not (adapted and understanding.trusted) and is_echo(understanding.words, self._text, self._lexicon):
            return Verdict.KEEPS if utterance.ended else Verdict.UNDECIDED
        return self._turns.judge(utterance, adapted=adapted)

    def _words(self, utterance: Utterance) -> CallerWords:
        return CallerWords(self._session, utterance.number, utterance.understanding.sentence.words,
                           utterance.ended, utterance.first_unit, utterance.last_speech)

    # --- speaking -------------------------------------------------------------------------------------------

    def _speak(self, unit: Unit) -> list[StageOutput]:
        if self._waiting:
            self._waiting -= 1
            if self._waiting:
                return []
            # Nobody cut it: what there was of it has been played.
            piece = self._mouth.close()
            if piece is not None:
                return [self._reply_text(piece)]
        if not self._mouth.open and self._ear.utterance is None and (self._auto or self._wanted):
            answer = self._next(self._next_turn)
            self._wanted = False
            if isinstance(answer, Request):
                return [self._call(answer, unit)]
            if answer is not None:
                self._start(self._next_turn, answer, 0)
                self._next_turn += 1
        return [self._reply_text(piece) for piece in self._mouth.tick(self._unit_s)]

    def _next(self, turn: int) -> Answer | Request | None:
        """What to say in reply ``turn``, or to ask of a tool; None where there is nothing."""
        greets, self._greets = self._greets, False
        if self._dialogue.errands.result is not None:
            return self._dialogue.tell(turn)
        if self._to_answer is not None:
            sentence, self._to_answer = self._to_answer, None
            answer = self._dialogue.answer(sentence, turn, self._clock(), self._now_s)
            return answer if answer is not None or self._auto else self._dialogue.admit(turn)
        if greets and (greeting := self._dialogue.greet(turn)) is not None:
            return greeting
        if not self._auto:
            return self._dialogue.admit(turn)
        if self._quiet_s >= _QUIET_S and (reminder := self._dialogue.due(self._now_s)) is not None:
            return self._dialogue.remind(reminder, turn)
        return None

    def _call(self, request: Request, unit: Unit) -> ToolCall:
        errands = self._dialogue.errands
        # A rebuilt session knows how many there were: what it calls next has a name that no other call had.
        call = f"call_{unit.index}_{errands.calls}"
        errands.called(call)
        return ToolCall(self._session, call, request.name, request.arguments)

    def _start(self, turn: int, answer: Answer, written: int) -> None:
        self._turn = turn
        self._text = answer.text
        self._rate = answer.rate
        self._seq = 0
        self._begun_s = self._now_s
        self._begun[turn] = self._epoch
        if len(self._begun) > _TURNS_KEPT:
            del self._begun[min(self._begun)]
        self._mouth.begin(answer.text, answer.rate, written)

    def _reply_text(self, piece: Piece) -> ReplyText:
        fence = Fence(self._session, self._epoch, self._turn, self._seq)
        self._seq += 1
        return ReplyText(fence, piece.start, piece.text, piece.last, self._rate)

    def _take_cuts(self, cuts: dict[int, str]) -> None:
        """Remember what was heard; what nobody heard, though it answered something, is answered again.

        The lowest turn is the one that was being played. One after it, known to the interruption or not, was
        not heard at all.
        """
        played = min(cuts, default=None)
        again: Sentence | None = None
        for turn in sorted({*cuts, *self._begun}, reverse=True):
            heard = cuts.get(turn, "")
            begun_before = self._begun.pop(turn, self._epoch) < self._epoch
            if heard:
                self._dialogue.cut(turn, heard)
            elif turn == played:
                # The caller went on speaking before the answer came: both parts may be one sentence.
                before = self._dialogue.take_back(turn) if self._ear.utterance is not None else None
                if before is not None:
                    again = before if again is None else self._dialogue.joined(before, again)
                else:
                    self._dialogue.cut(turn, "")
            elif begun_before and (played is None or turn > played):
                before = self._dialogue.take_back(turn)
                if before is not None:
                    again = before if again is None else self._dialogue.joined(before, again)
        if again is not None:
            self._to_answer = again if self._to_answer is None else self._dialogue.joined(again, self._to_answer)

    def _decision(self, unit: Unit, choice: Choice, turn: int | None = None, *, yields: bool = False) -> Decision:
        return Decision(self._session, self._epoch, self._turn if turn is None else turn, unit.index, choice, yields)
