"""The duplex talker: a reply's text and the thinker's states of it, as they come, to codec frames.

Each piece of text is a unit of speech: its condition, ``audio_bos``, and as many codes as a unit has. Until the reply
ends the talker may not end either; its last unit then runs on to the talker's own end, so that the last word is whole.
The KV is carried over the units of one reply and given back with it. A reply longer than the talker's context slides:
its oldest units go, condition and codes.

It speaks at its own pace: the ``rate`` of a text is not for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from duologue.engine.config import ConfigError, PipelineConfig
from duologue.engine.messages import (
    Close,
    CodecFrames,
    Hold,
    Interrupt,
    Open,
    ReplyText,
    SessionFailed,
    StageInput,
    StageOutput,
)
from duologue.engine.models.duplex import talker_layout
from duologue.engine.models.duplex.checkpoint import load
from duologue.engine.models.duplex.conditioning import DuplexConditioner
from duologue.engine.models.duplex.runner_options import RunnerOptions, open_runner
from duologue.engine.models.duplex.speech import Conditioner, Reply, Speech
from duologue.engine.models.duplex.voice import DuplexSpeech, Voice
from duologue.engine.models.filing import Filing
from duologue.engine.models.options import read_options
from duologue.engine.models.stored import sourced
from duologue.engine.runners.base import Finish, Runner
from duologue.engine.runners.log import Grammar
from duologue.engine.runners.sessions import Sessions
from duologue.engine.runners.window import Window
from duologue.engine.stage import KvBudget


class TalkerOptions(RunnerOptions):
    """Options of the duplex talker."""

    voice: Voice = Voice()


class Talker:
    """The stage. The units of all sessions that have text go through the runner together."""

    def __init__(self, runner: Runner, conditioner: Conditioner, speech: Speech) -> None:
        """Raise ``ConfigError`` when the runner's sessions are too short to slide."""
        self._runner = runner
        try:
            self._sessions = Sessions(runner, Grammar(terminators=True), speech.window)
        except ValueError as error:
            raise ConfigError(f"the talker: {error}: raise its runner's max_length") from None
        self._replies: Filing[ReplyText, Reply] = Filing(
            ReplyText, lambda message: Reply(message.fence, self._sessions, conditioner, speech))
        low = Window(speech.window, self._sessions.longest).low
        if low < speech.window_room:
            raise ConfigError(f"the talker slides down to {low} of its session's {self._sessions.longest} positions; a "
                              f"unit and the end of a reply after it take {speech.window_room}: raise its runner's "
                              f"max_length")

    @property
    def kv_budget(self) -> KvBudget:
        """What its runner holds."""
        capacity = self._runner.capacity
        return KvBudget(capacity.positions, self._sessions.longest, capacity.max_sessions)

    def receive(self, message: StageInput) -> None:
        """File a message. Raises ``ValueError`` for text whose states are not this thinker's."""
        if isinstance(message, Open | Close | Interrupt):
            self._sessions.close(message.session)
        elif isinstance(message, Hold) and message.held and (reply := self._replies.find(message.session)):
            reply.pause()
        self._replies.receive(message)

    @property
    def ready(self) -> bool:
        """Whether there is a unit to begin or one to go on with."""
        return self._replies.ready or self._sessions.ready

    @property
    def wake_fd(self) -> int | None:
        """The runner's."""
        return self._runner.wake_fd

    def step(self) -> Sequence[StageOutput]:
        """Begin every unit that can begin, and let the runner go on with all that run."""
        outputs: list[StageOutput] = []
        for reply in self._replies.take():
            if (silence := reply.begin()) is not None:
                outputs.append(silence)
        for output in self._sessions.step():
            if output.finish is Finish.FAILED:
                self._replies.receive(Close(output.session))
                outputs.append(SessionFailed(output.session, f"the talker's runner: {output.detail}"))
                continue
            speaking = self._replies.find(output.session)
            assert speaking is not None
            if (frames := speaking.take(output)) is not None:
                outputs.append(frames)
        for made in outputs:
            if isinstance(made, CodecFrames) and made.last:
                self._sessions.close(made.fence.session)
                self._replies.end(made.fence)
        return outputs

    def close(self) -> None:
        """End the runner; idempotent."""
        self._runner.close()


def create(options: Mapping[str, Any], pipeline: PipelineConfig) -> Talker:
    """The talker of a duplex pipeline; its options are :class:`TalkerOptions`."""
    wanted = read_options(TalkerOptions, sourced(options, pipeline), "duplex talker")
    if not pipeline.conditions_talker:
        raise ConfigError("the duplex talker needs the thinker's hidden states, which an edge of connector 'socket' "
                          "does not carry: make it 'shm', or 'local' with both stages in one process")
    checkpoint = load(wanted)
    runner = open_runner("talker", checkpoint, wanted)
    device = wanted.torch.device if wanted.runner == "torch" else "cpu"
    beside = {name: tensor for name, tensor in checkpoint.tensors("talker", device) if name in talker_layout.TENSORS}
    conditioner = DuplexConditioner(beside["emb_text.weight"], beside["projector.weight"], checkpoint.tokenizer,
                                    talker_layout.audio_bos(checkpoint.config.codec))
    return Talker(runner, conditioner, DuplexSpeech(checkpoint.config, wanted.voice))
