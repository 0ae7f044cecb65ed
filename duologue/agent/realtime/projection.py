"""A call projected onto OpenAI-Realtime events: what happened in, wire events out; no I/O.

The order of events within a turn is the one every public client relies on. A reply gets exactly one
``response.done``, whatever happens to it.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from duologue.agent.realtime import events as ev

MAX_ITEMS = 256
"""Items of a conversation that stay retrievable; the oldest goes first."""

Status = Literal["completed", "cancelled", "failed"]


def _new_id(kind: str) -> str:
    return f"{kind}_{secrets.token_hex(10)}"


@dataclass(slots=True)
class _Reply:
    """One turn as the client knows it."""

    response_id: str
    item_id: str
    text: str = ""
    done: bool = False


@dataclass(slots=True)
class _Utterance:
    """The caller's item in the making."""

    item_id: str
    start_ms: int
    end_ms: int


def _merge(base: dict[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in change.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return merged


class Projection:
    """What one client has been told, and what it must be told next."""

    def __init__(self, model: str, emit: Callable[[ev.ServerEvent], None]) -> None:
        self._emit = emit
        self._items: OrderedDict[str, ev.Item] = OrderedDict()
        self._last_item: str | None = None
        self._replies: OrderedDict[int, _Reply] = OrderedDict()
        self._pending: _Utterance | None = None
        self._utterances: dict[int, _Utterance] = {}
        self._ours = False
        audio_format = {"type": "audio/pcm", "rate": 24000}
        self._session: dict[str, Any] = {
            "type": "realtime", "object": "realtime.session", "id": _new_id("sess"), "model": model,
            "output_modalities": ["audio"], "instructions": "", "tools": [], "tool_choice": "auto",
            "audio": {
                "input": {"format": audio_format, "turn_detection": {
                    "type": "semantic_vad", "eagerness": "auto", "create_response": True, "interrupt_response": True}},
                "output": {"format": audio_format, "voice": model},
            },
        }
        self._fixed = {key: self._session[key] for key in ("type", "object", "id", "model")}

    # --- session --------------------------------------------------------------------------------------------

    def opened(self) -> None:
        """The control channel is up."""
        self._emit(ev.SessionEvent(type="session.created", session=self._session))

    def configure(self, change: Mapping[str, Any]) -> None:
        """Merge what a client wants of its session; what the server decides keeps its value."""
        ours = change.get("duologue")
        if isinstance(ours, Mapping):
            self._ours = ours.get("events") is True
        self._session = {**_merge(self._session, change), **self._fixed}

    def update(self, change: Mapping[str, Any]) -> None:
        """Answer a client's ``session.update``."""
        self.configure(change)
        self._emit(ev.SessionEvent(type="session.updated", session=self._session))

    def error(self, code: str, message: str, event_id: str | None = None, *, ours: bool = False) -> None:
        """Say what was wrong with a client's event, or (``ours``) that the server failed."""
        kind: Literal["invalid_request_error", "server_error"] = "server_error" if ours else "invalid_request_error"
        self._emit(ev.ErrorEvent(error=ev.ErrorBody(type=kind, code=code, message=message, event_id=event_id)))

    # --- items ----------------------------------------------------------------------------------------------

    def retrieve(self, item_id: str, event_id: str | None) -> None:
        """Answer a client that asks for an item."""
        item = self._items.get(item_id)
        if item is None:
            self.error("item_retrieve_invalid_item_id", f"There is no item {item_id[:64]!r}.", event_id)
        else:
            self._emit(ev.ItemEvent(type="conversation.item.retrieved", item=item))

    def caller_typed(self, text: str, item_id: str | None) -> None:
        """The client created a message of the caller's."""
        item_id = item_id or _new_id("item")
        self._add_complete(ev.Item(id=item_id, status="completed", role="user",
                                   content=(ev.Content(type="input_text", text=text),)))

    def _keep(self, item: ev.Item) -> None:
        self._items[item.id] = item
        while len(self._items) > MAX_ITEMS:
            self._items.popitem(last=False)

    def _add_complete(self, item: ev.Item) -> None:
        self._keep(item)
        previous, self._last_item = self._last_item, item.id
        self._emit(ev.ItemEvent(type="conversation.item.added", item=item, previous_item_id=previous))
        self._emit(ev.ItemEvent(type="conversation.item.done", item=item, previous_item_id=previous))

    # --- the caller -----------------------------------------------------------------------------------------

    def speech_started(self, at_ms: int) -> None:
        """Speech began."""
        if self._pending is None:
            self._pending = _Utterance(_new_id("item"), at_ms, at_ms)
        self._emit(ev.SpeechStarted(item_id=self._pending.item_id, audio_start_ms=at_ms))

    def speech_stopped(self, at_ms: int) -> None:
        """Speech ended; whether the utterance did, the thinker decides."""
        if self._pending is not None:
            self._pending.end_ms = at_ms
            self._emit(ev.SpeechStopped(item_id=self._pending.item_id, audio_end_ms=at_ms))

    def key_pressed(self, key: str, at_unix_s: int) -> None:
        """The caller pressed a key on a telephone."""
        self._emit(ev.DtmfReceived(event=key, received_at=at_unix_s))

    def caller_words(self, utterance: int, text: str, final: bool, start_ms: int, end_ms: int) -> None:
        """What the caller was understood to say in ``utterance``."""
        mine = self._utterances.get(utterance)
        if mine is None:
            mine = self._pending or _Utterance(_new_id("item"), start_ms, end_ms)
            self._utterances[utterance] = mine
        if not final:
            if self._ours:
                self._emit(ev.PartialTranscript(item_id=mine.item_id, text=text))
            return
        del self._utterances[utterance]
        if self._pending is mine:
            self._pending = None
        if not text:
            return
        self._emit(ev.Committed(item_id=mine.item_id, previous_item_id=self._last_item))
        self._add_complete(ev.Item(id=mine.item_id, status="completed", role="user",
                                   content=(ev.Content(type="input_audio", transcript=text),)))
        self._emit(ev.TranscriptionCompleted(
            item_id=mine.item_id, transcript=text,
            usage=ev.TranscriptionUsage(seconds=max(0, end_ms - start_ms) / 1000)))

    # --- replies --------------------------------------------------------------------------------------------

    def reply_opened(self, turn: int) -> None:
        """The thinker began a reply; again is nothing."""
        if turn in self._replies:
            return
        reply = self._replies[turn] = _Reply(_new_id("resp"), _new_id("item"))
        while len(self._replies) > MAX_ITEMS:
            self._replies.popitem(last=False)
        item = ev.Item(id=reply.item_id, status="in_progress", role="assistant")
        self._emit(ev.ResponseEvent(type="response.created",
                                    response=ev.Response(id=reply.response_id, status="in_progress")))
        self._emit(ev.OutputItemEvent(type="response.output_item.added", response_id=reply.response_id, item=item))
        previous, self._last_item = self._last_item, reply.item_id
        self._keep(item)
        self._emit(ev.ItemEvent(type="conversation.item.added", item=item, previous_item_id=previous))
        self._emit(ev.ContentPartEvent(type="response.content_part.added", response_id=reply.response_id,
                                       item_id=reply.item_id, part=ev.Part()))

    def reply_text(self, turn: int, delta: str) -> None:
        """More text of a reply."""
        reply = self._replies.get(turn)
        if reply is not None and not reply.done and delta:
            reply.text += delta
            self._emit(ev.TranscriptDelta(response_id=reply.response_id, item_id=reply.item_id, delta=delta))

    def reply_ended(self, turn: int, status: Status, reason: str = "") -> None:
        """The engine's terminal event; nothing if the reply was cut before."""
        reply = self._replies.get(turn)
        if reply is None or reply.done:
            return
        details = None
        if status == "failed":
            details = ev.StatusDetails(type="failed", error={
                "code": "reply_failed", "message": reason or "The reply could not be finished."})
        elif status == "cancelled":
            details = ev.StatusDetails(type="cancelled", reason="turn_detected")
        self._finish(reply, status, details, reply.text)

    def reply_cut(self, turn: int, heard_text: str, audio_end_ms: int, *, by_client: bool) -> None:
        """The reply was interrupted: ``heard_text`` of it, in ``audio_end_ms`` of audio, was heard."""
        reply = self._replies.get(turn)
        if reply is None:
            return
        if reply.done:
            self._keep(self._item(reply, "incomplete", heard_text))
        else:
            reason: Literal["client_cancelled", "turn_detected"] = "client_cancelled" if by_client else "turn_detected"
            self._finish(reply, "cancelled", ev.StatusDetails(type="cancelled", reason=reason), heard_text)
        self._emit(ev.OutputBuffer(type="output_audio_buffer.cleared", response_id=reply.response_id))
        self._emit(ev.ItemTruncated(item_id=reply.item_id, audio_end_ms=audio_end_ms))
        if self._ours:
            self._emit(ev.ReplyHeard(item_id=reply.item_id, text=reply.text, heard_text=heard_text))

    def play_started(self, turn: int) -> None:
        """The reply's first sample was played."""
        self._buffer("output_audio_buffer.started", turn)

    def play_finished(self, turn: int) -> None:
        """The reply's last sample was played."""
        self._buffer("output_audio_buffer.stopped", turn)

    def _buffer(self, kind: Literal["output_audio_buffer.started", "output_audio_buffer.stopped"], turn: int) -> None:
        reply = self._replies.get(turn)
        if reply is not None:
            self._emit(ev.OutputBuffer(type=kind, response_id=reply.response_id))

    def _item(self, reply: _Reply, status: Literal["completed", "incomplete"], text: str) -> ev.Item:
        return ev.Item(id=reply.item_id, status=status, role="assistant",
                       content=(ev.Content(type="output_audio", transcript=text),))

    def _finish(self, reply: _Reply, status: Status, details: ev.StatusDetails | None, text: str) -> None:
        reply.done = True
        item = self._item(reply, "completed" if status == "completed" else "incomplete", text)
        self._keep(item)
        response_id, item_id = reply.response_id, reply.item_id
        self._emit(ev.AudioDone(response_id=response_id, item_id=item_id))
        self._emit(ev.TranscriptDone(response_id=response_id, item_id=item_id, transcript=text))
        self._emit(ev.ContentPartEvent(type="response.content_part.done", response_id=response_id, item_id=item_id,
                                       part=ev.Part(transcript=text)))
        self._emit(ev.ItemEvent(type="conversation.item.done", item=item))
        self._emit(ev.OutputItemEvent(type="response.output_item.done", response_id=response_id, item=item))
        self._emit(ev.ResponseEvent(type="response.done", response=ev.Response(
            id=response_id, status=status, status_details=details, output=(item,))))

    # --- ours -----------------------------------------------------------------------------------------------

    def ours(self, event: ev.ServerEvent) -> None:
        """Send one of our own events, if the client asked for them."""
        if self._ours:
            self._emit(event)
