from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.models.minicpmo.token2wav.config import TINY
from duologue.engine.models.minicpmo.token2wav.flow import KEPT_FRAMES, Flow, FlowState, Voice
from tests.engine.models.minicpmo.token2wav import small

SAME = 1e-5
"""Between sums of another order; mel frames are about 1.6 large."""


@pytest.fixture(scope="module")
def flow() -> Flow:
    torch.set_num_threads(1)
    return small.flow()


@pytest.fixture(scope="module")
def voice(flow: Flow) -> Voice:
    return small.voice(flow)


def rows(*names: str, count: int) -> torch.Tensor:
    return torch.tensor([small.codes(name, count) for name in names])


def test_streams_decoded_together_are_what_each_is_alone(flow: Flow, voice: Voice) -> None:
    """Two voices of equal length, over more chunks than are kept."""
    voices = [voice, small.voice(flow, "other")]
    together, alone = [each.state for each in voices], [each.state for each in voices]
    for chunk in range(4):
        codes = rows(f"a{chunk}", f"b{chunk}", count=28)
        mel, together = flow.step(codes, together, voices, last=False)
        for i in range(2):
            single, (alone[i],) = flow.step(codes[i:i + 1], [alone[i]], [voices[i]], last=False)
            assert (mel[i] - single[0]).abs().max() < SAME
    assert (mel[0] - mel[1]).abs().max() > 0.1


@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(1, 27), min_size=1, max_size=3), st.integers(0, 4))
def test_padding_behind_the_last_codes_changes_nothing_before_it(lengths: list[int], more: int) -> None:
    flow = small.flow()
    voice = small.voice(flow)
    _, (state,) = flow.step(rows("before", count=28), [voice.state], [voice], last=False)
    codes = [small.codes(str(i), length) for i, length in enumerate(lengths)]
    padded = torch.full((len(lengths), max(lengths) + more), 7)
    for row, each in zip(padded, codes, strict=True):
        row[:len(each)] = torch.tensor(each)
    mels, states = flow.step(padded, [state] * len(lengths), [voice] * len(lengths), last=True, lengths=lengths)
    assert states == []
    for mel, each in zip(mels, codes, strict=True):
        alone, _ = flow.step(torch.tensor([each]), [state], [voice], last=True)
        assert (mel[:, :2 * len(each)] - alone[0]).abs().max() < SAME


def test_a_stream_leaves_its_voice_as_it_was(flow: Flow, voice: Voice) -> None:
    before = [tensor.clone() for tensor in tensors(voice.state)]
    first, (state,) = flow.step(rows("a", count=28), [voice.state], [voice], last=False)
    flow.step(rows("b", count=28), [state], [voice], last=False)
    assert all(torch.equal(now, then) for now, then in zip(tensors(voice.state), before, strict=True))
    again, _ = flow.step(rows("a", count=28), [voice.state], [voice], last=False)
    assert torch.equal(first, again)


def test_no_more_is_kept_than_the_prompt_and_the_last_frames(flow: Flow, voice: Voice) -> None:
    state = voice.state
    for chunk in range(6):
        _, (state,) = flow.step(rows(str(chunk), count=28), [state], [voice], last=False)
        most = voice.prompt_frames + KEPT_FRAMES
        assert state.length == min(most, voice.prompt_frames + 50 * (chunk + 1))
        assert state.encoder.frames.shape[3] == state.length == 2 * state.encoder.codes.shape[3]
    assert all(tensor.untyped_storage().nbytes() == tensor.nbytes for tensor in tensors(state))


def test_the_keys_that_are_kept_are_the_newest_and_the_prompts_last(flow: Flow) -> None:
    """As released: the estimator has the newest chunk first, the encoder the prompt."""
    voice = small.voice(flow, count=40)
    state, states = voice.state, []
    for chunk in range(3):
        _, (state,) = flow.step(rows(str(chunk), count=28), [state], [voice], last=False)
        states.append(state)
    before, after = states[-2], states[-1]
    assert before.length == after.length == 180
    for newer, older in zip(after.frames, before.frames, strict=True):
        assert torch.equal(newer[..., 50:80, :], older[..., :30, :])
        assert torch.equal(newer[..., 80:, :], older[..., 80:, :])
    assert torch.equal(after.encoder.frames[..., :130, :], torch.cat(
        [before.encoder.frames[..., :80, :], before.encoder.frames[..., 130:, :]], -2))


def test_voices_and_codes_are_heard_in_what_is_said(flow: Flow, voice: Voice) -> None:
    other = small.voice(flow, "other")
    mine, _ = flow.step(rows("a", count=28), [voice.state], [voice], last=False)
    theirs, _ = flow.step(rows("a", count=28), [other.state], [other], last=False)
    others, _ = flow.step(rows("b", count=28), [voice.state], [voice], last=False)
    assert (mine - theirs).abs().mean() > 0.01
    assert (mine - others).abs().mean() > 0.01


def test_a_prompt_whose_frames_are_not_of_its_codes_is_refused(flow: Flow) -> None:
    given = small.prompt()
    with pytest.raises(ValueError, match="not of one prompt"):
        flow.voice(given.codes, given.mel[1:], given.speaker)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_near_single(flow: Flow, voice: Voice, dtype: torch.dtype) -> None:
    half = Flow(TINY.flow, {name: tensor.to(dtype) for name, tensor in small.part("flow").items()}, small.STEPS,
                small.noise())
    mel, _ = flow.step(rows("a", count=28), [voice.state], [voice], last=False)
    spoken = small.voice(half)
    rough, (state,) = half.step(rows("a", count=28), [spoken.state], [spoken], last=False)
    assert state.frames[0].dtype == dtype
    assert (rough.float() - mel).abs().mean() < 0.1 * mel.abs().mean()


def tensors(state: FlowState) -> list[torch.Tensor]:
    return [*state.encoder, *state.convs, *state.frames]
