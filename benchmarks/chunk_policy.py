"""First audio and silences in a reply against chunk policy: ``python -m benchmarks.chunk_policy``.

A producer makes codec frames at a given real-time factor, evenly (with a fifth of jitter) or a unit's frames at a time
as a talker does whose text comes unit by unit. The latter leaves no lead from one unit to the next, so the player
begins 200 ms late, as MiniCPM-o's does. The duplex codec with random weights decodes them, on the real clock;
production and playback run on a virtual one. All policies get the same replies. With the real sizes on a GPU:
``--size minicpmo45 --device cuda --dtype float32``.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from statistics import mean

import numpy as np
import torch

from benchmarks.report import Goal, Table
from duologue.engine.chunking import ChunkPlanner, Window
from duologue.engine.config import ChunkingConfig
from duologue.engine.models.codec_stage import Chunk
from duologue.engine.models.duplex import codec_layout
from duologue.engine.models.duplex.checkpoint import CheckpointOptions, load
from duologue.engine.models.duplex.codec import BatchDecoder, CausalDecoder
from duologue.engine.models.duplex.random import Size
from tests.engine.playback import Played, play

POLICIES = ((8, 50, False), (8, 50, True), (2, 25, False), (2, 25, True), (2, 10, False), (2, 10, True),
            (1, 1, False), (25, 25, False))
"""Frames of 40 ms: first chunk, chunk, ramp. 8 and 50 are the 320 ms and 2 s that Qwen3-Omni is served with."""
NO_STALL = Goal("max", 0)
UNIT_FRAMES = 25
JITTER = 0.2


def steady(rtf: float, frame_s: float, frames: int, dice: random.Random) -> list[float]:
    """When frames come that are made one after the other."""
    return list(accumulate(frame_s * rtf * (1 + JITTER * (2 * dice.random() - 1)) for _ in range(frames)))


def by_units(rtf: float, frame_s: float, frames: int, dice: random.Random) -> list[float]:
    """When frames come of which each unit's are made as its text is there, a unit's length after the last one's."""
    made = steady(rtf, frame_s, frames, dice)
    return [unit * UNIT_FRAMES * frame_s + made[i] - (made[unit * UNIT_FRAMES - 1] if unit else 0)
            for i in range(frames) for unit in (i // UNIT_FRAMES,)]


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How frames come, and how long after the first chunk the player begins."""

    name: str
    arrivals: Callable[[float, float, int, random.Random], list[float]]
    delay_s: float


RHYTHMS = (Rhythm("steadily", steady, 0.0), Rhythm("a unit of 1 s at a time", by_units, 0.2))


class Codec:
    """The real decoder; what it costs is measured."""

    def __init__(self, size: Size, device: str, dtype: str) -> None:
        checkpoint = load(CheckpointOptions(load_format="random", size=size))
        config = checkpoint.config.codec
        self.context = codec_layout.left_context(config)
        self.frame_s = codec_layout.frame_samples(config) / config.sample_rate
        tensors = {name: tensor.to(getattr(torch, dtype)) for name, tensor in checkpoint.tensors("codec", device)}
        self._decoder = BatchDecoder(config, CausalDecoder(config, tensors), 1)
        self._codes = np.random.default_rng(0).integers(0, config.codebook_size, (4096, 1), dtype=np.int32)
        self.spent_s = 0.0
        for frames in (1, 10, 25, 50):
            self.cost_s(Window(self.context, self.context + frames, self.context))

    def cost_s(self, window: Window) -> float:
        """Decode the window; returns how long it took."""
        begun = time.perf_counter()
        self._decoder.decode([Chunk(self._codes[window.start - window.left_context:window.end],
                                    window.left_context, None)])
        cost = time.perf_counter() - begun
        self.spent_s += cost
        return cost


def measure(codec: Codec, policy: tuple[int, int, bool], rhythm: Rhythm, rtf: float,
            replies: int) -> tuple[list[Played], float]:
    """Replies of 4 to 12 s, and the milliseconds of decoding that a second of sound cost."""
    dice = random.Random(7)
    initial, chunk, ramp = policy
    config = ChunkingConfig(initial_codec_chunk_frames=initial, codec_chunk_frames=chunk, codec_chunk_ramp=ramp,
                            codec_left_context_frames=codec.context)
    codec.spent_s, sound_s = 0.0, 0.0
    played = []
    for _ in range(replies):
        frames = dice.randrange(round(4 / codec.frame_s), round(12 / codec.frame_s))
        arrivals = rhythm.arrivals(rtf, codec.frame_s, frames, dice)
        played.append(play(ChunkPlanner(config, codec.frame_s), arrivals, codec.frame_s, codec.cost_s,
                           rhythm.delay_s))
        sound_s += frames * codec.frame_s
    return played, 1000 * codec.spent_s / sound_s


def run(codec: Codec, rtfs: list[float], replies: int) -> None:
    """A table for each rhythm and real-time factor."""
    for rhythm in RHYTHMS:
        for rtf in rtfs:
            first = Table(f"First audio; frames made {rhythm.name}, RTF {rtf:g}")
            stalls = Table(f"Longest silence in a reply; frames made {rhythm.name}, RTF {rtf:g}")
            costs = []
            for policy in POLICIES:
                played, cost = measure(codec, policy, rhythm, rtf, replies)
                initial, chunk, ramp = policy
                row = f"{initial} then {chunk}" + (", ramp" if ramp else "")
                first.add(row, [1000 * reply.first_audio_s for reply in played])
                stalls.add(row, [1000 * max(reply.stalls, default=0.0) for reply in played],
                           NO_STALL if ramp else None)
                windows = mean(len(reply.windows) for reply in played)
                costs.append(f"{row}: {cost:.1f} ms in {windows:.0f} chunks a reply")
            first.print()
            stalls.print()
            print("Decoding a second of sound: " + "; ".join(costs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replies", type=int, default=20)
    parser.add_argument("--rtf", type=float, nargs="+", default=[0.3, 0.6, 0.85])
    parser.add_argument("--size", choices=("tiny", "minicpmo45"), default="tiny")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    run(Codec(arguments.size, arguments.device, arguments.dtype), arguments.rtf, arguments.replies)


if __name__ == "__main__":
    main()
