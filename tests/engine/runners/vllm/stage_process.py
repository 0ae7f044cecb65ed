"""A process with a vLLM runner in it, for tests that end it or its engine.

``python -m tests.engine.runners.vllm.stage_process``; says ``ready`` when a session is answering.
"""

from __future__ import annotations

from duologue.engine.runners.base import Sampling, Segment, Tokens
from duologue.engine.runners.vllm.options import VllmOptions
from duologue.engine.runners.vllm.runner import VllmRunner
from tests.engine.runners.torch_reference import tiny, tiny_weights
from tests.engine.runners.vllm.waiting import wait


def main() -> None:
    runner = VllmRunner(tiny()[0], tiny_weights, VllmOptions(
        max_model_len=4096, block_size=32, kv_positions=4096, max_num_batched_tokens=64, max_num_seqs=2,
        enforce_eager=True))
    said = False
    while True:
        runner.submit(Segment("a", 0, (Tokens((1, 2, 3)),), Sampling(4000)))
        finished = None
        while finished is None:
            wait(runner)
            for output in runner.step():
                finished = output.finish
                if output.tokens and not said:
                    said = True
                    print("ready", flush=True)


if __name__ == "__main__":
    main()
