"""The ``duologue`` command."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from duologue.agent.logs import configure_logs
from duologue.agent.server import CannotListenError, serve
from duologue.agent.switchboard import Switchboard
from duologue.config import DEFAULT_CONFIG, Config, load
from duologue.engine import ConfigError, Engine


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="duologue", description="A realtime voice agent server.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    command = commands.add_parser("serve", help="serve calls from browsers, and the call page")
    command.add_argument("config", nargs="?", default=DEFAULT_CONFIG,
                         help=f"the stage config, a YAML file (default: {DEFAULT_CONFIG})")
    # SUPPRESS: what is not on the command line is left to the config file.
    command.add_argument("--host", default=argparse.SUPPRESS, help="address to listen on (default: 127.0.0.1)")
    command.add_argument("--port", type=int, default=argparse.SUPPRESS,
                         help="port to listen on, 0 for any free one (default: 8080)")
    command.add_argument("--drain-timeout", dest="drain_timeout_s", type=float, default=argparse.SUPPRESS,
                         metavar="SECONDS", help="how long live calls may go on after SIGTERM (default: 600)")
    command.add_argument("--log-words", action="store_true", default=argparse.SUPPRESS,
                         help="let logs hold what callers and agent said")
    return parser


async def _serve(config: Config) -> int:
    engine = await Engine.start(config.pipeline)
    board = Switchboard(engine, config.conversation)
    server = config.server
    try:
        return await serve(board, bind=server.host, port=server.port, drain_timeout_s=server.drain_timeout_s)
    finally:
        await board.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 2 when it could not start, with one line that says why."""
    given: dict[str, Any] = vars(_parser().parse_args(arguments))
    given.pop("command")
    try:
        config = load(given.pop("config"), server=given)
        configure_logs(log_words=config.server.log_words)
        return asyncio.run(_serve(config))
    except (ConfigError, CannotListenError) as fault:
        print(f"duologue: {fault}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
