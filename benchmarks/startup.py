"""Start of the process to the first healthy answer, and what the base install weighs.

``python -m benchmarks.startup [--starts N] [--no-install]``: the install is made from requirements/base.txt in
a new virtual environment with uv.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.report import Goal, Table
from tests.harness.server import running_server

READY = Goal("max", 5)
SIZE_MB = Goal("max", 400)
HEAVY = ("torch", "nvidia", "triton", "vllm", "transformers", "tensorflow", "jax")
"""Folders in site-packages that a base install must not have, by how their names begin."""
ROOT = Path(__file__).parents[1]


async def starts(count: int) -> list[float]:
    """Seconds to ready of so many starts, one after another."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(count):
            async with running_server(Path(folder)) as server:
                seconds.append(server.ready_s)
    return seconds


def install() -> tuple[float, list[str]]:
    """MB (10^6 bytes) of a base install's site-packages, and what it has that it should not."""
    uv = shutil.which("uv") or str(ROOT / ".uv" / "bin" / "uv")
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "venv"
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, environment], check=True)
        # Copied, not linked from uv's cache: a fresh machine has no cache.
        subprocess.run([uv, "pip", "install", "-q", "--link-mode", "copy", "-p", environment, "--no-deps",
                        "-r", ROOT / "requirements" / "base.txt", ROOT], check=True)
        packages = next(environment.glob("lib/python*/site-packages"))
        size = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file())
        heavy = sorted(path.name for path in packages.iterdir() if path.name.startswith(HEAVY))
    return size / 1e6, heavy


async def run(count: int, with_install: bool) -> None:
    """Both tables."""
    table = Table("Start of the process to the first healthy answer", "s")
    table.add("duologue serve", await starts(count), READY)
    table.print()
    if with_install:
        size, heavy = install()
        table = Table("Base install, without byte code", "MB")
        table.add("site-packages", [size], SIZE_MB)
        table.print()
        print(f"heavy packages in it: {', '.join(heavy) or 'none'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--no-install", action="store_true")
    arguments = parser.parse_args()
    asyncio.run(run(arguments.starts, not arguments.no_install))


if __name__ == "__main__":
    main()
