"""What a client asks of its call, and what becomes of it: one reading of its events, whatever door they came by."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from duologue import metrics
from duologue.agent.awaited import Awaited
from duologue.agent.realtime import client_events as ce
from duologue.agent.realtime import events as ev
from duologue.agent.realtime.items import new_id
from duologue.agent.realtime.parse import BadEventError, parse
from duologue.agent.realtime.projection import Projection
from duologue.agent.realtime.session import BadSessionError, Wishes
from duologue.engine import Brief, CallerText, Instructions, Item, Overrun, Tool, ToolResult, Tools

MAX_NOTES = 16
"""System messages that are added to the instructions; the oldest goes first."""

_CALLS_REMEMBERED = 256


def brief_of(wishes: Wishes) -> Brief:
    """What the engine is told of a client's wishes. Raises ``ValueError`` for tools that cannot be called."""
    return Brief(wishes.instructions, wishes.voice, _tools(wishes), wishes.auto_respond)


def _tools(wishes: Wishes) -> tuple[Tool, ...]:
    return tuple(Tool(tool.name, tool.description, tool.parameters) for tool in wishes.tools)


class Mind(Protocol):
    """What a client's events act on of an engine session."""

    def reopen(self, brief: Brief) -> None:
        """Begin again with another brief."""

    def inject(self, item: Item) -> None:
        """Give an item between two units."""

    def respond(self, instructions: str = "") -> None:
        """Ask for a reply."""


class Controls(Protocol):
    """What they act on of a call."""

    @property
    def now(self) -> int:
        """The caller's samples (16 kHz) so far."""

    @property
    def speaking(self) -> bool:
        """Whether a reply is on its way to the caller."""

    def cancel(self) -> None:
        """Stop the reply."""

    def take_back(self) -> None:
        """Take a request for a reply back."""

    def truncate(self, turn: int, audio_end_ms: int) -> int:
        """Take note that of a reply no more than this was heard; returns the milliseconds that count."""

    def commit(self) -> None:
        """Have what was heard so far given to the model."""

    def gone(self, reason: str) -> None:
        """End the call."""


