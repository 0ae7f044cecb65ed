"""Pieces and sampling as vLLM takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from vllm import SamplingParams
from vllm.inputs.engine import mm_input, tokens_input
from vllm.multimodal.inputs import (
    MultiModalFieldElem,
    MultiModalKwargsItem,
    MultiModalKwargsItems,
    MultiModalSharedField,
    PlaceholderRange,
)
from vllm.sampling_params import RequestOutputKind

from duologue.engine.runners.base import Copy, Embeddings, Piece, Sampling, Segment, Swap
from duologue.engine.runners.vllm.model import MODALITY

KEY = "duologue"
"""Where in ``SamplingParams.extra_args`` our own are."""
PLACEHOLDER = 0
"""Token id at the positions of embedding rows; its own embedding is never used."""
NO_POSITION = 1 << 31


@dataclass(frozen=True, slots=True)
class Wanted:
    """Hidden states that ``segment`` wants: of the positions from ``first`` on."""

    segment: int
    first: int

    @classmethod
    def of(cls, params: Any) -> Wanted:
        """What a request's ``SamplingParams`` ask for."""
        values = extra(params)
        return cls(values["segment"], values["first_row"])


def extra(params: Any) -> dict[str, Any]:
    """Our own of a request's ``SamplingParams``: ``segment``, ``first_row``, ``sampling``."""
    values: dict[str, Any] = params.extra_args[KEY]
    return values


def plain(sampling: Sampling) -> dict[str, Any] | None:
    """``sampling`` in values that pass a message queue; None when it takes the largest logit and nothing else."""
    greedy = Sampling(max_tokens=sampling.max_tokens, stop=sampling.stop, top_k=sampling.top_k, top_p=sampling.top_p,
                      repetition=sampling.repetition, repetition_window=sampling.repetition_window,
                      recent=sampling.recent, seed=sampling.seed)
    if sampling == greedy:
        return None
    # Not ``asdict``, which copies thousands of ids one by one.
    values = {each.name: getattr(sampling, each.name) for each in fields(sampling)}
    swap, copy = sampling.swap, sampling.copy
    return {**values, "stop": sorted(sampling.stop), "swap": None if swap is None else asdict(swap),
            "copy": None if copy is None else asdict(copy)}


def from_plain(values: dict[str, Any]) -> Sampling:
    """What ``plain`` made plain, and a message queue made lists."""
    once, swap, copy = values["at_once"], values["swap"], values["copy"]
    return Sampling(**{
        **values, "stop": frozenset(values["stop"]), "at_once": None if once is None else tuple(once),
        "swap": None if swap is None else Swap(**swap), "copy": None if copy is None else _copy(copy),
        "forbidden": _shared(tuple(values["forbidden"])),
        **{name: tuple(values[name]) for name in ("recent", "first")},
        **{name: tuple((id, amount) for id, amount in values[name]) for name in ("bias", "damp")}})


def _copy(values: dict[str, Any]) -> Copy:
    return Copy(tuple(values["opens"]), tuple(values["closes"]),
                tuple(tuple(map(tuple, text)) for text in values["texts"]))


@lru_cache(maxsize=64)
def _shared(ids: tuple[int, ...]) -> tuple[int, ...]:
    """Give one and the same tuple for equal ones: what thousands of segments forbid is looked at once a batch."""
    return ids


def engine_input(pieces: Sequence[Piece]) -> Any:
    """``pieces``, one position at least, as one vLLM ``EngineInput``; rows are items named by their ``key``."""
    ids: list[int] = []
    items: list[Any] = []
    hashes: list[str] = []
    places: list[Any] = []
    for piece in pieces:
        if isinstance(piece, Embeddings):
            if not len(piece):
                continue
            data = MultiModalFieldElem(data=torch.from_numpy(piece.rows.astype(np.float32)),
                                       field=MultiModalSharedField(batch_size=1))
            items.append(MultiModalKwargsItem({"embedding": data}))
            hashes.append(piece.key.hex())
            places.append(PlaceholderRange(offset=len(ids), length=len(piece)))
            ids.extend([PLACEHOLDER] * len(piece))
        else:
            ids.extend(piece.ids)
    if not items:
        return tokens_input(ids)
    return mm_input(ids, MultiModalKwargsItems({MODALITY: items}), {MODALITY: hashes}, {MODALITY: places})


def sampling_params(segment: Segment, number: int, start: int) -> Any:
    """vLLM's ``SamplingParams`` for ``segment``, whose generated tokens begin at position ``start``.

    A segment that only prefills samples one token all the same, which nobody sees: vLLM drops the last token of
    every segment.
    """
    sampling = segment.sampling or Sampling(max_tokens=1)
    first_row = {"none": NO_POSITION, "generated": start, "all": segment.keep}[segment.hidden]
    return SamplingParams(
        max_tokens=sampling.max_tokens, stop_token_ids=sorted(sampling.stop), ignore_eos=True,
        # Greedy, over what the logits processor leaves.
        temperature=0.0, extra_args={KEY: {"segment": number, "first_row": first_row, "sampling": plain(sampling)}},
        detokenize=False, output_kind=RequestOutputKind.DELTA,
        # The rows of positions that are found in the prefix cache are not computed again.
        skip_reading_prefix_cache=segment.hidden == "all")
