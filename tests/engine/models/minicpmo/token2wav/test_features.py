"""The spectra of a recording against those of Kaldi, Whisper and the flow (``golden/make_features.py``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from duologue.engine.models.minicpmo.token2wav.features import code_frames, prompt_frames, speaker_frames
from tests.engine.models.minicpmo.token2wav.speech import like_speech

ERROR = 2e-4
"""Natural or decadic logarithms; theirs are of sums in single precision."""


@pytest.fixture(scope="module")
def golden() -> dict[str, NDArray[Any]]:
    with np.load(Path(__file__).parent / "golden" / "features.npz") as file:
        return dict(file)


def test_the_speaker_network_hears_kaldis_filter_banks(golden: dict[str, NDArray[Any]]) -> None:
    ours = speaker_frames(like_speech(16_000))
    assert ours.shape == golden["speaker"].shape
    assert np.abs(ours - golden["speaker"]).max() < ERROR


def test_the_tokenizer_hears_whispers_mel_frames(golden: dict[str, NDArray[Any]]) -> None:
    ours = code_frames(like_speech(16_000))
    assert ours.shape == golden["code"].shape
    assert np.abs(ours - golden["code"]).max() < ERROR


def test_the_prompts_mel_frames_are_those_the_flow_was_taught(golden: dict[str, NDArray[Any]]) -> None:
    ours = prompt_frames(like_speech(24_000), 24_000, 480, 80)
    assert ours.shape == golden["prompt"].shape
    assert np.abs(ours - golden["prompt"]).max() < ERROR
