"""What the harness promises of the ports it hands out."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from tests.harness.server import free_ports


def test_ports_that_belong_together_are_free_together() -> None:
    for _ in range(20):
        ports = free_ports(3)
        assert ports == tuple(range(ports[0], ports[0] + 3))
        with ExitStack() as held:
            for port in ports:
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
