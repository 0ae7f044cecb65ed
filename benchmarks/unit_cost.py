"""What a unit costs, on our own runner and on vLLM: ``python -m benchmarks.unit_cost [--runner torch|vllm|both]``.

A unit is what the duplex format makes of a second of speech while the model talks: the last token of the unit before,
``</unit><unit>``, ten rows of audio, then an answer of eight tokens drawn by MiniCPM-o 4.5's rules, with their hidden
states out for the talker. Weights are random: they cost what trained ones do.

First one session that grows to the end of its window, unit after unit, beside the same units without any KV kept, as
after a slide of the window. Then more and more sessions with a unit each a second, evenly spread, until it no longer
keeps up; a unit's time counts from when it was due.
"""

from __future__ import annotations

import argparse
import select
import time
from collections import deque
from collections.abc import Callable
from typing import Literal

import numpy as np
import torch

from benchmarks.report import Goal, Table
from duologue.engine.config import AdmissionConfig
from duologue.engine.headroom import Headroom
from duologue.engine.models.duplex import random
from duologue.engine.models.duplex.checkpoint import load
from duologue.engine.models.duplex.config import DecoderConfig, DuplexConfig
from duologue.engine.models.duplex.runner_options import RunnerOptions, open_runner
from duologue.engine.runners.base import Embeddings, Finish, Generated, Piece, Runner, Sampling, Segment, Tokens

Name = Literal["torch", "vllm"]

ANSWER = 8
"""Tokens of a unit's answer."""

_ADMISSION = AdmissionConfig()
_PREFIX = 400
"""Positions each of many sessions begins with."""
_STEP = 500
"""Positions of session length that share a row."""
_WARM_UP = 2
"""Units of a session that are not counted."""


class Caller:
    """One session that is given a unit at a time."""

    def __init__(self, name: str, config: DuplexConfig, hidden_size: int) -> None:
        self.name = name
        self.cached = 0
        self.history: list[Piece] = []
        self.due: deque[float] = deque()
        """When the units that wait or run were due."""
        self._tokens = config.tokens
        self._rows = config.unit_ms // config.row_ms
        self._hidden_size = hidden_size
        self._numbers = np.random.default_rng(int.from_bytes(name.encode()) % 2**32)
        self._said: list[int] = []

    def prefix(self, length: int) -> Segment:
        """``length`` positions of text, and no answer."""
        self.history = [Tokens(tuple(self._numbers.integers(200, size=length).tolist()))]
        return Segment(self.name, 0, tuple(self.history), None)

    def unit(self) -> Segment:
        """Take the next unit, behind what the KV holds."""
        tokens = self._tokens
        rows = self._numbers.standard_normal((self._rows, self._hidden_size)).astype(np.float32)
        # What goes on from the answer before: all of it is in the KV but the last token.
        pieces: list[Piece] = [Tokens((*self._said[-1:], tokens.unit_end, tokens.unit)),
                               Embeddings(rows, rows.tobytes()[:32])]
        self.history += pieces
        self._said = []
        return Segment(self.name, self.cached, tuple(pieces), self._sampling(), "generated")

    def replay(self) -> Segment:
        """Answer the last unit again, with nothing kept."""
        return Segment(f"{self.name} again", 0, tuple(self.history), self._sampling(), "generated")

    def hear(self, told: Generated) -> bool:
        """File what was said; whether the unit is over."""
        if told.finish is Finish.FAILED:
            raise SystemExit(f"session {self.name} failed: {told.detail}")
        self._said += told.tokens
        if told.finish is None:
            return False
        self.cached = told.cached
        return True

    def settle(self) -> None:
        """Put the answer's fed tokens behind the history."""
        self.history.append(Tokens(tuple(self._said[:-1])))

    def _sampling(self) -> Sampling:
        tokens = self._tokens
        return Sampling(max_tokens=ANSWER, temperature=0.7, top_k=20, top_p=0.8, repetition_penalty=1.05,
                        forbidden=tuple(id for _, id in tokens if id != tokens.speak), first=(tokens.speak,),
                        at_budget=tokens.chunk_eos, seed=len(self.history))


def wait(runner: Runner, until: float) -> None:
    """Sleep until the runner has something to do, or until that time."""
    left = max(0.0, until - time.perf_counter())
    if runner.wake_fd is None:
        time.sleep(left)
    else:
        select.select([runner.wake_fd], [], [], left)


def finish(runner: Runner, segment: Segment, hear: Callable[[Generated], bool]) -> float:
    """Run one segment alone; its time in ms."""
    start = time.perf_counter()
    runner.submit(segment)
    while True:
        if not runner.ready:
            wait(runner, start + 600)
        for told in runner.step():
            if hear(told):
                return (time.perf_counter() - start) * 1000


def over(told: Generated) -> bool:
    """Whether a segment nobody listens to is over."""
    if told.finish is Finish.FAILED:
        raise SystemExit(f"session {told.session} failed: {told.detail}")
    return told.finish is not None


def one_session(name: Name, runner: Runner, config: DuplexConfig, length: int, table: Table) -> None:
    """Grow a session to ``length`` and add a row for every stretch of it."""
    caller = Caller("grows", config, runner.capacity.hidden_size)
    kept: dict[int, list[float]] = {}
    anew: dict[int, list[float]] = {}
    for number in range(10**6):
        stretch = caller.cached // _STEP * _STEP
        if caller.cached + 2 * (ANSWER + 16) > length:
            break
        took = finish(runner, caller.unit(), caller.hear)
        if number >= _WARM_UP:
            kept.setdefault(stretch, []).append(took)
        if number >= _WARM_UP and number % 8 == 0:
            anew.setdefault(stretch, []).append(finish(runner, caller.replay(), over))
            runner.drop("grows again")
        caller.settle()
    runner.drop("grows")
    for title, figures in (("KV kept", kept), ("nothing kept", anew)):
        for stretch, samples in figures.items():
            table.add(f"{name}, {title}, {stretch} to {stretch + _STEP} positions", samples)


