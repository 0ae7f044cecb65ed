"""The synchronous runner over vLLM's engine: what each session holds, and what must not reach vLLM.

vLLM has failure modes that end or stall everybody for one session's sake. A request that outgrows
``max_model_len`` kills the engine; parked requests that fill the KV, or the request slots, wait for ever for each
other. So each segment is counted here before it goes in, at the most it can come to, and refused if that does not fit.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from duologue.engine.config import ConfigError
from duologue.engine.models.duplex.config import DecoderConfig
from duologue.engine.runners.base import Capacity, Finish, Generated, Rows, Segment
from duologue.engine.runners.fault import fault
from duologue.engine.runners.vllm.engine import DiedEvent, Engine, Input, RefusedEvent, TokensEvent
from duologue.engine.runners.vllm.hidden import RowsFrame
from duologue.engine.runners.vllm.inputs import engine_input, sampling_params
from duologue.engine.runners.vllm.options import VllmOptions
from duologue.engine.runners.weights import Weights

FINISH = {"stop": Finish.STOP, "length": Finish.LENGTH}


class EngineDied(SystemExit):
    """vLLM's engine process is gone. The process that holds the runner has nothing left to do but to end.

    It is no ``Exception`` on purpose: whoever takes a failed step for one session's mishap must not go on. The
    supervisor starts a stage process again and rebuilds its sessions.
    """


@dataclass(slots=True)
class Running:
    """A session's open segment."""

    segment: Segment
    number: int
    start: int
    """Position of the first token that is generated."""
    tokens: int = 0
    finish: Finish | None = None
    next_row: int = 0
    """Position of the next hidden state that is handed on."""
    rows: list[Rows] = field(default_factory=list)
    """Hidden states from ``next_row`` on that have come and were not handed on."""

    @property
    def fed(self) -> int:
        """Positions of the session that are known to be in the KV: a token was fed when the next one came."""
        return self.start + max(0, self.tokens - 1)


@dataclass(slots=True)
class Held:
    """What vLLM holds of a session."""

    request: int
    blocks: int
    """KV blocks it has or may come to have in its segment."""
    cached: int = 0
    running: Running | None = None


