"""The own autoregressive runner: schedule, forward, choose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import torch
from pydantic import Field

from duologue.engine.config import ConfigError
from duologue.engine.models.duplex.config import DecoderConfig
from duologue.engine.runners.base import Capacity, Finish, Generated, Rows, Segment
from duologue.engine.runners.fault import fault
from duologue.engine.runners.sampling import choose
from duologue.engine.runners.torch.batch import Batch, Work
from duologue.engine.runners.torch.decoder import Decoder
from duologue.engine.runners.torch.graphs import DecodeGraphs
from duologue.engine.runners.torch.kv import KvPool
from duologue.engine.runners.torch.progress import Progress
from duologue.engine.runners.torch.schedule import share
from duologue.strict import Strict


class TorchOptions(Strict):
    """What the runner may take of the machine."""

    device: str = "cpu"
    """``cpu``, ``cuda`` or ``cuda:N``."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Of weights, KV and activations."""
    positions: int = Field(default=16_384, gt=0)
    """KV positions of all sessions together."""
    block: int = Field(default=16, gt=0)
    """Positions of one block of KV."""
    max_length: int = Field(default=4096, gt=0)
    """Positions of one session."""
    max_sessions: int = Field(default=16, gt=0)
    """Sessions that may hold KV at once."""
    prefill_chunk: int = Field(default=128, gt=0)
    """Positions prefilled in one step, of all sessions together: what a long prefill costs the others' next token."""


