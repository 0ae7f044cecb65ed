"""The talker of MiniCPM-o 4.5: a reply's text and the thinker's states of it, as they come, to codes.

It is the duplex talker over the release's Llama: each unit of the thinker's is a unit of speech, of 25 codes; a unit
without text as well, since the talker may still be at what was written before. Its end is held back until the reply's
last unit, which then runs to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duologue.engine.config import ConfigError, PipelineConfig
from duologue.engine.models.duplex.talker import Talker
from duologue.engine.models.minicpmo.checkpoint import CheckpointOptions, load
from duologue.engine.models.minicpmo.conditioning import TENSORS, TtsConditioner
from duologue.engine.models.minicpmo.token2wav.config import FRAME_RATE
from duologue.engine.models.minicpmo.voice import TtsSpeech, VoiceOptions
from duologue.engine.models.minicpmo.weights import talker_weights
from duologue.engine.models.options import read_options
from duologue.engine.models.stored import sourced
from duologue.engine.runners.opening import RunnerOptions, open_runner


class TalkerOptions(CheckpointOptions, RunnerOptions):
    """Options of the talker."""

    voice: VoiceOptions = VoiceOptions()


def create(options: Mapping[str, Any], pipeline: PipelineConfig) -> Talker:
    """The talker of a MiniCPM-o 4.5 pipeline; its options are :class:`TalkerOptions`."""
    wanted = read_options(TalkerOptions, sourced(options, pipeline), "MiniCPM-o talker")
    if not pipeline.conditions_talker:
        raise ConfigError("the MiniCPM-o talker needs the thinker's hidden states, which an edge of connector 'socket' "
                          "does not carry: make it 'shm', or 'local' with both stages in one process")
    checkpoint = load(wanted)
    tts, codec = checkpoint.config.tts, checkpoint.token2wav
    runner = open_runner(checkpoint.talker, talker_weights(wanted), wanted)
    device = wanted.torch.device if wanted.runner == "torch" else "cpu"
    beside = {name: tensor for name, tensor in checkpoint.tensors("talker", device) if name in TENSORS}
    conditioner = TtsConditioner(beside, checkpoint.tokenizer, tts.audio_bos_token_id)
    unit_codes = FRAME_RATE * checkpoint.config.unit_ms // 1000
    return Talker(runner, conditioner, TtsSpeech(
        wanted.voice, eos=tts.eos, unit_codes=unit_codes, frame_samples=codec.code_samples,
        silence_code=codec.silence_code))
