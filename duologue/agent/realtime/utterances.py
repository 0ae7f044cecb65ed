"""The caller's side of a call, as the client is told of it: speech, and the items it becomes.

Clients that play a reply themselves throw it away when they are told that speech has started. So they are told of
speech over a reply only once it has interrupted it: a reply that goes on after an "mm-hm" must still be there.
"""

from __future__ import annotations

from dataclasses import dataclass

from duologue.agent.realtime import events as ev
from duologue.agent.realtime.items import Emit, Items, new_id


@dataclass(slots=True)
class _Utterance:
    """The caller's item in the making."""

    item_id: str
    start_ms: int
    end_ms: int
    committed: bool = False


@dataclass(slots=True)
class _Held:
    """Speech over a reply, of which the client is not told yet."""

    start_ms: int
    end_ms: int | None = None


class Utterances:
    """What the caller says."""

    def __init__(self, items: Items, emit: Emit) -> None:
        self._items = items
        self._emit = emit
        self._pending: _Utterance | None = None
        self._utterances: dict[int, _Utterance] = {}
        self._held: _Held | None = None

    def started(self, at_ms: int, *, hold: bool = False) -> None:
        """Speech began; with ``hold`` the client is told when ``release`` is called."""
        if hold:
            self._held = _Held(at_ms)
            return
        self._held = None
        if self._pending is None:
            self._pending = _Utterance(new_id("item"), at_ms, at_ms)
        self._emit(ev.SpeechStarted(item_id=self._pending.item_id, audio_start_ms=at_ms))

    def stopped(self, at_ms: int) -> None:
        """Speech ended; whether the utterance did, the thinker decides."""
        if self._held is not None:
            self._held.end_ms = at_ms
        elif self._pending is not None:
            self._pending.end_ms = at_ms
            self._emit(ev.SpeechStopped(item_id=self._pending.item_id, audio_end_ms=at_ms))

    def release(self) -> int | None:
        """Tell of speech that was held: it counts. Returns where it ended, which ``stopped`` is to tell."""
        held, self._held = self._held, None
        if held is None:
            return None
        self.started(held.start_ms)
        return held.end_ms

    def settle(self) -> None:
        """Nothing speaks over the reply any more: tell of speech that goes on, forget what is over."""
        if self._held is not None and self._held.end_ms is None:
            self.release()
        self._held = None

    def committed(self) -> None:
        """The client says that the utterance is complete."""
        if self._pending is not None and not self._pending.committed:
            self._commit(self._pending)

    def _commit(self, mine: _Utterance) -> None:
        mine.committed = True
        self._emit(ev.Committed(item_id=mine.item_id, previous_item_id=self._items.last))

    def heard_from(self, start_ms: int) -> None:
        """Audio comes of which the client is told nothing until it commits it."""
        if self._pending is None:
            self._pending = _Utterance(new_id("item"), start_ms, start_ms)

    def words(self, utterance: int, text: str, final: bool, start_ms: int, end_ms: int) -> ev.PartialTranscript | None:
        """What the caller was understood to say in ``utterance``; returns what is told of it while it is partial."""
        mine = self._utterances.get(utterance)
        if mine is None:
            mine = self._pending or _Utterance(new_id("item"), start_ms, end_ms)
            self._utterances[utterance] = mine
        if not final:
            return ev.PartialTranscript(item_id=mine.item_id, text=text)
        del self._utterances[utterance]
        if self._pending is mine:
            self._pending = None
        if not text:
            return None
        if not mine.committed:
            self._commit(mine)
        self._items.add_complete(ev.Item(id=mine.item_id, status="completed", role="user",
                                         content=(ev.Content(type="input_audio", transcript=text),)))
        self._emit(ev.TranscriptionCompleted(
            item_id=mine.item_id, transcript=text,
            usage=ev.TranscriptionUsage(seconds=max(0, end_ms - start_ms) / 1000)))
        return None
