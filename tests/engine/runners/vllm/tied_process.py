"""A process that starts another one, tied to it, without vLLM: ``python -m ...tied_process FILE``.

The other one ties itself once ``FILE`` is there.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from duologue.engine.runners.vllm.tie import Tie


@dataclass(frozen=True)
class Wait:
    """Holds up whoever unpickles it, as imports do."""

    file: Path

    def __reduce__(self) -> tuple[Callable[[Path], Wait], tuple[Path]]:
        return waited, (self.file,)


def waited(file: Path) -> Wait:
    while not file.exists():
        time.sleep(0.02)
    return Wait(file)


def sleep(_wait: Wait, _tie: Tie) -> None:
    print("tied", flush=True)
    time.sleep(600)


def main() -> None:
    process = multiprocessing.get_context("spawn").Process(
        target=sleep, args=(Wait(Path(sys.argv[1])), Tie(os.getpid())))
    process.start()
    print(process.pid, flush=True)
    process.join()


if __name__ == "__main__":
    main()
