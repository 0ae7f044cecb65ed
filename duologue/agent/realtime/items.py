"""The items of a conversation as the client knows them."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal

from duologue.agent.realtime import events as ev

MAX_ITEMS = 256
"""Items of a conversation that stay retrievable; the oldest goes first."""

Emit = Callable[[ev.ServerEvent], None]


def new_id(kind: str) -> str:
    """A name nobody has had: ``item_…``, ``resp_…``."""
    return f"{kind}_{secrets.token_hex(10)}"


class Items:
    """Each item as it stands now, oldest first."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._items: OrderedDict[str, ev.Item] = OrderedDict()
        self.last: str | None = None
        """The newest item."""

    def get(self, item_id: str) -> ev.Item | None:
        """The item, if it is still kept."""
        return self._items.get(item_id)

    def keep(self, item: ev.Item) -> None:
        """Let this be what the item is now."""
        self._items[item.id] = item
        while len(self._items) > MAX_ITEMS:
            self._items.popitem(last=False)

    def forget(self, item_id: str) -> bool:
        """Keep the item no longer; False if there is none."""
        if self.last == item_id:
            self.last = None
        return self._items.pop(item_id, None) is not None

    def add(self, item: ev.Item) -> None:
        """Put a new item at the end, and tell it."""
        self.keep(item)
        previous, self.last = self.last, item.id
        self.tell("conversation.item.added", item, previous)

    def add_complete(self, item: ev.Item) -> None:
        """Put an item at the end that nothing will be added to."""
        previous = self.last
        self.add(item)
        self.tell("conversation.item.done", item, previous)

    def tell(self, kind: Literal["conversation.item.added", "conversation.item.done", "conversation.item.retrieved"],
             item: ev.Item, previous: str | None = None) -> None:
        """Tell the client of an item."""
        self._emit(ev.ItemEvent(type=kind, item=item, previous_item_id=previous))
