"""Ours against what the released Token2wav made of the same codes with the same weights (``golden/make.py``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from duologue.engine.config import ChunkingConfig
from duologue.engine.messages import CodecFrames, Fence, Open, ReplyAudio
from duologue.engine.models.codec_stage import CodecStage
from duologue.engine.models.minicpmo.codec import Token2wavDecoder
from duologue.engine.models.minicpmo.token2wav.config import TINY
from tests.engine.models.minicpmo.token2wav import small
from tests.engine.models.minicpmo.token2wav.golden.make import AHEAD, CHUNK, KEPT_SAMPLES, STREAMS

RELEASED = Path(__file__).parent / "golden" / "released.npz"
MEL_ERROR = 2e-5
"""Mel frames are about 1.6 large; single precision and ten network passes after one another."""
SOUND_ERROR = 2e-5
"""Of full scale: less than a step of 16 bits. The released f0 weights are multiplied out in double precision."""


@pytest.fixture(scope="module")
def released() -> dict[str, NDArray[Any]]:
    with np.load(RELEASED) as file:
        return dict(file)


@pytest.mark.parametrize("name", STREAMS)
def test_the_flow_makes_the_released_mel_frames_chunk_by_chunk(name: str, released: dict[str, NDArray[Any]]) -> None:
    flow = small.flow()
    voice = small.voice(flow)
    waiting, state, mels = [TINY.silence_code] * AHEAD + small.codes(name, STREAMS[name]), voice.state, []
    while len(waiting) >= CHUNK + AHEAD:
        mel, (state,) = flow.step(torch.tensor([waiting[:CHUNK + AHEAD]]), [state], [voice], last=False)
        mels.append(mel)
        waiting = waiting[CHUNK:]
    mels.append(flow.step(torch.tensor([waiting]), [state], [voice], last=True)[0])
    ours = torch.cat(mels, 2)[0].numpy()
    assert ours.shape == released[f"{name}_mel"].shape
    assert np.abs(ours - released[f"{name}_mel"]).max() < MEL_ERROR


@pytest.mark.parametrize("name", STREAMS)
def test_the_vocoder_makes_the_released_waveform_without_the_silence_before_it(
        name: str, released: dict[str, NDArray[Any]]) -> None:
    vocoder = small.vocoder()
    mel = torch.from_numpy(released[f"{name}_mel"])[None]
    sound, _ = vocoder.step(mel, [vocoder.begin(mel)], last=True)
    silence = np.zeros(vocoder.delay * TINY.hift.frame_samples, np.float32)
    ours = np.concatenate([silence, sound[0].numpy()])
    assert len(ours) == released[f"{name}_samples"]
    assert np.abs(ours[::KEPT_SAMPLES] - released[f"{name}_wave"]).max() < SOUND_ERROR


@pytest.mark.parametrize("name", STREAMS)
def test_the_codec_stage_is_the_released_stream_at_the_released_chunks(
        name: str, released: dict[str, NDArray[Any]]) -> None:
    flow = small.flow()
    voice = small.voice(flow)
    decoder = Token2wavDecoder(TINY, flow, small.vocoder(), lambda asked: voice, most_chunks=1, tail_codes=None)
    stage = CodecStage(decoder, ChunkingConfig(initial_codec_chunk_frames=CHUNK, codec_chunk_frames=CHUNK))
    stage.receive(Open("a", epoch=0, next_turn=0, next_unit=0))
    codes = np.array(small.codes(name, STREAMS[name]), np.int32)[:, None]
    stage.receive(CodecFrames(Fence("a", 0, 0, 0), codes, last=True))
    out: list[ReplyAudio] = []
    while stage.ready:
        out += [chunk for chunk in stage.step() if isinstance(chunk, ReplyAudio)]
    assert [len(chunk.pcm) for chunk in out] == list(released[f"{name}_chunks"])
    ours = np.concatenate([chunk.pcm for chunk in out])[::KEPT_SAMPLES]
    theirs = (np.clip(released[f"{name}_wave"], -1, 1) * 32767.0).astype(np.int16)
    assert np.abs(ours.astype(int) - theirs).max() <= 1
    stage.close()