class TorchRunner:
    """A ``Runner``. Tensors come by the names that ``Decoder`` takes, in any type; others are passed over.

    Raises ``ConfigError`` when a tensor is missing, the device is absent, or ``options`` do not fit the model.
    """

    def __init__(self, config: DecoderConfig, tensors: Iterable[tuple[str, torch.Tensor]],
                 options: TorchOptions) -> None:
        if options.max_length > config.max_position_embeddings:
            raise ConfigError(f"max_length is {options.max_length}, but the model goes up to "
                              f"{config.max_position_embeddings}")
        self._device, dtype = find_device(options.device), getattr(torch, options.dtype)
        self._capacity = Capacity(options.positions // options.block * options.block, options.block,
                                  options.max_length, options.max_sessions, config.hidden_size, config.vocab_size)
        self._prefill_chunk = options.prefill_chunk
        self._live: dict[str, Progress] = {}
        self._told: list[Generated] = []
        with torch.inference_mode():
            self._decoder = Decoder(config, tensors, options.max_length, self._device, dtype)
            self._kv = KvPool(config.num_hidden_layers, config.num_key_value_heads, config.head_dim,
                              options.positions, options.block, self._device, dtype)
            self._graphs = DecodeGraphs(self._decoder, self._kv, options.max_sessions, options.max_length) \
                if self._device.type == "cuda" else None

    # --- the contract ---

    @property
    def capacity(self) -> Capacity:
        """See ``Runner``."""
        return self._capacity

    def keepable(self, session: str, positions: int) -> int:
        """See ``Runner``."""
        return min(positions, self._kv.length(session))

    def submit(self, segment: Segment) -> None:
        """See ``Runner``. What the model cannot take fails the session, at once and alone."""
        session, keep = segment.session, segment.keep
        if session in self._live:
            raise ValueError(f"session {session} has a segment already")
        if not 0 <= keep <= self._kv.length(session):
            raise ValueError(f"session {session} cannot keep {keep} of {self._kv.length(session)} positions")
        detail = fault(segment, self._capacity.vocabulary, self._capacity.hidden_size, self._capacity.max_length)
        if detail is None and session not in self._kv.sessions \
                and len({*self._kv.sessions, *self._live}) >= self._capacity.max_sessions:
            detail = f"{self._capacity.max_sessions} sessions hold KV already"
        if detail is not None:
            self._kv.drop(session)
            self._told.append(Generated(session, finish=Finish.FAILED, detail=detail))
            return
        self._kv.truncate(session, keep)
        self._live[session] = Progress(segment)

    def interrupt(self, session: str) -> None:
        """See ``Runner``."""
        if self._live.pop(session, None) is not None:
            self._told.append(Generated(session, finish=Finish.INTERRUPTED, cached=self._kv.length(session)))

    def drop(self, session: str) -> None:
        """See ``Runner``."""
        self._live.pop(session, None)
        self._kv.drop(session)
        self._told = [told for told in self._told if told.session != session]

    @property
    def ready(self) -> bool:
        """See ``Runner``."""
        return bool(self._live or self._told)

    @property
    def wake_fd(self) -> None:
        """See ``Runner``; it works only in ``step``."""
        return

    def close(self) -> None:
        """See ``Runner``."""
        for session in {*self._live, *self._kv.sessions}:
            self.drop(session)
        self._told.clear()

    # --- the loop ---

    @torch.inference_mode()
    def step(self) -> Sequence[Generated]:
        """See ``Runner``."""
        works = self._schedule()
        if works:
            hidden = self._forward(Batch(works, self._kv, self._device))
            works = self._whole(works, hidden)
            tokens = self._choose([work for work in works if work.progress.may_choose], hidden)
            for work in works:
                self._tell(work, tokens.get(work.session), hidden)
        told, self._told = self._told, []
        return told

    def _schedule(self) -> list[Work]:
        """One position of every session that generates, and a bounded chunk of the others' prefills."""
        generating = [progress for progress in self._live.values() if progress.tokens]
        prefilling = [progress for progress in self._live.values() if not progress.tokens]
        parts = share([progress.waiting for progress in prefilling], self._prefill_chunk)
        works: list[Work] = []
        rows = 0
        for progress, count in [*((progress, 1) for progress in generating), *zip(prefilling, parts, strict=True)]:
            positions = self._kv.grow(progress.segment.session, count)
            if positions is None:
                self._fail(progress.segment.session, f"the KV has no room for {count} more positions")
                continue
            works.append(Work(progress, progress.take(count), positions, rows))
            rows += count
        return works

    def _forward(self, batch: Batch) -> torch.Tensor:
        """Compute hidden states (rows, hidden_size)."""
        if self._graphs is None:
            return self._decoder.forward(batch.inputs(self._decoder), batch.positions, batch.attention(pad=False))
        if batch.generates_only:
            return self._graphs.forward(batch)
        return self._decoder.forward(batch.inputs(self._decoder), batch.positions, batch.attention(pad=True))

    def _whole(self, works: Sequence[Work], hidden: torch.Tensor) -> list[Work]:
        """Fail the sessions whose numbers are not finite; give the others' works."""
        finite = hidden.isfinite().all(dim=-1).tolist()
        broken = [work for work in works if not all(finite[work.rows])]
        for work in broken:
            self._fail(work.session, "the model's numbers are not finite")
        return [work for work in works if work not in broken]

    def _choose(self, works: Sequence[Work], hidden: torch.Tensor) -> dict[str, int]:
        """Choose the next token of each session."""
        if not works:
            return {}
        logits = self._decoder.logits(hidden[[work.rows.stop - 1 for work in works]])
        samplings = [work.progress.sampling for work in works]
        said = [work.progress.tokens for work in works]
        return dict(zip((work.session for work in works), choose(logits, samplings, said), strict=True))

    def _tell(self, work: Work, token: int | None, hidden: torch.Tensor) -> None:
        """Note what came of a session's work, and say it."""
        progress, wanted = work.progress, work.progress.segment.hidden
        start = work.positions.start if wanted == "all" else max(work.positions.start, progress.prefill_end)
        rows: Rows | None = None
        if wanted != "none" and start < work.positions.stop:
            rows = hidden[work.rows][start - work.positions.start:].float().cpu().numpy().copy()
        finish = progress.chose(token) if token is not None else progress.prefilled()
        if finish is not None:
            del self._live[work.session]
        if token is not None or rows is not None or finish is not None:
            self._told.append(Generated(
                work.session, () if token is None else (token,), 0 if rows is None else start, rows, finish,
                self._kv.length(work.session) if finish is not None else 0))

    def _fail(self, session: str, detail: str) -> None:
        del self._live[session]
        self._kv.scrub(session)
        self._told.append(Generated(session, finish=Finish.FAILED, detail=detail))


def find_device(name: str) -> torch.device:
    """Give the device of that name; raises ``ConfigError`` when it is none, or absent."""
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"device is {name!r}, must be cpu, cuda or cuda:N") from None
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"device is {name!r}, must be cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"device is {name!r}, but {torch.cuda.device_count()} GPUs can be used here")
    return device
