"""Words for the open places of phrasings, from lists of their own: the dialogue's own lists are in its templates."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from random import Random

import yaml

_LISTS: dict[str, tuple[str, ...]] = {
    slot: tuple(" ".join(entry.split()) for entry in entries.split("|"))
    for slot, entries in yaml.safe_load((files(__package__) / "open_places.yaml").read_text(encoding="utf-8")).items()}


def fill(slot: str, random: Random) -> Sequence[str]:
    """Words for ``slot``: a name, a word, a text to repeat, a task; those of a text for any other slot."""
    return random.choice(_LISTS.get(slot, _LISTS["text"])).split()