class Client:
    """One client's side of a call."""

    def __init__(self, controls: Controls, mind: Mind, projection: Projection, awaited: Awaited) -> None:
        self._controls = controls
        self._mind = mind
        self._projection = projection
        self._awaited = awaited
        self._notes: deque[str] = deque(maxlen=MAX_NOTES)
        self._calls_of_before: deque[str] = deque(maxlen=_CALLS_REMEMBERED)
        """Calls of tools that another session made, as a client tells them that restores a conversation."""

    def take(self, message: str) -> None:
        """Take one message; what is wrong with it goes back as an ``error`` event."""
        event: ce.ClientEvent | None = None
        try:
            event = parse(message)
            self._do(event)
        except BadEventError as refusal:
            self._refuse(refusal.code, str(refusal), refusal.event_id)
        except BadSessionError as refusal:
            self._projection.error("invalid_value", str(refusal), event.event_id if event else None,
                                   param=refusal.param)
        except Overrun:
            metrics.DROPS.labels(what="item", reason="overrun").inc()
            self._refuse("too_many_items", "Too much waits for the model; try again in a moment.",
                         event.event_id if event else None)

    def _refuse(self, code: str, message: str, event_id: str | None) -> None:
        self._projection.error(code, message, event_id)

    def _do(self, event: ce.ClientEvent) -> None:
        match event:
            case ce.SessionUpdate():
                self._update(event)
            case ce.ItemCreate():
                self._create(event)
            case ce.ItemNamed(type="conversation.item.retrieve"):
                self._projection.retrieve(event.item_id, event.event_id)
            case ce.ItemNamed():
                self._projection.delete(event.item_id, event.event_id)
            case ce.ItemTruncate():
                self._truncate(event)
            case ce.ResponseCreate():
                self._respond(event)
            case ce.Plain(type="response.cancel" | "output_audio_buffer.clear"):
                # Clients cancel as a matter of course, what is over too: no error, some die of one.
                if self._controls.speaking:
                    self._controls.cancel()
                elif self._awaited.asked:
                    self._awaited.answered()
                    self._controls.take_back()
                    self._projection.nothing_came(cancelled=True)
            case ce.Plain(type="input_audio_buffer.commit"):
                self._controls.commit()
            case ce.Plain(type="input_audio_buffer.clear"):
                self._projection.cleared()
            case ce.Plain(type="session.close"):
                self._projection.closed()
                self._controls.gone("hung up")
            case _:
                pass  # signs of life, acknowledgements, audio by a door that has its own way for it

    # --- the session ----------------------------------------------------------------------------------------

    def _update(self, event: ce.SessionUpdate) -> None:
        before = self._projection.session.wishes
        session = self._projection.session.merged(event.session)
        after = session.wishes
        if (after.auto_respond, after.voice) != (before.auto_respond, before.voice):
            try:
                self._mind.reopen(brief_of(after))
            except ValueError:
                if after.auto_respond != before.auto_respond:
                    raise BadSessionError("session.audio.input.turn_detection", "Whether the model decides by itself "
                                          "when to speak can be set before the first audio only.") from None
                session = session.with_voice(before.voice)
            else:
                self._projection.updated(session)
                return
        if after.instructions != before.instructions:
            self._mind.inject(Instructions(self._instructions(after)))
        if after.tools != before.tools:
            self._mind.inject(Tools(_tools(after)))
        self._projection.updated(session)

    def _instructions(self, wishes: Wishes) -> str:
        return "\n\n".join(text for text in (wishes.instructions, *self._notes) if text)

    # --- items ----------------------------------------------------------------------------------------------

    def _create(self, event: ce.ItemCreate) -> None:
        item = event.item
        if item.id is not None and self._projection.item(item.id) is not None:
            raise BadEventError("item_create_duplicate_item_id", f"There is an item {item.id!r} already.",
                                event.event_id)
        match item.type:
            case "message":
                self._projection.created(self._message(item, event.event_id))
            case "function_call_output":
                self._projection.created(self._result(item, event.event_id))
            case "function_call" if item.call_id and item.name:
                self._calls_of_before.append(item.call_id)
                self._projection.created(ev.Item(
                    id=item.id or new_id("item"), type="function_call", status="completed", call_id=item.call_id,
                    name=item.name, arguments=item.arguments or ""))
            case other:
                raise BadEventError("bad_event", f"An item of type {other[:64]!r} cannot be created: it must be a "
                                    "message, a function_call with call_id and name, or a function_call_output.",
                                    event.event_id)

    def _message(self, item: ce.InputItem, event_id: str | None) -> ev.Item:
        text = " ".join(part.text.strip() for part in item.content if part.text and part.text.strip())
        if not text:
            raise BadEventError("bad_event", "A message needs text; audio and images cannot be created.", event_id)
        match item.role:
            case "user":
                self._mind.inject(CallerText(text))
                role, kind = "user", "input_text"
            case "system" | "developer":
                self._notes.append(text)
                self._mind.inject(Instructions(self._instructions(self._projection.session.wishes)))
                role, kind = "system", "input_text"
            case "assistant":
                # A model that hears and speaks remembers what it said itself, and nothing else.
                metrics.DROPS.labels(what="item", reason="said_elsewhere").inc()
                role, kind = "assistant", "output_text"
            case other:
                raise BadEventError("bad_event", f"There is no role {other[:64]!r}: use user, system or assistant.",
                                    event_id)
        return ev.Item.model_validate({"id": item.id or new_id("item"), "status": "completed", "role": role,
                                       "content": ({"type": kind, "text": text},)})

    def _result(self, item: ce.InputItem, event_id: str | None) -> ev.Item:
        if item.call_id is None or item.output is None:
            raise BadEventError("bad_event", "A function_call_output needs call_id and output.", event_id)
        if item.call_id not in self._calls_of_before:
            try:
                self._mind.inject(ToolResult(item.call_id, item.output))
            except ValueError as why:
                raise BadEventError("item_create_invalid_call_id", f"{why}.", event_id) from why
        return ev.Item(id=item.id or new_id("item"), type="function_call_output", status="completed",
                       call_id=item.call_id, output=item.output)

    def _truncate(self, event: ce.ItemTruncate) -> None:
        turn = self._projection.turn_of(event.item_id)
        if turn is None:
            raise BadEventError("item_truncate_invalid_item_id",
                                f"There is no reply with the item {event.item_id[:64]!r}.", event.event_id)
        self._projection.truncated(event.item_id, self._controls.truncate(turn, event.audio_end_ms))

    # --- replies --------------------------------------------------------------------------------------------

    def _respond(self, event: ce.ResponseCreate) -> None:
        options = event.response or ce.ResponseOptions()
        if not self._projection.session.wishes.auto_respond:
            if self._awaited.asked or self._controls.speaking:
                raise BadEventError("conversation_already_has_active_response",
                                    "A response is in progress; wait for its response.done, or cancel it.",
                                    event.event_id)
            self._mind.respond(options.instructions or "")
        elif self._controls.speaking:
            return  # that is the answer: a model that decides by itself may be quicker than the request
        self._projection.asked(options.metadata)
        self._awaited.ask(self._controls.now)
