"""The duplex codec on random weights."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from duologue.engine.config import ChunkingConfig, ConfigError, PipelineConfig, StageConfig
from duologue.engine.messages import Close, CodecFrames, Fence, Interrupt, Open, Pcm, ReplyAudio, TextSpan
from duologue.engine.models.codec_stage import Chunk, CodecStage
from duologue.engine.models.duplex import codec, codec_layout
from duologue.engine.models.duplex.config import CodecConfig

TINY = {"load_format": "random", "size": "tiny", "seed": 3}
CONTEXT = 9
"""Frames the tiny codec looks back."""
FRAME = 960
CODES: NDArray[np.int32] = np.random.default_rng(5).integers(0, 254, (80, 1), dtype=np.int32)


def pipeline(chunking: ChunkingConfig | None = None, output_rate: int = 24_000) -> PipelineConfig:
    return PipelineConfig.model_validate({
        "name": "voice", "unit_ms": 1000, "output_rate": output_rate,
        "chunking": chunking or ChunkingConfig(codec_left_context_frames=CONTEXT),
        "stages": (StageConfig(name="thinker", role="thinker", model="none", process="one"),)})


def new_codec(*sessions: str, chunking: ChunkingConfig | None = None,
              options: Mapping[str, Any] | None = None) -> CodecStage[None]:
    stage = codec.create({**TINY, **(options or {})}, pipeline(chunking))
    for session in sessions:
        stage.receive(Open(session, epoch=0, next_turn=0, next_unit=0))
    return stage


def frames(data: NDArray[np.int32], seq: int = 0, *, last: bool = False, session: str = "a", epoch: int = 0,
           turn: int = 0, spans: tuple[TextSpan, ...] = ()) -> CodecFrames:
    return CodecFrames(Fence(session, epoch, turn, seq), data, spans, last)


def audio_of(stage: CodecStage[None]) -> list[ReplyAudio]:
    out: list[ReplyAudio] = []
    while stage.ready:
        out += [message for message in stage.step() if isinstance(message, ReplyAudio)]
    return out


def joined(chunks: list[ReplyAudio], session: str = "a") -> Pcm:
    return np.concatenate([chunk.pcm for chunk in chunks if chunk.fence.session == session])


def network(config: CodecConfig, seed: int) -> tuple[codec.CausalDecoder, dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    tensors = {name: torch.randn(shape, generator=generator, dtype=torch.float64) * 0.3
               for name, shape in codec_layout.tensors(config).items()}
    return codec.CausalDecoder(config, tensors), tensors


STAGE = new_codec()
DECODER = STAGE._decoder
WHOLE = DECODER.decode([Chunk(CODES, 0, None)])[0]


# --- the network ------------------------------------------------------------------------------------------------


def by_definition(config: CodecConfig, tensors: dict[str, torch.Tensor], codes: NDArray[np.int32]) -> NDArray[Any]:
    """What ``codec_layout`` says, one sample after the other."""
    weights = {name: tensor.numpy() for name, tensor in tensors.items()}

    def elu(x: NDArray[Any]) -> NDArray[Any]:
        return np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1)

    def convolved(x: NDArray[Any], name: str) -> NDArray[Any]:
        w, b = weights[f"{name}.weight"], weights[f"{name}.bias"]
        taps = w.shape[2]
        return np.stack([b + sum(w[:, :, k] @ x[t - taps + 1 + k] for k in range(taps) if t - taps + 1 + k >= 0)
                         for t in range(len(x))])

    x = convolved(weights["embedding.weight"][codes], "conv_in")
    for i, factor in enumerate(config.upsample):
        w, b = weights[f"upsample.{i}.weight"], weights[f"upsample.{i}.bias"]
        above = elu(x)
        x = np.stack([b + above[t // factor] @ w[:, :, t % factor]
                      + (above[t // factor - 1] @ w[:, :, factor + t % factor] if t >= factor else 0)
                      for t in range(len(x) * factor)])
        x = x + convolved(elu(x), f"residual.{i}")
    sound: NDArray[Any] = np.tanh(convolved(elu(x), "conv_out"))[:, 0]
    return sound


@pytest.mark.parametrize(("upsample", "kernel"), [((3, 2), 3), ((2, 4), 1), ((5,), 4)])
def test_the_network_computes_what_its_description_says(upsample: tuple[int, ...], kernel: int) -> None:
    config = CodecConfig(codebook_size=11, hidden_size=12, upsample=upsample, kernel=kernel, frame_rate=25,
                         sample_rate=100)
    decoder, tensors = network(config, seed=1)
    codes = np.random.default_rng(2).integers(0, 11, 7).astype(np.int32)
    got = decoder(torch.from_numpy(codes.astype(np.int64))[None])[0].numpy()
    assert got.shape == (7 * codec_layout.frame_samples(config),)
    np.testing.assert_allclose(got, by_definition(config, tensors, codes), atol=1e-12)


@pytest.mark.parametrize(("upsample", "kernel"), [((8, 6, 5, 4), 7), ((2, 2), 3), ((4, 3), 1), ((6,), 9)])
def test_a_sample_depends_on_its_left_context_and_on_no_frame_before_or_after(
        upsample: tuple[int, ...], kernel: int) -> None:
    config = CodecConfig(codebook_size=50, hidden_size=16, upsample=upsample, kernel=kernel, frame_rate=25,
                         sample_rate=100)
    decoder, _ = network(config, seed=4)
    context, samples = codec_layout.left_context(config), codec_layout.frame_samples(config)
    codes = torch.from_numpy(np.random.default_rng(8).integers(0, 49, (1, 2 * context + 8)))
    before, at = decoder(codes)[0], context + 3

    def change(frame: int) -> NDArray[Any]:
        other = codes.clone()
        other[0, frame] += 1
        difference: NDArray[Any] = np.abs((decoder(other)[0] - before).numpy()).reshape(-1, samples).max(1)
        return difference

    assert change(at - context)[at] > 0
    assert change(at - context - 1)[at] == 0
    assert change(at + 1)[at] == 0


def test_a_frame_is_exactly_its_samples_and_random_weights_can_be_heard() -> None:
    assert codec_layout.frame_samples(CodecConfig(codebook_size=254, hidden_size=64, upsample=(8, 6, 5, 4), kernel=7,
                                                  frame_rate=25, sample_rate=24_000)) == FRAME
    assert len(WHOLE) == 80 * FRAME
    assert 1000 < WHOLE.astype(float).std() < 30_000


# --- streaming and batches --------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 30), max_size=6), st.integers(1, 6), st.integers(1, 25), st.booleans())
def test_the_waveform_is_the_same_to_the_sample_however_its_frames_came_and_were_cut(
        sizes: list[int], initial: int, chunk: int, ramp: bool) -> None:
    chunking = ChunkingConfig(initial_codec_chunk_frames=initial, codec_chunk_frames=chunk,
                              codec_left_context_frames=CONTEXT, codec_chunk_ramp=ramp)
    stage = CodecStage(DECODER, chunking)
    stage.receive(Open("a", epoch=0, next_turn=0, next_unit=0))
    cuts = [0, *(min(cut, len(CODES)) for cut in accumulate(sizes)), len(CODES)]
    out = []
    for start, end in pairwise(cuts):
        stage.receive(frames(CODES[start:end], last=end == len(CODES)))
        out += audio_of(stage)
        if out and out[-1].last:
            break
    stage.close()
    assert np.array_equal(joined(out), WHOLE)
    assert [chunk.last for chunk in out] == [False] * (len(out) - 1) + [True]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), min_size=1, max_size=4))
def test_chunks_decoded_together_are_the_same_to_the_sample_as_alone(windows: list[tuple[int, int]]) -> None:
    chunks = []
    for start, size in windows:
        context = min(start, CONTEXT)
        chunks.append(Chunk(CODES[start - context:start + size], context, None))
    for (start, size), pcm in zip(windows, DECODER.decode(chunks), strict=True):
        assert np.array_equal(pcm, WHOLE[start * FRAME:(start + size) * FRAME])


def test_in_single_precision_only_the_last_bit_may_differ() -> None:
    fast = new_codec("a", options={"dtype": "float32"})
    fast.receive(frames(CODES, last=True))
    assert np.abs(joined(audio_of(fast)).astype(int) - WHOLE).max() <= 1
    fast.close()


def test_units_of_many_calls_are_one_forward_pass_and_none_waits_for_a_full_batch(
        monkeypatch: pytest.MonkeyPatch) -> None:
    stage = new_codec("a", "b", "c", "d", "e", "f")
    passes: list[int] = []
    whole = codec.CausalDecoder.__call__

    def counted(self: codec.CausalDecoder, codes: torch.Tensor) -> torch.Tensor:
        passes.append(len(codes))
        return whole(self, codes)

    monkeypatch.setattr(codec.CausalDecoder, "__call__", counted)
    stage.receive(frames(CODES[:2], session="c"))
    stage.step()
    for i, session in enumerate(("a", "b", "d", "e", "f")):
        stage.receive(frames(CODES[i:i + 2], session=session))
    together = audio_of(stage)
    assert passes == [1, 4, 1]
    assert [chunk.fence.session for chunk in together] == ["a", "b", "d", "e", "f"]
    for i, session in enumerate(("a", "b", "d", "e", "f")):
        assert np.array_equal(joined(together, session), DECODER.decode([Chunk(CODES[i:i + 2], 0, None)])[0])
    stage.close()


# --- the stage --------------------------------------------------------------------------------------------------


def test_spans_come_with_the_chunk_in_which_they_end_and_the_last_chunk_may_be_empty() -> None:
    stage = new_codec("a", chunking=ChunkingConfig(codec_left_context_frames=CONTEXT, codec_chunk_ramp=False))
    spans = (TextSpan(0, 5, 0, 2 * FRAME), TextSpan(6, 9, 2 * FRAME, 3 * FRAME))
    stage.receive(frames(CODES[:12], spans=spans))
    first, second = audio_of(stage)
    assert (first.spans, second.spans) == (spans[:1], spans[1:])
    stage.receive(frames(CODES[:0], 1, last=True))
    end, = audio_of(stage)
    assert (len(end.pcm), end.first_sample, end.last) == (0, 12 * FRAME, True)
    stage.close()


def test_an_interrupted_reply_is_silent_and_the_next_one_begins_afresh() -> None:
    stage = new_codec("a")
    stage.receive(frames(CODES[:30]))
    stage.step()
    stage.receive(Interrupt("a", epoch=1, turn=0))
    assert not stage.ready
    stage.receive(frames(CODES[30:40], 1))
    assert not stage.ready
    stage.receive(frames(CODES[40:50], epoch=1, turn=1, last=True))
    after = audio_of(stage)
    assert {(chunk.fence.epoch, chunk.fence.turn) for chunk in after} == {(1, 1)}
    assert np.array_equal(joined(after), DECODER.decode([Chunk(CODES[40:50], 0, None)])[0])
    stage.receive(frames(CODES[:5], epoch=1, turn=2))
    stage.receive(Close("a"))
    assert not stage.ready
    stage.close()


@pytest.mark.parametrize("bad", [np.array([[254]], np.int32), np.array([[-1]], np.int32),
                                 np.zeros((3, 2), np.int32), np.zeros((3, 1), np.float32)])
def test_frames_of_no_such_codec_are_refused_in_receive_so_that_only_their_session_fails(bad: NDArray[Any]) -> None:
    stage = new_codec("a", "b")
    with pytest.raises(ValueError, match="cod"):
        stage.receive(frames(bad))
    stage.receive(frames(CODES[:2], session="b", last=True))
    assert [chunk.fence.session for chunk in audio_of(stage)] == ["b"]
    stage.close()


@pytest.mark.parametrize(("options", "config", "says"), [
    ({"beta": 1}, {}, "beta"),
    ({"checkpoint": "somewhere"}, {}, "or `load_format: random`, and not both"),
    ({}, {"output_rate": 48_000}, "set output_rate to 24000"),
    ({}, {"chunking": ChunkingConfig(codec_left_context_frames=8)}, "codec_left_context_frames to 9"),
    ({"device": "cuda"}, {}, "set device to cpu"),
])
def test_a_config_that_cannot_work_is_refused(options: dict[str, Any], config: dict[str, Any], says: str,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=says):
        codec.create({**TINY, **options}, pipeline(**config))


def test_the_threads_of_the_process_are_those_of_the_options() -> None:
    before = torch.get_num_threads()
    new_codec(options={"threads": 2}).close()
    assert torch.get_num_threads() == 2
    new_codec().close()
    assert torch.get_num_threads() == 1
    torch.set_num_threads(before)
