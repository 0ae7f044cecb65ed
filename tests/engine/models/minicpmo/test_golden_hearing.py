"""What is heard equals what the released code hears, unit by unit, over 40 s and in a reference clip.

Both compute in float32 on a CPU, in another order: rows of level 0.6 are to agree to a few roundings.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from duologue.engine.models.minicpmo.checkpoint import load
from duologue.engine.models.minicpmo.hearing.ear import Ear
from duologue.engine.models.minicpmo.hearing.mel import Spectrum
from tests.engine.models.minicpmo.golden.inputs import RATE, UNITS, caller, reference
from tests.engine.models.minicpmo.golden.values import SOURCE, parts, values

ATOL = 1e-5


@pytest.fixture(scope="module")
def ear() -> Ear:
    checkpoint = load(SOURCE)
    return Ear(checkpoint.config, checkpoint.tensors("hearing"), torch.device("cpu"), torch.float32)


def units() -> list[np.ndarray[tuple[int], np.dtype[np.int16]]]:
    pcm = caller()
    return [pcm[unit * RATE:(unit + 1) * RATE] for unit in range(UNITS)]


def test_every_unit_is_ten_rows_as_the_release_hears_them(ear: Ear) -> None:
    stream = ear.stream()
    heard = [stream.hear(unit).rows for unit in units()]
    assert {rows.shape[0] for rows in heard} == {10}
    for unit, (rows, golden) in enumerate(zip(heard, values("hearing")["rows"], strict=True)):
        np.testing.assert_allclose(rows, golden, rtol=1e-4, atol=ATOL, err_msg=f"unit {unit}")


def test_mel_frames_are_the_releases_as_the_buffer_slides_and_the_norm_changes() -> None:
    spectrum = Spectrum()
    for unit, (pcm, golden) in enumerate(zip(units(), parts("hearing", "mel"), strict=True)):
        frames, spectrum = spectrum.after(pcm)
        assert frames.shape == (104, 80)
        # The first unit has no frames before it. In quiet bands a logarithm makes more of float32's rounding.
        np.testing.assert_allclose(frames[104 - len(golden):, ::10], golden, rtol=0, atol=1e-4, err_msg=f"unit {unit}")


def test_a_reference_clip_is_heard_as_the_release_hears_it(ear: Ear) -> None:
    np.testing.assert_allclose(ear.clip(reference()).rows, values("hearing")["clip"], rtol=1e-4, atol=ATOL)
