"""Spectra are those of other people's code."""

from __future__ import annotations

import numpy as np
from transformers.audio_utils import mel_filter_bank, spectrogram

from duologue.engine.models.embedded.hearing.features import BANDS, FRAME, FRAME_WIDTH, OVERLAP, filters, frames


def test_the_filters_are_htks_triangles() -> None:
    theirs = mel_filter_bank(257, BANDS, 60.0, 7600.0, 16000, norm=None, mel_scale="htk")
    np.testing.assert_allclose(filters(), theirs, atol=1e-5)


def test_another_throat_moves_them() -> None:
    centres = filters(1.1).argmax(0)
    assert (centres[5:] > filters().argmax(0)[5:]).all()


def test_a_frame_is_four_log_spectra_of_the_samples_up_to_its_end() -> None:
    sound = np.random.default_rng(1).normal(0, 0.1, OVERLAP + 6 * FRAME).astype(np.float32)
    bank = filters()
    theirs = spectrogram(sound, np.hanning(400), 400, 160, 512, power=2.0, center=False,
                         mel_filters=bank.astype(np.float64), mel_floor=1e-30)
    ours = frames(sound, bank)
    assert ours.shape == (6, FRAME_WIDTH)
    np.testing.assert_allclose(np.exp(ours.reshape(-1, BANDS) * 3.5 - 5.0) - 1e-5, theirs.T, rtol=2e-3, atol=2e-6)


def test_silence_says_nothing() -> None:
    quiet = frames(np.zeros(OVERLAP + FRAME, np.float32), filters())
    assert np.ptp(quiet) == 0
