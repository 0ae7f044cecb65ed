"""The telephone's part of the command line: ``--sip`` and ``duologue call``."""

from __future__ import annotations

import argparse
import asyncio
import re
import signal
from collections.abc import Callable
from typing import Any

from duologue.agent.switchboard import Switchboard
from duologue.agent.transports.sip.calls import BadTarget, CallEnded
from duologue.agent.transports.sip.config import SipConfig
from duologue.agent.transports.sip.door import SipDoor
from duologue.agent.transports.sip.media.udp_ports import NoPorts
from duologue.engine import ConfigError, Refused

_LISTEN = re.compile(r"(udp|tcp|tls)(?::(\[[^\]]+\]|[^:\s]+)(?::(\d{1,5}))?)?")


def listen(text: str) -> dict[str, Any]:
    """Read ``udp:127.0.0.1:5060``, ``tls:[::1]`` or ``tcp`` as a ``SipListen``'s values."""
    found = _LISTEN.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"write {text!r} like udp:127.0.0.1:5060; after --sip comes no config file")
    values = {"transport": found[1], "host": found[2] and found[2].strip("[]"), "port": found[3] and int(found[3])}
    return {name: value for name, value in values.items() if value is not None}


def add_listen(command: argparse.ArgumentParser) -> None:
    """Add ``--sip``."""
    command.add_argument("--sip", dest="sip.listen", nargs="*", type=listen, metavar="ADDRESS",
                         default=argparse.SUPPRESS,
                         help="take telephone calls at these addresses, such as udp:127.0.0.1:5060 (which is what it "
                              "means without any); more in the config's section sip")


def add_call(command: argparse.ArgumentParser, default_config: str) -> None:
    """Add the words of ``call``."""
    command.add_argument("target", help="a SIP URI (sip:desk@192.0.2.7), or a number if the config has a provider")
    command.add_argument("config", nargs="?", default=default_config,
                         help=f"the stage config, a YAML file (default: {default_config})")
    command.add_argument("--log-words", action="store_true", default=argparse.SUPPRESS,
                         help="let logs hold what both sides said")
    add_listen(command)


async def open_door(config: SipConfig, board: Switchboard) -> SipDoor:
    """Open the door and count it among the server's parts. Raises ``ConfigError``."""
    door = SipDoor(config, board)
    try:
        await door.open()
    except (OSError, ValueError) as fault:
        raise ConfigError(f"sip: {fault}") from fault
    board.add(door)
    return door


async def call_one(door: SipDoor, target: str, say: Callable[[str], None] = print) -> int:
    """Make one call, until either side hangs up or SIGINT or SIGTERM comes; returns the exit status.

    1: it did not come about, and ``say`` was told why.
    """
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    stopped = loop.create_task(stop.wait())
    dialling = loop.create_task(door.dial(target))
    try:
        say(f"calling {target}; Ctrl-C hangs up")
        await asyncio.wait({dialling, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not dialling.done():
            say("given up")
            return 1
        call = dialling.result()
        say("connected")
        closed = loop.create_task(call.wait_closed())
        await asyncio.wait({closed, stopped}, return_when=asyncio.FIRST_COMPLETED)
        call.hang_up("hung up")
        await closed
        say(f"ended: {call.outcome}")
        return 0
    except (BadTarget, CallEnded, NoPorts, Refused) as why:
        say(f"no call: {why}")
        return 1
    finally:
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(name)
        for task in (dialling, stopped):
            task.cancel()
        await asyncio.gather(dialling, stopped, return_exceptions=True)
