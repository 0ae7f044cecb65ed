"""What each stage of MiniCPM-o 4.5 costs: ``python -m benchmarks.minicpmo_stages [--size tiny|released]``.

Each stage runs in a process of its own, on random weights, which cost what trained ones do. The thinker is given units
of noise, the talker a unit's text with its states, the codec a unit's codes. A row is the time from what is given to
all that comes of it, for a second of sound of every session; below it the most memory its process had.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from benchmarks.report import Goal, Table
from duologue.config import load
from duologue.engine.config import PipelineConfig
from duologue.engine.messages import (
    AppendUnit,
    CodecFrames,
    Conditioning,
    Fence,
    Open,
    ReplyText,
    SessionFailed,
    StageInput,
    Unit,
)
from duologue.engine.models.minicpmo import random
from duologue.engine.pipeline import load_stage
from duologue.engine.stage import Stage

CONFIG = "stage_configs/minicpmo-random.yaml"
UNIT_SAMPLES = 16_000
UNIT_CODES = 25
UNIT_TOKENS = 8
"""Text tokens of a spoken unit."""
_WARM_UP = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to measure."""

    size: random.Size
    device: str
    dtype: str
    sessions: int
    units: int


def _unit(wanted: Wanted, session: str, number: int) -> StageInput:
    pcm = np.random.default_rng(number).normal(0, 3000, UNIT_SAMPLES).astype(np.int16)
    return AppendUnit(session, 0, Unit(number, pcm, 1.0))


def _text(wanted: Wanted, session: str, number: int) -> StageInput:
    chosen = np.random.default_rng(number)
    hidden = random.shape(wanted.size).config.llm.hidden_size
    text = "a" * UNIT_TOKENS
    start = number * UNIT_TOKENS
    # Plain bytes: the first ids of the made-up tokenizer.
    tokens = chosen.integers(0, 200, UNIT_TOKENS).astype(np.int32)
    states = chosen.normal(0, 1, (UNIT_TOKENS, hidden)).astype(np.float32)
    ends = np.arange(start + 1, start + UNIT_TOKENS + 1, dtype=np.int32)
    return ReplyText(Fence(session, 0, 0, number), start, text, conditioning=Conditioning(tokens, states, ends))


def _codes(wanted: Wanted, session: str, number: int) -> StageInput:
    codes = np.random.default_rng(number).integers(0, random.shape(wanted.size).config.tts.eos, (UNIT_CODES, 1))
    return CodecFrames(Fence(session, 0, 0, number), codes.astype(np.int32))


_GIVEN: Mapping[str, Callable[[Wanted, str, int], StageInput]] = {"thinker": _unit, "talker": _text, "codec": _codes}


def _options(wanted: Wanted, role: str) -> dict[str, Any]:
    options: dict[str, Any] = {"load_format": "random", "size": wanted.size}
    place = {"device": wanted.device, "dtype": wanted.dtype}
    if role == "codec":
        return options | place | {"max_batch": wanted.sessions}
    options["torch"] = place | {"max_sessions": wanted.sessions, "positions": 4096 * wanted.sessions,
                                "max_length": 2048}
    return options | ({"ear": place, "sampling": {"force_listen_count": 0}} if role == "thinker" else {})


def _settle(stage: Stage) -> None:
    while stage.ready:
        for output in stage.step():
            if isinstance(output, SessionFailed):
                raise RuntimeError(output.detail)


def _taken(stage: Stage, wanted: Wanted, role: str) -> Iterator[float]:
    """Milliseconds of each unit, for all sessions together."""
    names = [f"s{i}" for i in range(wanted.sessions)]
    for name in names:
        stage.receive(Open(name, 0, 0, 0))
    for number in range(_WARM_UP + wanted.units):
        messages = [_GIVEN[role](wanted, name, number) for name in names]
        start = time.perf_counter()
        for message in messages:
            stage.receive(message)
        _settle(stage)
        if wanted.device.startswith("cuda"):
            torch.cuda.synchronize(wanted.device)
        if number >= _WARM_UP:
            yield (time.perf_counter() - start) * 1000


def measure(wanted: Wanted, role: str) -> tuple[float, list[float], float]:
    """Seconds to load the stage, milliseconds of each unit, and the most memory there was, in MB."""
    torch.set_num_threads(1)
    config: PipelineConfig = load(CONFIG).pipeline
    chunking = config.chunking.model_copy(update={"initial_codec_chunk_frames": UNIT_CODES})
    config = config.model_copy(update={"chunking": chunking})
    stage_config = next(stage for stage in config.stages if stage.role == role)
    began = time.perf_counter()
    stage = load_stage(stage_config.model_copy(update={"options": _options(wanted, role)}), config)
    loaded = time.perf_counter() - began
    taken = list(_taken(stage, wanted, role))
    most = (torch.cuda.max_memory_allocated(wanted.device) if wanted.device.startswith("cuda")
            else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    return loaded, taken, most / 1e6


def main() -> None:
    """Measure as the command line says, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.minicpmo_stages")
    parser.add_argument("--size", choices=("tiny", "released"), default="tiny")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), default="float32")
    parser.add_argument("--stages", nargs="+", choices=tuple(_GIVEN), default=list(_GIVEN))
    parser.add_argument("--sessions", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--units", type=int, default=20)
    given = parser.parse_args()
    table = Table(f"MiniCPM-o 4.5, {given.size} size, random weights, {given.dtype} on {given.device}; ms for a second "
                  "of sound of every session")
    notes = list[str]()
    for role in given.stages:
        for sessions in given.sessions:
            wanted = Wanted(given.size, given.device, given.dtype, sessions, given.units)
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                loaded, taken, most = pool.apply(measure, (wanted, role))
            table.add(f"{role}, {sessions} sessions", taken, Goal("p99", 1000.0))
            notes.append(f"{role}, {sessions} sessions: RTF {np.median(taken) / 1000 / sessions:.3f} a session, loaded "
                         f"in {loaded:.0f} s, {most:.0f} MB at most")
    table.print()
    print("\n".join(notes))


if __name__ == "__main__":
    main()
