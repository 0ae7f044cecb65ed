"""LiveKit Agents' worker with its jobs on its own event loop.

Its job executors give every job a process or a thread with an event loop of its own. A process would need a copy of
the engine, or its audio sent between processes; a thread would change loops with each frame. A call takes microseconds
of a loop here (the model works in the engine's processes), so the jobs share the one that the engine's sessions live
on, like the calls of every other door.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from livekit.agents import AgentServer, JobContext
from livekit.agents.ipc.job_executor import JobStatus
from livekit.agents.job import RunningJobInfo
from livekit.agents.utils import EventEmitter

LaunchJob = Callable[[RunningJobInfo], "RunningCall"]
"""Brings a job's call into its room."""


class RunningCall(Protocol):
    """What a job needs of its call."""

    @property
    def outcome(self) -> str:
        """Why it ended; empty while it has not."""

    def dismiss(self) -> None:
        """End it."""

    async def wait_closed(self) -> None:
        """Wait until it has given everything back."""


class RoomJob:
    """One job, as the worker sees a job executor."""

    def __init__(self, info: RunningJobInfo, call: RunningCall) -> None:
        self.running_job = info
        self._call = call

    @property
    def status(self) -> JobStatus:
        """How the job stands, as it is reported to the server."""
        if not self._call.outcome:
            return JobStatus.RUNNING
        return JobStatus.FAILED if self._call.outcome in ("never connected", "media fault") else JobStatus.SUCCESS

    async def join(self) -> None:
        """Wait until the job is over."""
        await self._call.wait_closed()

    async def aclose(self) -> None:
        """End the job: its dispatch was deleted."""
        self._call.dismiss()
        await self.join()


class RoomJobs(EventEmitter[str]):
    """The jobs of one worker; stands where the worker has its pool of processes or threads."""

    def __init__(self, launch: LaunchJob) -> None:
        super().__init__()
        self._launch = launch
        self._watches: set[asyncio.Task[None]] = set()
        self.processes: list[RoomJob] = []
        """Jobs that have not ended. (Here and below: names that the worker uses.)"""

    async def start(self) -> None:
        """Nothing has to be warmed up."""

    async def launch_job(self, info: RunningJobInfo) -> None:
        """Begin a job that the server has assigned."""
        job = RoomJob(info, self._launch(info))
        self.processes.append(job)
        self.emit("process_job_launched", job)
        watch = asyncio.get_running_loop().create_task(self._watch(job))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)

    async def _watch(self, job: RoomJob) -> None:
        await job.join()
        self.processes.remove(job)
        self.emit("process_closed", job)

    def get_by_job_id(self, job_id: str) -> RoomJob | None:
        """Find a job."""
        return next((job for job in self.processes if job.running_job.job.id == job_id), None)

    def set_target_idle_processes(self, count: int) -> None:
        """Nothing is kept idle."""

    async def aclose(self) -> None:
        """End every job."""
        await asyncio.gather(*(job.aclose() for job in list(self.processes)))
        await asyncio.gather(*self._watches)


async def _not_used(_context: JobContext) -> None:
    raise AssertionError("jobs are launched by RoomJobs")


class RoomServer(AgentServer):
    """A worker whose jobs are ``RoomJobs``. Two private names of its base are used; a test holds them against the
    installed version.
    """

    def __init__(self, jobs: RoomJobs, *, agent_name: str, on_request: Callable[..., Awaitable[None]],
                 **options: Any) -> None:
        """``options`` are AgentServer's."""
        self._jobs = jobs
        super().__init__(**options)
        self.rtc_session(_not_used, agent_name=agent_name, on_request=on_request)

    @property
    def _proc_pool(self) -> Any:
        return self._jobs

    @_proc_pool.setter
    def _proc_pool(self, _pool: object) -> None:
        """``run`` makes a pool here, not started yet: it is not wanted."""

    @property
    def registered(self) -> bool:
        """Whether the LiveKit server knows this worker at the moment."""
        return self.id != "unregistered" and not self._connecting