def many_sessions(runner: Runner, config: DuplexConfig, count: int, units: int) -> list[float]:
    """Serve ``count`` sessions in real time; how long after it was due each unit was answered, in ms."""
    callers = {f"s{i}": Caller(f"s{i}", config, runner.capacity.hidden_size) for i in range(count)}
    for caller in callers.values():
        finish(runner, caller.prefix(_PREFIX), caller.hear)
    start, period = time.perf_counter(), config.unit_ms / 1000
    arrivals = deque((start + (unit + i / count) * period, caller)
                     for unit in range(_WARM_UP + units) for i, caller in enumerate(callers.values()))
    samples: list[tuple[float, float]] = []
    while len(samples) < len(callers) * (_WARM_UP + units):
        while arrivals and arrivals[0][0] <= time.perf_counter():
            due, caller = arrivals.popleft()
            caller.due.append(due)
            if len(caller.due) == 1:
                runner.submit(caller.unit())
        if not runner.ready:
            wait(runner, arrivals[0][0] if arrivals else start + 600)
        for told in runner.step():
            caller = callers[told.session]
            if caller.hear(told):
                due = caller.due.popleft()
                samples.append((due, (time.perf_counter() - due) * 1000))
                if caller.due:
                    runner.submit(caller.unit())
    for session in callers:
        runner.drop(session)
    return [took for due, took in samples if due >= start + _WARM_UP * period]


def until_it_no_longer_keeps_up(name: Name, runner: Runner, config: DuplexConfig, given: argparse.Namespace,
                                table: Table) -> str:
    """Double the sessions until a unit takes as long as it lasts; says where admission draws the line."""
    period_ms, count, admitted = config.unit_ms, 1, 0
    while count <= given.most:
        samples = many_sessions(runner, config, count, given.units)
        more = admits(samples, count, period_ms / 1000)
        table.add(f"{name}, {count} sessions, one more is {'admitted' if more else 'refused'}", samples,
                  Goal("p99", _ADMISSION.target_load * period_ms))
        if more:
            admitted = count
        if np.percentile(samples, 99) > period_ms:
            break
        count *= 2
    return f"admission lets more in beside {admitted} sessions, the most it does of the counts tried"


def admits(samples: list[float], count: int, period_s: float) -> bool:
    """Whether the server would take one more beside ``count`` sessions whose units took so long."""
    headroom = Headroom(_ADMISSION, period_s)
    headroom.sessions = count
    for took in samples:
        headroom.observe(took / 1000)
    return headroom.fits


def main() -> None:
    parser = argparse.ArgumentParser(description="What a unit costs, by session length and by number of sessions.")
    parser.add_argument("--runner", choices=["torch", "vllm", "both"], default="both")
    parser.add_argument("--size", choices=["tiny", "minicpmo45"], default="tiny")
    parser.add_argument("--device", default="cpu", help="our runner's: cpu or cuda; vLLM's is what it is built for")
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32")
    parser.add_argument("--length", type=int, default=4000, help="positions the one session grows to")
    parser.add_argument("--most", type=int, default=256, help="sessions at most")
    parser.add_argument("--units", type=int, default=6, help="units measured of each of many sessions")
    given = parser.parse_args()
    torch.set_num_threads(1)
    made = random.shape(given.size)
    period_ms = made.config.unit_ms
    names: list[Name] = ["torch", "vllm"] if given.runner == "both" else [given.runner]
    sizes = f"{described(made.thinker)}, {given.dtype}, random weights"
    by_length = Table(f"One unit against the session's length ({sizes})")
    by_count = Table(f"One unit against the number of sessions, a unit of {period_ms} ms each ({sizes})")
    limits: list[str] = []
    for name in names:
        runner = build(name, given)
        try:
            one_session(name, runner, made.config, given.length, by_length)
            limits.append(f"{name}: {until_it_no_longer_keeps_up(name, runner, made.config, given, by_count)}")
        finally:
            runner.close()
    by_length.print()
    by_count.print()
    print("\n".join(limits))


def build(name: Name, given: argparse.Namespace) -> Runner:
    """Open a runner with room for the longest session and for the most."""
    positions = max(2 * given.length, given.most * (_PREFIX + (_WARM_UP + given.units + 2) * (ANSWER + 16)))
    max_length = given.length + 64
    if name == "torch":
        room = {"torch": {"device": given.device, "dtype": given.dtype, "positions": positions,
                          "max_length": max_length, "max_sessions": given.most + 1}}
    else:
        room = {"vllm": {"dtype": given.dtype, "max_model_len": max_length, "max_num_seqs": given.most + 1,
                         "kv_positions": positions}}
    options = RunnerOptions.model_validate({"load_format": "random", "size": given.size, "runner": name, **room})
    return open_runner("thinker", load(options), options)


def described(decoder: DecoderConfig) -> str:
    """Sizes in words."""
    return (f"{decoder.num_hidden_layers} layers x {decoder.hidden_size}, {decoder.num_attention_heads}/"
            f"{decoder.num_key_value_heads} heads x {decoder.head_dim}, ffn {decoder.intermediate_size}, "
            f"vocabulary {decoder.vocab_size}")


if __name__ == "__main__":
    main()
