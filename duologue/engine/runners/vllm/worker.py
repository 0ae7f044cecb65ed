"""vLLM's worker, which also sends away the hidden states that segments ask for.

vLLM's V1 model runner is assumed: it keeps a step's hidden states between the forward pass and sampling.
"""

from __future__ import annotations

import socket
from typing import Any

import numpy as np
from vllm.platforms import current_platform

from duologue.engine.runners.vllm import loader as loader
from duologue.engine.runners.vllm import model
from duologue.engine.runners.vllm.hidden import RowsFrame, connect
from duologue.engine.runners.vllm.inputs import Wanted

if current_platform.is_cpu():
    from vllm.v1.worker.cpu_worker import CPUWorker as PlatformWorker
else:
    from vllm.v1.worker.gpu_worker import Worker as PlatformWorker

model.register()


class Worker(PlatformWorker):  # type: ignore[misc]
    """The platform's worker; the class is named in vLLM's ``worker_cls``."""

    _rows_socket: socket.socket | None = None

    def send_rows_to(self, address: str) -> None:
        """Connect to where hidden states go; called by collective RPC once the model is loaded."""
        if self.rank == 0:
            self._rows_socket = connect(address)

    def execute_model(self, scheduler_output: Any) -> Any:
        """One forward pass; the hidden states that were asked for have left when it returns."""
        output = super().execute_model(scheduler_output)
        if self._rows_socket is not None and scheduler_output.total_num_scheduled_tokens:
            frames = self._frames(scheduler_output.num_scheduled_tokens)
            if frames:
                self._rows_socket.sendall(b"".join(frame.encode() for frame in frames))
        return output

    def _frames(self, num_scheduled_tokens: dict[str, int]) -> list[RowsFrame]:
        runner = self.model_runner
        hidden = runner.execute_model_state.hidden_states
        batch = runner.input_batch
        frames: list[RowsFrame] = []
        row = 0
        for index, request in enumerate(batch.req_ids):
            count = num_scheduled_tokens[request]
            wanted = Wanted.of(runner.requests[request].sampling_params)
            first = int(batch.num_computed_tokens_cpu[index])
            skip = max(0, wanted.first - first)
            if skip < count:
                rows = hidden[row + skip:row + count].float().cpu().numpy()
                frames.append(RowsFrame(wanted.segment, first + skip, np.ascontiguousarray(rows)))
            row += count
        return frames
