"""What MiniCPM-o 4.5's codec costs: ``python -m benchmarks.token2wav [--size tiny|released] [--device cuda]``.

Chunks of 25 codes, a second of sound, for more and more streams at once, on random weights: they cost what trained
ones do. First how long hearing a voice takes, then flow and vocoder of a chunk, each by itself, once the streams keep
as much as they ever do; then what a stream keeps, and the most memory there was.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch

from benchmarks.report import Goal, Table
from duologue.engine.models.minicpmo import random
from duologue.engine.models.minicpmo.token2wav.flow import Flow, FlowState, Voice
from duologue.engine.models.minicpmo.token2wav.hift import Hift
from duologue.engine.models.minicpmo.token2wav.prompt import made
from duologue.engine.models.minicpmo.token2wav.vocoder import Vocoder, VocoderState

CHUNK = 25
_WARM_UP = 4
"""Chunks of a stream that are not counted: after them it keeps no more."""
_PERIOD_MS = 1000.0

_Done = TypeVar("_Done")


@dataclass
class Streams:
    """Streams that are equally far."""

    flow: list[FlowState]
    vocoder: list[VocoderState]


def chunk(flow: Flow, vocoder: Vocoder, voice: Voice, streams: Streams, vocabulary: int) -> tuple[float, float]:
    """Decode a chunk of each stream; how long flow and vocoder took, in ms."""
    count = len(streams.flow)
    codes = torch.randint(vocabulary, (count, CHUNK + flow.lookahead))
    (mel, streams.flow), flow_ms = timed(flow, lambda: flow.step(codes, streams.flow, [voice] * count, last=False))
    (_, streams.vocoder), vocoder_ms = timed(flow, lambda: vocoder.step(mel, streams.vocoder, last=False))
    return flow_ms, vocoder_ms


def timed(flow: Flow, work: Callable[[], _Done]) -> tuple[_Done, float]:
    """What ``work`` gives, and how long it took in ms, with all that it left to a GPU to do."""
    start = time.perf_counter()
    done = work()
    if flow.device.type == "cuda":
        torch.cuda.synchronize(flow.device)
    return done, (time.perf_counter() - start) * 1000


def main() -> None:
    """Measure as the command line says, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.token2wav")
    parser.add_argument("--size", choices=("tiny", "released"), default="tiny")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), default="float32", help="of the flow")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--most", type=int, default=8, help="streams at once")
    parser.add_argument("--chunks", type=int, default=10)
    given = parser.parse_args()
    torch.set_num_threads(1)
    config = random.shape(given.size).token2wav
    weights: dict[str, dict[str, torch.Tensor]] = {"flow": {}, "hift": {}}
    for name, tensor in random.token2wav_tensors(random.shape(given.size), 0, torch.device(given.device)):
        file, _, rest = name.partition(".")
        weights[file][rest] = tensor.to(getattr(torch, given.dtype)) if file == "flow" else tensor
    flow = Flow(config.flow, weights["flow"], given.steps)
    vocoder = Vocoder(Hift(config.hift, weights["hift"]))
    prompt = made(config, 0)
    table = Table(f"token2wav, {given.size}, {given.steps} steps, flow in {given.dtype} on {given.device}")
    heard = [timed(flow, lambda: flow.voice(prompt.codes, prompt.mel, prompt.speaker)) for _ in range(3)]
    table.add(f"a voice of {len(prompt.codes) / CHUNK:g} s heard", [took for _, took in heard])
    voice = heard[0][0]
    count = 1
    while count <= given.most:
        streams = Streams([voice.state] * count, [vocoder.begin(voice.speaker)] * count)
        taken = [chunk(flow, vocoder, voice, streams, config.flow.vocab_size)
                 for _ in range(_WARM_UP + given.chunks)][_WARM_UP:]
        table.add(f"{count} streams, flow", [each[0] for each in taken])
        table.add(f"{count} streams, vocoder", [each[1] for each in taken])
        table.add(f"{count} streams, a second of sound each", [sum(each) for each in taken], Goal("p99", _PERIOD_MS))
        kept = sum(tensor.nbytes for tensor in (*streams.flow[0].frames, *streams.flow[0].encoder))
        count *= 2
    table.print()
    most = (torch.cuda.max_memory_allocated(flow.device) if flow.device.type == "cuda"
            else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    print(f"A stream keeps {kept / 1e6:.1f} MB; the most memory in use was {most / 1e6:.0f} MB.")


if __name__ == "__main__":
    main()
