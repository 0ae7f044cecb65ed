from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from duologue.engine import (
    CallerText,
    CallerWords,
    Choice,
    Decision,
    Fence,
    PipelineConfig,
    ReplyText,
    ToolCall,
    ToolCalled,
    ToolResult,
    Unit,
)
from duologue.engine.messages import (
    AgentSaid,
    AppendUnit,
    CallerSaid,
    Close,
    HistoryItem,
    Inject,
    Interrupt,
    Open,
    Respond,
    SessionFailed,
    StageInput,
    StageOutput,
)
from tests.engine.scripted import WORDS, Order

FAILED: set[tuple[str, int]] = set()
"""Units that have failed once in this process."""


@dataclass
class Reply:
    turn: int
    text: str = ""
    seq: int = 0


@dataclass
class Talk:
    epoch: int
    next_turn: int
    history: list[HistoryItem]
    decided: int
    reply: Reply | None = None
    utterances: int = 0
    asked: str | None = None
    units: deque[Unit | str] = field(default_factory=deque)
    """And requests for a reply between them."""


class Thinker:
    def __init__(self) -> None:
        self.talks: dict[str, Talk] = {}

    def receive(self, message: StageInput) -> None:
        talk = self.talks.get(getattr(message, "session", ""))
        match message:
            case Open():
                talk = Talk(message.epoch, message.next_turn, list(message.history), message.decided)
                for said in talk.history:
                    if isinstance(said, AgentSaid) and said.open:
                        talk.reply = Reply(said.turn, said.text)
                self.talks[message.session] = talk
            case Close():
                self.talks.pop(message.session, None)
            case AppendUnit() if talk:
                talk.units.append(message.unit)
            case Inject(item=CallerText(text=text)) if talk:
                talk.history.append(CallerSaid(text))
            case Inject(item=ToolResult(call=call, output=output)) if talk:
                talk.history = [replace(item, output=output) if isinstance(item, ToolCalled) and item.call == call
                                else item for item in talk.history]
            case Respond() if talk:
                talk.units.append(message.instructions)
            case Interrupt() if talk:
                talk.epoch = message.epoch
                talk.asked = None
                talk.units = deque(unit for unit in talk.units if isinstance(unit, Unit))
                talk.reply = None
                if message.turn is not None:
                    talk.history.append(AgentSaid(message.turn, message.heard))
            case _:
                pass

    @property
    def ready(self) -> bool:
        return any(talk.units for talk in self.talks.values())

    def step(self) -> Sequence[StageOutput]:
        return [output for session, talk in self.talks.items() if talk.units
                for output in self.think(session, talk, talk.units.popleft())]

    def think(self, session: str, talk: Talk, unit: Unit | str) -> Sequence[StageOutput]:
        if isinstance(unit, str):
            talk.asked = unit
            return []
        order = Order(int(unit.pcm[0])) if unit.index >= talk.decided else Order.LISTEN
        out: list[StageOutput] = []
        match order:
            case Order.CALL:
                call = ToolCall(session, f"call_{unit.index}", "tool", "{}")
                talk.history.append(ToolCalled(call.call, call.name, call.arguments, unit=unit.index))
                talk.asked = None
                out.append(call)
            case Order.SKIP:
                return []
            case Order.FAIL:
                return [SessionFailed(session, "told to")]
            case Order.FAIL_ONCE | Order.RAISE_ONCE if (session, unit.index) not in FAILED:
                FAILED.add((session, unit.index))
                if order is Order.RAISE_ONCE:
                    raise RuntimeError("told to")
                return [SessionFailed(session, "told to, once")]
            case Order.HEAR | Order.RECALL:
                text = f"heard {unit.index}"
                if order is Order.RECALL:
                    text = " | ".join(remembered(item) for item in talk.history)
                else:
                    talk.history.append(CallerSaid(text))
                out.append(CallerWords(session, talk.utterances, text, True, unit.index, unit.index))
                talk.utterances += 1
        count = {Order.SPEAK: 1, Order.FINISH: 1, Order.BURST: 30}.get(order, int(order in WORDS))
        for _ in range(count):
            out.append(self.say(session, talk, WORDS.get(order), last=order is Order.FINISH))
        if order is Order.LISTEN and talk.asked is not None and talk.reply is None and unit.index >= talk.decided:
            count = 1
            out.append(self.say(session, talk, talk.asked, last=True))
        choice = Choice.SPEAK if count else Choice.LISTEN
        turn = talk.reply.turn if talk.reply else talk.next_turn
        out.append(Decision(session, talk.epoch, turn, unit.index, choice, work_s=0.001))
        return out

    def say(self, session: str, talk: Talk, word: str | None, *, last: bool) -> ReplyText:
        if talk.reply is None:
            talk.reply = Reply(talk.next_turn)
            talk.next_turn += 1
            talk.asked = None
        reply = talk.reply
        text = f"{word or f'w{len(reply.text.split())}'} "
        message = ReplyText(Fence(session, talk.epoch, reply.turn, reply.seq), len(reply.text), text, last)
        reply.seq += 1
        reply.text += text
        if last:
            talk.history.append(AgentSaid(reply.turn, reply.text))
            talk.reply = None
        return message


def remembered(item: HistoryItem) -> str:
    what = f"{item.name}={item.output}" if isinstance(item, ToolCalled) else item.text
    return f"{type(item).__name__}:{what}"


def create(options: Mapping[str, Any], pipeline: PipelineConfig) -> Thinker:
    return Thinker()
