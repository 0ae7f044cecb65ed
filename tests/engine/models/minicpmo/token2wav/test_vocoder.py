from __future__ import annotations

from itertools import accumulate, pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.models.minicpmo.token2wav import layout
from duologue.engine.models.minicpmo.token2wav.config import TINY, HiftConfig
from duologue.engine.models.minicpmo.token2wav.hift import Hift
from duologue.engine.models.minicpmo.token2wav.vocoder import Vocoder
from tests.engine.models.minicpmo.token2wav import small

HOP = TINY.hift.frame_samples
SAME = 2e-6
"""Between sums of another order; full scale is 1."""


@pytest.fixture(scope="module")
def vocoder() -> Vocoder:
    torch.set_num_threads(1)
    return small.vocoder()


def mel(name: str, frames: int) -> torch.Tensor:
    """(1, bands, frames)."""
    return small.draw(name, 1, frames, TINY.hift.in_channels).transpose(1, 2) * 1.6


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 30), max_size=8), st.booleans())
def test_the_waveform_does_not_depend_on_how_frames_were_cut(pieces: list[int], flush_alone: bool) -> None:
    vocoder = small.vocoder()
    frames = mel("cut", sum(pieces))
    whole, _ = vocoder.step(frames, [vocoder.begin(frames)], last=True)
    state, sounds = vocoder.begin(frames), []
    ends = list(accumulate(pieces, initial=0))
    for start, end in pairwise(ends):
        last = not flush_alone and end == ends[-1] and start == ends[-2]
        sound, (state,) = vocoder.step(frames[:, :, start:end], [state], last=last)
        sounds.append(sound)
        heard = sum(each.shape[1] for each in sounds)
        assert heard == (end if last else max(0, end - vocoder.delay)) * HOP
    if flush_alone or not pieces:
        sounds.append(vocoder.step(frames[:, :, :0], [state], last=True)[0])
    ours = torch.cat(sounds, 1)
    assert ours.shape == whole.shape == (1, sum(pieces) * HOP)
    assert not len(whole[0]) or (ours - whole).abs().max() < SAME


def test_streams_decoded_together_are_what_each_is_alone(vocoder: Vocoder) -> None:
    """One is as far as the other, but has come further: its noise is another."""
    names = ("a", "b")
    together = [vocoder.begin(mel(name, 1)) for name in names]
    _, (together[1],) = vocoder.step(mel("earlier", 50), [together[1]], last=False)
    _, (together[0],) = vocoder.step(mel("earlier", 40), [together[0]], last=False)
    assert together[0].shape == together[1].shape
    alone = list(together)
    for chunk in range(3):
        frames = torch.cat([mel(f"{name}{chunk}", 20) for name in names])
        sound, together = vocoder.step(frames, together, last=False)
        for i in range(2):
            single, (alone[i],) = vocoder.step(frames[i:i + 1], [alone[i]], last=False)
            assert (sound[i] - single[0]).abs().max() < SAME


def test_what_is_kept_of_a_stream_does_not_grow(vocoder: Vocoder) -> None:
    state = vocoder.begin(mel("a", 1))
    sizes = set()
    for chunk in range(12):
        _, (state,) = vocoder.step(mel(str(chunk), 25), [state], last=False)
        sizes.add((state.shape, state.mel.untyped_storage().nbytes(), state.source.untyped_storage().nbytes()))
    assert len(sizes) == 1


def test_the_released_size_is_160_ms_late() -> None:
    config = HiftConfig(base_channels=8, f0_channels=4)
    assert Vocoder(_hift(config)).delay * config.frame_samples * 1000 // config.sampling_rate == 160


@pytest.mark.parametrize(("kernels", "up"),
                         [((3, 3, 3), (3, 10, 1)), ((11, 3, 7), (16, 11, 7)), ((3, 11, 11), (1, 1, 9))])
def test_enough_is_kept_whatever_the_kernels_are(kernels: tuple[int, int, int], up: tuple[int, int, int]) -> None:
    """With 8 frames less the first and the last differ by 0.4 and 0.02."""
    config = HiftConfig(base_channels=8, nb_harmonics=1, resblock_kernel_sizes=kernels[:1],
                        resblock_dilation_sizes=((1, 3, 5),), source_resblock_kernel_sizes=kernels,
                        upsample_kernel_sizes=up, f0_channels=4)
    vocoder = Vocoder(_hift(config))
    frames = mel("kernels", 72)
    whole, _ = vocoder.step(frames, [vocoder.begin(frames)], last=True)
    state, sounds = vocoder.begin(frames), []
    for start in range(0, 72, 9):
        sound, (state,) = vocoder.step(frames[:, :, start:start + 9], [state], last=False)
        sounds.append(sound)
    ours = torch.cat(sounds, 1)
    assert (ours - whole[:, :ours.shape[1]]).abs().max() < 5 * SAME


def _hift(config: HiftConfig) -> Hift:
    weights = {}
    for name, size in layout.hift_tensors(config).items():
        mean, deviation = layout.distribution(f"hift.{name}", size)
        weights[name] = small.draw(name, *size) * deviation + mean
    return Hift(config, weights)