class VllmRunner:
    """A :class:`~duologue.engine.runners.base.Runner` on stock vLLM.

    Only a session's whole KV can be kept: a cut is a new request with all of what is left, which finds what it can
    in vLLM's prefix cache, in whole blocks. An interruption ends the request too.
    """

    def __init__(self, decoder: DecoderConfig, weights: Weights, options: VllmOptions) -> None:
        """Start vLLM; raises ``ConfigError`` when it cannot."""
        if options.max_model_len > decoder.max_position_embeddings:
            raise ConfigError(f"max_model_len is {options.max_model_len}, but the model goes up to "
                              f"{decoder.max_position_embeddings}")
        try:
            self._engine = Engine(decoder, weights, options)
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(f"vLLM did not start; its own messages above say why: {error}") from error
        config = self._engine.config
        cache = config.cache_config
        self._capacity = Capacity(
            # One block is vLLM's own.
            positions=(cache.num_gpu_blocks - 1) * cache.block_size, block=cache.block_size,
            # A request also has its last token, which is not fed.
            max_length=config.model_config.max_model_len - 1, max_sessions=config.scheduler_config.max_num_seqs,
            hidden_size=config.model_config.get_hidden_size(), vocabulary=config.model_config.get_vocab_size())
        self._held: dict[str, Held] = {}
        self._sessions: dict[int, str] = {}
        """Session of each open segment, by its number."""
        self._numbers = itertools.count(1)
        self._outputs: list[Generated] = []

    @property
    def capacity(self) -> Capacity:
        """What vLLM came up with."""
        return self._capacity

    @property
    def sessions(self) -> frozenset[str]:
        """Sessions that hold KV."""
        return frozenset(self._held)

    def keepable(self, session: str, positions: int) -> int:
        """All that is cached, or nothing."""
        held = self._held.get(session)
        return held.cached if held is not None and held.cached <= positions else 0

    def submit(self, segment: Segment) -> None:
        """Take a segment; one that vLLM cannot take finishes as ``FAILED``, and its session holds nothing."""
        held = self._held.get(segment.session)
        if held is not None and held.running is not None:
            raise ValueError(f"session {segment.session!r} has an open segment")
        if segment.keep != 0 and (held is None or segment.keep != held.cached):
            raise ValueError(f"{segment.keep} positions of session {segment.session!r} cannot be kept")
        refusal = self._refusal(segment)
        if refusal is not None:
            self._release(segment.session)
            self._outputs.append(Generated(segment.session, finish=Finish.FAILED, detail=refusal))
            return
        number = next(self._numbers)
        start = segment.keep + sum(map(len, segment.pieces))
        item = Input(number, engine_input(segment.pieces), sampling_params(segment, number, start))
        blocks = self._blocks(segment)
        if held is not None and segment.keep:
            held.blocks = blocks
            self._engine.append(held.request, item)
        else:
            self._release(segment.session)
            held = self._held[segment.session] = Held(number, blocks)
            self._engine.open(number, item)
        held.running = Running(segment, number, start, next_row=segment.keep if segment.hidden == "all" else start)
        self._sessions[number] = segment.session

    def interrupt(self, session: str) -> None:
        """End the session's segment with what has come of it; nothing stays cached but vLLM's prefix cache."""
        held = self._held.get(session)
        if held is None or held.running is None:
            return
        self._drain()
        if held.running is not None:
            self._hand_on(session, held.running)
            self._release(session)
            self._outputs.append(Generated(session, finish=Finish.INTERRUPTED))

    def drop(self, session: str) -> None:
        """Give back all the session holds."""
        self._release(session)
        self._outputs = [output for output in self._outputs if output.session != session]

    def step(self) -> Sequence[Generated]:
        """What has come since the last call; raises :class:`EngineDied`."""
        self._drain()
        outputs, self._outputs = self._outputs, []
        return outputs

    @property
    def ready(self) -> bool:
        """Whether something has come."""
        return bool(self._outputs) or bool(self._engine.events)

    @property
    def wake_fd(self) -> int | None:
        """Readable when something has come."""
        return self._engine.events.fd

    def close(self) -> None:
        """End vLLM's engine process."""
        self._engine.close()

    # --- what goes in ---------------------------------------------------------------------------------------

    def _positions(self, segment: Segment) -> int:
        """Positions of the session that are in the KV at the end of ``segment``, at most."""
        generated = segment.sampling.max_tokens - 1 if segment.sampling is not None else 0
        return segment.keep + sum(map(len, segment.pieces)) + generated

    def _blocks(self, segment: Segment) -> int:
        return -(-self._positions(segment) // self._capacity.block)

    def _refusal(self, segment: Segment) -> str | None:
        """Why ``segment`` must not reach vLLM; None when it may."""
        capacity = self._capacity
        detail = fault(segment, capacity.vocabulary, capacity.hidden_size, capacity.max_length)
        if detail is not None:
            return detail
        others = [held for session, held in self._held.items() if session != segment.session]
        if len(others) >= capacity.max_sessions:
            return (f"{len(others)} other sessions hold all of vLLM's request slots: admit fewer, "
                    f"or raise max_num_seqs")
        free = capacity.positions // capacity.block - sum(held.blocks for held in others)
        if self._blocks(segment) > free:
            return (f"the session would come to {self._blocks(segment)} KV blocks of {capacity.block} positions, "
                    f"and {free} are free: admit fewer sessions, or raise kv_positions")
        return None

    def _release(self, session: str) -> None:
        held = self._held.pop(session, None)
        if held is not None:
            self._engine.abort(held.request)
            if held.running is not None:
                del self._sessions[held.running.number]

    # --- what comes out -------------------------------------------------------------------------------------

    def _drain(self) -> None:
        for event in self._engine.events.take():
            if isinstance(event, DiedEvent):
                raise EngineDied(f"vLLM is gone, and the KV of {len(self._held)} sessions with it: {event.detail}")
            session = self._sessions.get(event.segment)
            if session is None:
                continue
            held = self._held[session]
            assert held.running is not None
            match event:
                case TokensEvent():
                    self._take_tokens(session, held, held.running, event)
                case RowsFrame():
                    held.running.rows.append(event.rows)
                    self._hand_on(session, held.running)
                case RefusedEvent():
                    self._release(session)
                    self._outputs.append(Generated(session, finish=Finish.FAILED, detail=event.detail))
                    continue
            self._settle(session, held, held.running)

    def _take_tokens(self, session: str, held: Held, running: Running, event: TokensEvent) -> None:
        tokens = event.ids
        running.tokens += len(tokens)
        if running.segment.sampling is None:
            tokens = ()
        self._hand_on(session, running, tokens)
        if event.finish is not None:
            running.finish = Finish.STOP if running.segment.sampling is None else FINISH[event.finish]

    def _hand_on(self, session: str, running: Running, tokens: tuple[int, ...] = ()) -> None:
        """Output ``tokens`` and the hidden states of positions that are known to have been fed."""
        first = running.next_row
        rows: Rows | None = None
        if running.rows:
            have = np.concatenate(running.rows)
            count = min(len(have), max(0, running.fed - first))
            if count:
                rows = have[:count]
                running.rows = [have[count:]] if count < len(have) else []
                running.next_row = first + count
        if tokens or rows is not None:
            self._outputs.append(Generated(session, tokens, first if rows is not None else 0, rows))

    def _settle(self, session: str, held: Held, running: Running) -> None:
        """Finish the segment once its last token and its last hidden state are there."""
        if running.finish is None or (running.segment.hidden != "none" and running.next_row < running.fed):
            return
        held.cached = running.fed
        held.blocks = -(-held.cached // self._capacity.block)
        held.running = None
        del self._sessions[running.number]
        self._outputs.append(Generated(session, finish=running.finish, cached=held.cached))
