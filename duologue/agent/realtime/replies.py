"""The agent's side of a call, as the client is told of it: responses, what is said in them, tools that are called.

A response gets exactly one ``response.done``, whatever happens to it. Where the client plays the audio from events, one
response follows the other: it is over when the last of its audio was sent, and what is written of the next one
meanwhile waits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from duologue.agent.realtime import events as ev
from duologue.agent.realtime.items import MAX_ITEMS, Emit, Items, new_id

Status = Literal["completed", "cancelled", "incomplete", "failed"]


@dataclass(slots=True)
class _Reply:
    """One turn as the client knows it."""

    response_id: str = field(default_factory=lambda: new_id("resp"))
    item_id: str = field(default_factory=lambda: new_id("item"))
    text: str = ""
    told: bool = False
    """Whether the client knows of it."""
    done: bool = False
    played: bool = False
    """Whether the last of its audio was given."""
    end: tuple[Status, str] | None = None
    """How the engine says that it ended, while its audio is still being sent."""
    calls: tuple[ev.Item, ...] = ()
    """Tools that were called during it."""
    metadata: dict[str, str] | None = None


class Replies:
    """What the agent says and asks of tools."""

    def __init__(self, items: Items, emit: Emit) -> None:
        self.in_events = False
        """Whether the client gets the audio as events."""
        self._items = items
        self._emit = emit
        self._replies: OrderedDict[int, _Reply] = OrderedDict()
        self._asked: dict[str, str] | None = None

    def asked(self, metadata: Mapping[str, str] | None) -> None:
        """The client asked for a response; ``metadata`` goes back with the next one."""
        self._asked = dict(metadata) if metadata else None

    def turn_of(self, item_id: str) -> int | None:
        """The turn that an item is the reply of."""
        return next((turn for turn, reply in self._replies.items() if reply.item_id == item_id), None)

    def names(self, turn: int) -> tuple[str, str]:
        """The ids of a turn's response and item."""
        return self._replies[turn].response_id, self._replies[turn].item_id

    # --- a reply's life -------------------------------------------------------------------------------------

    def opened(self, turn: int) -> None:
        """The thinker began a reply; again is nothing."""
        if turn in self._replies:
            return
        self._replies[turn] = _Reply()
        while len(self._replies) > MAX_ITEMS:
            self._replies.popitem(last=False)
        self._tell_next()

    def _tell_next(self) -> None:
        """Tell of replies whose turn it is."""
        for reply in list(self._replies.values()):
            if self.in_events and any(other.told and not other.done for other in self._replies.values()):
                return
            if not reply.told:
                self._begin(reply)

    def _begin(self, reply: _Reply) -> None:
        reply.told = True
        reply.metadata, self._asked = self._asked, None
        item = ev.Item(id=reply.item_id, status="in_progress", role="assistant", content=())
        self._emit(ev.ResponseEvent(type="response.created", response=ev.Response(
            id=reply.response_id, status="in_progress", metadata=reply.metadata)))
        self._emit(ev.OutputItemEvent(type="response.output_item.added", response_id=reply.response_id, item=item))
        self._items.add(item)
        self._emit(ev.ContentPartEvent(type="response.content_part.added", response_id=reply.response_id,
                                       item_id=reply.item_id, part=ev.Part()))
        if reply.text:
            self._tell_text(reply, reply.text)
        self._end_if_over(reply)

    def text(self, turn: int, delta: str) -> None:
        """More text of a reply."""
        reply = self._replies.get(turn)
        if reply is not None and not reply.done and delta:
            reply.text += delta
            if reply.told:
                self._tell_text(reply, delta)

    def _tell_text(self, reply: _Reply, delta: str) -> None:
        self._emit(ev.TranscriptDelta(response_id=reply.response_id, item_id=reply.item_id, delta=delta))

    def played(self, turn: int) -> None:
        """The last of a reply's audio was given."""
        reply = self._replies.get(turn)
        if reply is not None:
            reply.played = True
            self._end_if_over(reply)

    def ended(self, turn: int, status: Status, reason: str = "", *, voiced: bool = False) -> None:
        """The engine's terminal event; nothing if the reply was cut before. ``voiced``: there was audio of it."""
        reply = self._replies.get(turn)
        if reply is None or reply.done:
            return
        reply.end = status, reason
        reply.played = reply.played or not voiced or status == "cancelled"
        if reply.told or status != "cancelled":
            self._end_if_over(reply)
        else:  # nobody knows of it
            del self._replies[turn]

    def _end_if_over(self, reply: _Reply) -> None:
        if not reply.told or reply.done or reply.end is None or (self.in_events and not reply.played):
            return
        status, reason = reply.end
        details = None
        if status == "failed":
            details = ev.StatusDetails(type="failed", error={
                "code": "reply_failed", "message": reason or "The reply could not be finished."})
        elif status == "cancelled":
            details = ev.StatusDetails(type="cancelled", reason="turn_detected")
        self._finish(reply, status, details, reply.text)

    def cut(self, turn: int, heard_text: str, audio_end_ms: int, why: ev.CutReason) -> str | None:
        """A reply was interrupted: ``heard_text`` of it, in ``audio_end_ms`` of audio, was heard.

        Returns the text it had, or None for a reply nobody knows of. Those that waited behind it are gone with it.
        """
        if self.in_events:
            for later in [number for number, other in self._replies.items() if not other.told and number != turn]:
                del self._replies[later]
        reply = self._replies.get(turn)
        if reply is None or not reply.told:
            self._replies.pop(turn, None)
            return None
        if reply.done:
            self._items.keep(self._item(reply, "incomplete", heard_text))
        else:
            status: Status = "incomplete" if why == "max_output_tokens" else "cancelled"
            details = ev.StatusDetails(type="incomplete" if status == "incomplete" else "cancelled", reason=why)
            self._finish(reply, status, details, heard_text)
        if not self.in_events:
            self._emit(ev.OutputBuffer(type="output_audio_buffer.cleared", response_id=reply.response_id))
            self.truncated(reply.item_id, audio_end_ms)
        return reply.text

    def shortened(self, turn: int, heard_text: str) -> None:
        """Of a reply that was over, only this was heard."""
        reply = self._replies.get(turn)
        if reply is not None and reply.done:
            self._items.keep(self._item(reply, "incomplete", heard_text))

    def truncated(self, item_id: str, audio_end_ms: int) -> None:
        """Tell where an item was cut."""
        self._emit(ev.ItemTruncated(item_id=item_id, audio_end_ms=audio_end_ms))

    def buffer(self, kind: Literal["output_audio_buffer.started", "output_audio_buffer.stopped"], turn: int) -> None:
        """Tell of playing, where it happens on our side of the network."""
        reply = self._replies.get(turn)
        if reply is not None and not self.in_events:
            self._emit(ev.OutputBuffer(type=kind, response_id=reply.response_id))

    @staticmethod
    def _item(reply: _Reply, status: Literal["completed", "incomplete"], text: str) -> ev.Item:
        return ev.Item(id=reply.item_id, status=status, role="assistant",
                       content=(ev.Content(type="output_audio", transcript=text),))

    def _finish(self, reply: _Reply, status: Status, details: ev.StatusDetails | None, text: str) -> None:
        reply.done = True
        item = self._item(reply, "completed" if status == "completed" else "incomplete", text)
        self._items.keep(item)
        response_id, item_id = reply.response_id, reply.item_id
        self._emit(ev.AudioDone(response_id=response_id, item_id=item_id))
        self._emit(ev.TranscriptDone(response_id=response_id, item_id=item_id, transcript=text))
        self._emit(ev.ContentPartEvent(type="response.content_part.done", response_id=response_id, item_id=item_id,
                                       part=ev.Part(transcript=text)))
        self._items.tell("conversation.item.done", item)
        self._emit(ev.OutputItemEvent(type="response.output_item.done", response_id=response_id, item=item))
        self._done(response_id, status, details, (item, *reply.calls), reply.metadata)
        self._tell_next()

    def _done(self, response_id: str, status: Status, details: ev.StatusDetails | None, output: tuple[ev.Item, ...],
              metadata: dict[str, str] | None) -> None:
        self._emit(ev.ResponseEvent(type="response.done", response=ev.Response(
            id=response_id, status=status, status_details=details, output=output, metadata=metadata)))

    # --- responses that are no speech -----------------------------------------------------------------------

    def tool_called(self, call_id: str, name: str, arguments: str) -> None:
        """The thinker asks for a tool's work: in the response that is open, or in one of its own."""
        open_one = next((reply for reply in self._replies.values() if reply.told and not reply.done), None)
        response_id, metadata = new_id("resp"), None
        if open_one is not None:
            response_id = open_one.response_id
        else:
            metadata, self._asked = self._asked, None
            self._emit(ev.ResponseEvent(type="response.created", response=ev.Response(
                id=response_id, status="in_progress", metadata=metadata)))
        index = 0 if open_one is None else 1 + len(open_one.calls)
        begun = ev.Item(id=new_id("item"), type="function_call", status="in_progress", call_id=call_id, name=name,
                        arguments="")
        whole = begun.model_copy(update={"status": "completed", "arguments": arguments})
        self._emit(ev.OutputItemEvent(type="response.output_item.added", response_id=response_id, output_index=index,
                                      item=begun))
        self._items.add(begun)
        self._emit(ev.ArgumentsDelta(response_id=response_id, item_id=begun.id, output_index=index, call_id=call_id,
                                     delta=arguments))
        self._emit(ev.ArgumentsDone(response_id=response_id, item_id=begun.id, output_index=index, call_id=call_id,
                                    name=name, arguments=arguments))
        self._items.keep(whole)
        self._items.tell("conversation.item.done", whole)
        self._emit(ev.OutputItemEvent(type="response.output_item.done", response_id=response_id, output_index=index,
                                      item=whole))
        if open_one is None:
            self._done(response_id, "completed", None, (whole,), metadata)
        else:
            open_one.calls += (whole,)

    def nothing_came(self, *, cancelled: bool) -> None:
        """Answer a request with a response in which nothing is said: it was taken back, or took too long."""
        response_id, metadata, self._asked = new_id("resp"), self._asked, None
        self._emit(ev.ResponseEvent(type="response.created", response=ev.Response(
            id=response_id, status="in_progress", metadata=metadata)))
        if cancelled:
            details = ev.StatusDetails(type="cancelled", reason="client_cancelled")
        else:
            details = ev.StatusDetails(type="incomplete", reason="max_output_tokens")
        self._done(response_id, "cancelled" if cancelled else "incomplete", details, (), metadata)
