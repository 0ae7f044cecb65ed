"""The typed form of a stage config: which stages there are, where they run, how they are joined."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from duologue.engine.messages import INPUT_RATE
from duologue.strict import Strict


class ConfigError(ValueError):
    """A config that cannot work; its text says what to change."""


class StageConfig(Strict):
    """One stage. ``model`` names a module under ``duologue.engine.models`` that has a ``create``."""

    name: str
    role: Literal["thinker", "talker", "codec"]
    model: str
    process: str
    """Stages with the same name here share one worker process."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Handed to the model, which checks them."""


class EdgeConfig(Strict):
    """A connector between two stages.

    ``local`` joins stages of one process, ``shm`` stages of two processes by shared memory, ``socket`` by way of the
    hub: the slowest, which carries text and codec frames only, and after which the talker can be rebuilt alone.
    """

    source: str
    target: str
    connector: Literal["local", "shm", "socket"]
    capacity: int = Field(default=64, gt=0)
    """Messages that may be on the edge for one session; its producer is held back before."""
    ring_bytes: int | None = Field(default=None, ge=1 << 16, le=1 << 30)
    """Shared memory of an ``shm`` edge, for all sessions together: 4 MiB unless told. A message may be larger."""

    @model_validator(mode="after")
    def _ring_is_of_shm(self) -> Self:
        if self.ring_bytes is not None and self.connector != "shm":
            raise ValueError(f"edge {self.source} -> {self.target}: ring_bytes is the size of shared memory, "
                             f"which a {self.connector!r} connector has none of; leave it out")
        return self


class ChunkingConfig(Strict):
    """How codec frames are cut into chunks for the codec stage; all figures in codec frames.

    With ``codec_chunk_ramp`` chunks after the first grow from ``initial_codec_chunk_frames`` to ``codec_chunk_frames``
    no faster than playback allows by the real-time factor measured in the reply; without it they grow at once.
    """

    initial_codec_chunk_frames: int = Field(default=2, gt=0)
    codec_chunk_frames: int = Field(default=10, gt=0)
    codec_left_context_frames: int = Field(default=0, ge=0)
    codec_chunk_ramp: bool = True


class ProcessConfig(Strict):
    """A stage process, by its name in the stages."""

    replicas: int = Field(default=1, gt=0)
    """Processes of this kind. A session is on one of them and moves to another when its own dies."""


class AdmissionConfig(Strict):
    """When a new session is taken, by measured headroom."""

    target_load: float = Field(default=0.8, gt=0, le=1)
    """Highest share of the unit period that the p99 unit time may take with the new session counted in."""
    window_units: int = Field(default=512, gt=0)
    """Units over which p99 is taken."""
    kv_overcommit: float = Field(default=1.0, ge=1)
    """KV that is promised for each that there is. Above 1 sessions that are silent give theirs up to those that need
    it, and are prefilled again from their journals when their next unit comes."""
    max_waiting: int = Field(default=16, ge=0)
    """Callers that may wait in the queue; the next is refused."""
    ticket_ttl_s: float = Field(default=10.0, gt=0)
    """A waiting caller that has not asked again for this long loses its place."""


class SupervisionConfig(Strict):
    """How stage processes are watched."""

    start_timeout_s: float = Field(default=30.0, gt=0)
    hang_timeout_s: float = Field(default=8.0, gt=0)
    """A process that has said nothing for this long, though it was asked to, is killed and started again: soon enough
    that its sessions still hold the units that wait (``max_pending_units``)."""
    max_restarts: int = Field(default=5, ge=0)
    """Restarts within ``restart_window_s`` after which the stage is given up."""
    restart_window_s: float = Field(default=60.0, gt=0)


class PipelineConfig(Strict):
    """A whole pipeline."""

    name: str
    unit_ms: int = Field(gt=0)
    output_rate: Literal[8000, 12000, 16000, 24000, 48000]
    """Sample rate of the codec stage's waveform, in Hz (the rates Opus codes, RFC 6716 section 2)."""
    model: Path | None = None
    """Folder of the checkpoint, for every stage whose options name none."""
    stages: tuple[StageConfig, ...]
    edges: tuple[EdgeConfig, ...] = ()
    processes: dict[str, ProcessConfig] = Field(default_factory=dict)
    """Settings of the stage processes; one that is not named here has the defaults."""
    async_chunk: bool = True
    """Whether a stage's output goes to the next as it comes; if not, each reply's when it is whole."""
    chunking: ChunkingConfig = ChunkingConfig()
    admission: AdmissionConfig = AdmissionConfig()
    supervision: SupervisionConfig = SupervisionConfig()
    max_pending_units: int = Field(default=150, gt=0)
    """Units a session may have waiting for a decision before an append is an overrun: 12 s of 80 ms units, which
    a restarted stage process has to catch up with."""
    journal_units: int = Field(default=750, gt=0)
    """Units of audio the journal keeps for an utterance that has not been understood yet."""

    @property
    def unit_samples(self) -> int:
        """Samples in one unit at 16 kHz."""
        return INPUT_RATE * self.unit_ms // 1000

    @property
    def unit_s(self) -> float:
        """Length of one unit, in seconds."""
        return self.unit_ms / 1000

    @property
    def conditions_talker(self) -> bool:
        """Whether the thinker's text reaches the talker with its ``Conditioning``: by way of the hub it does not."""
        return bool(self.edges) and self.edges[0].connector != "socket"

    @model_validator(mode="after")
    def _graph_is_whole(self) -> Self:
        names = [stage.name for stage in self.stages]
        if len(set(names)) != len(names):
            raise ValueError(f"stage names must differ: {', '.join(names)}")
        if not self.stages or self.stages[0].role != "thinker":
            raise ValueError("the first stage must have the role 'thinker'")
        process = {stage.name: stage.process for stage in self.stages}
        for edge in self.edges:
            for end in (edge.source, edge.target):
                if end not in process:
                    raise ValueError(f"edge {edge.source} -> {edge.target}: there is no stage named {end!r}")
            together = process[edge.source] == process[edge.target]
            if together != (edge.connector == "local"):
                want = "'local'" if together else "'shm' or 'socket'"
                raise ValueError(f"edge {edge.source} -> {edge.target}: its stages are "
                                 f"{'in one process' if together else 'in two processes'}, "
                                 f"so its connector must be {want}")
            if edge.connector == "shm":
                counts = [self.processes.get(name, ProcessConfig()).replicas
                          for name in (process[edge.source], process[edge.target])]
                if counts[0] != counts[1]:
                    raise ValueError(
                        f"edge {edge.source} -> {edge.target}: shared memory joins processes replica by replica, but "
                        f"{process[edge.source]!r} has {counts[0]} replicas and {process[edge.target]!r} {counts[1]}; "
                        f"give both the same number under processes, or use a 'socket' connector")
        unknown = sorted(set(self.processes) - set(process.values()))
        if unknown:
            raise ValueError(f"processes: no stage is in a process named {', '.join(unknown)}")
        chain = [(a.name, b.name) for a, b in zip(self.stages, self.stages[1:], strict=False)]
        if [(edge.source, edge.target) for edge in self.edges] != chain:
            raise ValueError("edges must join the stages in their order: "
                             + ", ".join(f"{a} -> {b}" for a, b in chain))
        return self
