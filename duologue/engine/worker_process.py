"""A stage process: ``python -m duologue.engine.worker_process FD``, where FD is its end of a socket to the hub.

It serves the stages it is told to hold until the hub goes away. Nothing in it waits but one call: for the socket, for
the doorbells of its edges and for stages whose work goes on elsewhere. Then each stage that is ready gets one step,
so that one that always is starves neither another nor the socket.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from duologue.engine.config import ConfigError, PipelineConfig
from duologue.engine.connectors import ShmReceiver, ShmSender
from duologue.engine.pipeline import Graph, load_stage
from duologue.engine.stage import Closing, HoldsKv, SelfWaking, Stage
from duologue.engine.wire import (
    READ_BYTES,
    CannotStart,
    Decoder,
    Ping,
    Pong,
    Ready,
    Setup,
    ToHub,
    ToStage,
    ToWorker,
    encode,
)
from duologue.engine.worker import Worker

NICENESS = 5
"""How much a stage process gives way to the server (setpriority(2)): its weight is about a third of the server's."""


class Channel:
    """The worker's end of the socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._decoder = Decoder()

    def fileno(self) -> int:
        """Readable when ``receive`` does not wait."""
        return self._sock.fileno()

    def receive(self) -> list[ToWorker | ToHub] | None:
        """Messages that have come, waiting for some bytes; None when the hub is gone."""
        data = self._sock.recv(READ_BYTES)
        return self._decoder.feed(data) if data else None

    def send(self, messages: list[ToHub]) -> None:
        """Send everything; the hub always reads."""
        if messages:
            self._sock.sendall(b"".join(encode(message) for message in messages))


class Loop:
    """The loop of a stage process."""

    def __init__(self, worker: Worker, channel: Channel) -> None:
        self._worker = worker
        self._channel = channel
        self._selector = selectors.DefaultSelector()
        self._woken: set[str] = set()
        self._over = False
        self._selector.register(channel, selectors.EVENT_READ, self._read)
        for fileno, act in worker.doorbells():
            self._selector.register(fileno, selectors.EVENT_READ, act)
        for name, stage in worker.stages.items():
            if isinstance(stage, SelfWaking) and stage.wake_fd is not None:
                self._selector.register(stage.wake_fd, selectors.EVENT_READ, self._waking(name))

    def run(self) -> None:
        """Serve until the hub is gone."""
        with self._selector:
            while not self._over:
                self.turn()

    def turn(self) -> None:
        """Wait until there is something to do, and do each thing that there is once."""
        ready = any(stage.ready for stage in self._worker.stages.values())
        for key, _ in self._selector.select(0 if ready else None):
            act: Callable[[], None] = key.data
            act()
        woken, self._woken = self._woken, set()
        for name, stage in self._worker.stages.items():
            if not self._over and (stage.ready or name in woken):
                self._worker.step(name)
                self._channel.send(self._worker.replies())
        if not self._over:
            self._channel.send(self._worker.replies())

    def _read(self) -> None:
        messages = self._channel.receive()
        if messages is None:
            self._over = True
            return
        for message in messages:
            if isinstance(message, ToStage):
                self._worker.dispatch(message)
            elif isinstance(message, Ping):
                self._channel.send([Pong()])

    def _waking(self, name: str) -> Callable[[], None]:
        return lambda: self._woken.add(name)


def load(setup: Setup, pipeline: PipelineConfig, stack: ExitStack) -> Mapping[str, Stage]:
    """Make the stages of this process, which ``stack`` closes; raises what a model does, ``ConfigError`` at best."""
    stages: dict[str, Stage] = {}
    for config in pipeline.stages:
        if config.name in setup.stages:
            stage = stages[config.name] = load_stage(config, pipeline)
            if isinstance(stage, Closing):
                stack.callback(stage.close)
    return stages


def serve(sock: socket.socket) -> None:
    """Load the stages the hub asks for and serve them."""
    channel = Channel(sock)
    setup: Setup | None = None
    while setup is None:
        messages = channel.receive()
        if messages is None:
            return
        setup = next((message for message in messages if isinstance(message, Setup)), None)
    pipeline = PipelineConfig.model_validate_json(setup.pipeline)
    with ExitStack() as stack:
        try:
            stages = load(setup, pipeline, stack)
        except ConfigError as error:
            channel.send([CannotStart(str(error))])
            return
        except Exception as error:
            traceback.print_exc()
            channel.send([CannotStart(f"a stage of process with {', '.join(setup.stages)} cannot be loaded: "
                                      f"{type(error).__name__}: {error}")])
            return
        # Before the hub hears that this process is ready: what comes over its edges from then on is for it.
        worker = Worker(Graph(pipeline), stages,
                    senders={edge.source: ShmSender(edge) for edge in setup.edges if edge.source in stages},
                    receivers={edge.target: ShmReceiver(edge) for edge in setup.edges if edge.target in stages})
        channel.send([Ready({name: stage.kv_budget for name, stage in stages.items() if isinstance(stage, HoldsKv)})])
        Loop(worker, channel).run()


def main() -> None:
    """Run the worker on the socket whose descriptor is the first argument."""
    # Ctrl-C reaches the whole process group; the hub decides what ends and when.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The media loop must have a processor when it asks for one: a late frame is heard, a late unit is not.
    os.nice(NICENESS)
    with socket.socket(fileno=int(sys.argv[1])) as sock:
        try:
            serve(sock)
        except (BrokenPipeError, ConnectionResetError):
            return


if __name__ == "__main__":
    main()
