"""The ``duologue`` command."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from duologue.agent.logs import configure_logs
from duologue.agent.recording import command as replaying
from duologue.agent.recording.recorder import Recorder
from duologue.agent.server import CannotListenError, serve
from duologue.agent.switchboard import Switchboard
from duologue.agent.transports.livekit.config import LiveKitConfig
from duologue.agent.transports.sip import command as telephone
from duologue.agent.transports.sip.config import SipConfig, SipListen
from duologue.config import DEFAULT_CONFIG, Config, load
from duologue.engine import ConfigError, Engine


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="duologue", description="A realtime voice agent server.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serving = commands.add_parser("serve", help="serve calls from browsers, and the call page")
    rooms = commands.add_parser("livekit", help="serve the rooms of a LiveKit server, and all that serve does")
    for command in (serving, rooms):
        _add_server(command)
        telephone.add_listen(command)
    _add_livekit(rooms)
    telephone.add_call(commands.add_parser("call", help="make one telephone call, and be the agent in it"),
                       DEFAULT_CONFIG)
    replaying.add_to(commands.add_parser("replay", help="replay a recorded call and show where it differs"))
    return parser


def _add_server(command: argparse.ArgumentParser) -> None:
    command.add_argument("config", nargs="?", default=DEFAULT_CONFIG,
                         help=f"the stage config, a YAML file (default: {DEFAULT_CONFIG})")
    # SUPPRESS: what is not on the command line is left to the config file.
    command.add_argument("--model", dest="pipeline.model", metavar="DIR", default=argparse.SUPPRESS,
                         help="folder of the checkpoint that the stage config serves")
    command.add_argument("--host", default=argparse.SUPPRESS, help="address to listen on (default: 127.0.0.1)")
    command.add_argument("--port", type=int, default=argparse.SUPPRESS,
                         help="port to listen on, 0 for any free one (default: 8080)")
    command.add_argument("--drain-timeout", dest="drain_timeout_s", type=float, default=argparse.SUPPRESS,
                         metavar="SECONDS", help="how long live calls may go on after SIGTERM (default: 600)")
    command.add_argument("--log-words", action="store_true", default=argparse.SUPPRESS,
                         help="let logs hold what callers and agent said")
    command.add_argument("--record", metavar="DIR", default=argparse.SUPPRESS,
                         help="record every call into a folder of its own in DIR: audio both ways, and all that was "
                              "said and decided")


def _add_livekit(command: argparse.ArgumentParser) -> None:
    """Add words of the config's section ``livekit``, by which they are told from those of ``server``."""
    group = command.add_argument_group("livekit", "each may be in the config's section livekit instead")
    group.add_argument("--url", dest="livekit.url", metavar="URL", default=argparse.SUPPRESS,
                       help="of the LiveKit server: ws://...")
    group.add_argument("--api-key", dest="livekit.api_key", metavar="KEY", default=argparse.SUPPRESS,
                       help="the server's API key")
    group.add_argument("--api-secret", dest="livekit.api_secret", metavar="SECRET", default=argparse.SUPPRESS,
                       help="and its secret; on the command line others on this machine can read it")
    group.add_argument("--agent-name", dest="livekit.agent_name", metavar="NAME", default=argparse.SUPPRESS,
                       help="take only jobs dispatched to this name (default: one for every new room)")


async def _serve(config: Config) -> int:
    server = config.server
    recorder = Recorder(Path(server.record), config.pipeline, config.conversation) if server.record else None
    engine = await Engine.start(config.pipeline)
    board = Switchboard(engine, config.conversation, recorder)
    try:
        if config.livekit is not None:
            _open_livekit(config.livekit, board, engine)
        if config.sip is not None:
            await telephone.open_door(config.sip, board)
        return await serve(board, bind=server.host, port=server.port, drain_timeout_s=server.drain_timeout_s)
    finally:
        await board.close()


def _open_livekit(config: LiveKitConfig, board: Switchboard, engine: Engine) -> None:
    try:
        from duologue.agent.transports.livekit.door import LiveKitDoor  # seconds, and an extra: only who needs it
    except ImportError as missing:
        raise ConfigError(f"LiveKit rooms need the extra 'livekit' ({missing}): "
                          "pip install 'duologue[livekit]'.") from missing
    door = LiveKitDoor(config, board, engine.load, engine.config.admission.target_load)
    board.add(door)
    door.open()


async def _call(config: Config, target: str) -> int:
    engine = await Engine.start(config.pipeline)
    board = Switchboard(engine, config.conversation)
    try:
        door = await telephone.open_door(config.sip or SipConfig(listen=(SipListen(port=0),)), board)
        return await telephone.call_one(door, target)
    finally:
        await board.close()


def _replay(given: dict[str, Any]) -> int:
    try:
        return replaying.run(**given)
    except ConfigError as fault:
        print(f"duologue: {fault}", file=sys.stderr)
        return 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 2 when it could not start, with one line that says why."""
    given: dict[str, Any] = vars(_parser().parse_args(arguments))
    command = given.pop("command")
    if command == "replay":
        return _replay(given)
    path, target = given.pop("config"), given.pop("target", "")
    sections: dict[str, dict[str, Any]] = {}
    for word, value in given.items():
        section, _, name = word.rpartition(".")
        words = sections.setdefault(section or "server", {})
        if value != []:  # a bare --sip asks for the section, as the config has it
            words[name] = value
    try:
        config = load(path, **sections)
        if command == "livekit" and config.livekit is None:
            raise ConfigError("There is no LiveKit server: give --url, --api-key and --api-secret, or the config's "
                              "section livekit.")
        configure_logs(log_words=config.server.log_words)
        return asyncio.run(_call(config, target) if command == "call" else _serve(config))
    except (ConfigError, CannotListenError) as fault:
        print(f"duologue: {fault}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
