"""A call projected onto OpenAI-Realtime events: what happened in, wire events out; no I/O.

The order of events within a turn is the one every public client relies on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from duologue.agent.realtime import events as ev
from duologue.agent.realtime.items import Emit, Items, new_id
from duologue.agent.realtime.replies import Replies, Status
from duologue.agent.realtime.session import SessionObject
from duologue.agent.realtime.utterances import Utterances


class Span(Protocol):
    """Characters [start, end) of a reply's text are spoken by samples [first_sample, end_sample) of it."""

    @property
    def start(self) -> int: ...  # noqa: D102 - said above
    @property
    def end(self) -> int: ...  # noqa: D102
    @property
    def first_sample(self) -> int: ...  # noqa: D102
    @property
    def end_sample(self) -> int: ...  # noqa: D102


class Projection:
    """What one client has been told, and what it must be told next."""

    def __init__(self, session: SessionObject, emit: Emit) -> None:
        self.session = session
        self._emit = emit
        self._items = Items(emit)
        self._utterances = Utterances(self._items, emit)
        self._replies = Replies(self._items, emit)

    # --- session --------------------------------------------------------------------------------------------

    def opened(self, *, voice_in_events: bool = False) -> None:
        """The control channel is up; ``voice_in_events``: the client gets the reply's audio on it, and plays it."""
        self._replies.in_events = voice_in_events
        self._emit(ev.SessionEvent(type="session.created", session=self.session.data))

    def updated(self, session: SessionObject) -> None:
        """From here on the session is this one."""
        self.session = session
        self._emit(ev.SessionEvent(type="session.updated", session=session.data))

    def closed(self) -> None:
        """The client has closed the session."""
        self._emit(ev.SessionClosed())

    def error(self, code: str, message: str, event_id: str | None = None, *, param: str | None = None,
              ours: bool = False) -> None:
        """Say what was wrong with a client's event, or (``ours``) that the server failed."""
        kind: Literal["invalid_request_error", "server_error"] = "server_error" if ours else "invalid_request_error"
        self._emit(ev.ErrorEvent(error=ev.ErrorBody(type=kind, code=code, message=message, param=param,
                                                    event_id=event_id)))

    # --- items ----------------------------------------------------------------------------------------------

    def item(self, item_id: str) -> ev.Item | None:
        """The item, if it is kept."""
        return self._items.get(item_id)

    def retrieve(self, item_id: str, event_id: str | None) -> None:
        """Answer a client that asks for an item."""
        item = self._items.get(item_id)
        if item is None:
            self.error("item_retrieve_invalid_item_id", f"There is no item {item_id[:64]!r}.", event_id)
        else:
            self._items.tell("conversation.item.retrieved", item)

    def delete(self, item_id: str, event_id: str | None) -> None:
        """Keep an item no longer."""
        if self._items.forget(item_id):
            self._emit(ev.ItemDeleted(item_id=item_id))
        else:
            self.error("item_delete_invalid_item_id", f"There is no item {item_id[:64]!r}.", event_id)

    def created(self, item: ev.Item) -> None:
        """The client created an item, which it may have named."""
        self._items.add_complete(item if item.id else item.model_copy(update={"id": new_id("item")}))

    # --- the caller -----------------------------------------------------------------------------------------

    def speech_started(self, at_ms: int, *, over_reply: bool = False) -> None:
        """Speech began, ``over_reply`` perhaps: then a client that plays the reply itself is told when it counts."""
        self._utterances.started(at_ms, hold=over_reply and self._replies.in_events)

    def speech_stopped(self, at_ms: int) -> None:
        """Speech ended; whether the utterance did, the thinker decides."""
        self._utterances.stopped(at_ms)

    def speech_settled(self) -> None:
        """No speech is over a reply any more, and it was not interrupted."""
        self._utterances.settle()

    def audio_comes(self, at_ms: int) -> None:
        """The caller's audio comes in a session without speech events."""
        self._utterances.heard_from(at_ms)

    def committed(self) -> None:
        """The client says that the caller has said all."""
        self._utterances.committed()

    def cleared(self) -> None:
        """What was not given to the model of the caller's audio is dropped."""
        self._emit(ev.BufferCleared())

    def key_pressed(self, key: str, at_unix_s: int) -> None:
        """The caller pressed a key on a telephone."""
        self._emit(ev.DtmfReceived(event=key, received_at=at_unix_s))

    def caller_words(self, utterance: int, text: str, final: bool, start_ms: int, end_ms: int) -> None:
        """What the caller was understood to say in ``utterance``."""
        partial = self._utterances.words(utterance, text, final, start_ms, end_ms)
        if partial is not None:
            self.ours(partial)

    # --- replies --------------------------------------------------------------------------------------------

    def asked(self, metadata: Mapping[str, str] | None) -> None:
        """The client asked for a response; ``metadata`` goes back with the next one."""
        self._replies.asked(metadata)

    def nothing_came(self, *, cancelled: bool = False) -> None:
        """Nothing came of what the client asked for, or it was taken back."""
        self._replies.nothing_came(cancelled=cancelled)

    def reply_opened(self, turn: int) -> None:
        """The thinker began a reply; again is nothing."""
        self._replies.opened(turn)

    def reply_text(self, turn: int, delta: str) -> None:
        """More text of a reply."""
        self._replies.text(turn, delta)

    def reply_words(self, turn: int, spans: Sequence[Span], rate: int) -> None:
        """Where words of a reply are in its audio, at ``rate`` Hz."""
        if spans:
            self.ours(ev.ReplyWords(item_id=self._replies.names(turn)[1], words=tuple(
                ev.SpokenWord(start=span.start, end=span.end, start_ms=span.first_sample * 1000 // rate,
                              end_ms=span.end_sample * 1000 // rate) for span in spans)))

    def reply_ended(self, turn: int, status: Status, reason: str = "", *, voiced: bool = False) -> None:
        """The engine's terminal event; nothing if the reply was cut before. ``voiced``: there was audio of it."""
        self._replies.ended(turn, status, reason, voiced=voiced)

    def reply_cut(self, turn: int, heard_text: str, audio_end_ms: int, why: ev.CutReason) -> None:
        """The reply was interrupted: ``heard_text`` of it, in ``audio_end_ms`` of audio, was heard."""
        stopped = self._utterances.release()
        text = self._replies.cut(turn, heard_text, audio_end_ms, why)
        if stopped is not None:
            self._utterances.stopped(stopped)
        if text is not None:
            self.ours(ev.ReplyHeard(item_id=self._replies.names(turn)[1], text=text, heard_text=heard_text))

    def reply_shortened(self, turn: int, heard_text: str) -> None:
        """Of a reply that was over, only this was heard."""
        self._replies.shortened(turn, heard_text)

    def truncated(self, item_id: str, audio_end_ms: int) -> None:
        """Answer a client that said how much of a reply was heard."""
        self._replies.truncated(item_id, audio_end_ms)

    def turn_of(self, item_id: str) -> int | None:
        """The turn that an item is the reply of."""
        return self._replies.turn_of(item_id)

    def reply_names(self, turn: int) -> tuple[str, str]:
        """The ids of a turn's response and item."""
        return self._replies.names(turn)

    def play_started(self, turn: int) -> None:
        """The reply's first sample was played."""
        self._replies.buffer("output_audio_buffer.started", turn)

    def play_finished(self, turn: int) -> None:
        """The reply's last sample was played."""
        self._replies.played(turn)
        self._replies.buffer("output_audio_buffer.stopped", turn)

    def tool_called(self, call_id: str, name: str, arguments: str) -> None:
        """The thinker asks for a tool's work."""
        self._replies.tool_called(call_id, name, arguments)

    # --- ours -----------------------------------------------------------------------------------------------

    def ours(self, event: ev.ServerEvent) -> None:
        """Send one of our own events, if the client asked for them."""
        if self.session.wishes.ours:
            self._emit(event)
