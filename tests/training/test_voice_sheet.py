"""The listening sheet's picture."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from training.voice import sheet
from training.voice.sheet import beside, png, spectrogram, write


def test_another_reader_sees_the_picture(tmp_path: Path) -> None:
    for width in (17, 18):
        picture = np.random.default_rng(width).integers(0, 16, (9, width)).astype(np.uint8)
        file = tmp_path / f"{width}.png"
        file.write_bytes(png(picture))
        with av.open(str(file)) as container:
            frame = next(container.decode(video=0)).to_ndarray(format="gray")
        # 15 is white: each level is 17 of 255.
        assert np.array_equal(frame, picture * 17)


def test_a_tone_is_dark_at_its_frequency() -> None:
    tone = (np.sin(np.arange(8000) * 2 * np.pi * 2000 / 16_000) * 9000).astype(np.int16)
    picture = spectrogram(tone)
    assert picture.shape == (128, (8000 - 400) // 80 + 1)
    # 128 rows of 62.5 Hz, from the top down.
    assert set(127 - picture.argmin(axis=0)) <= {31, 32}
    assert picture[:64].min() == 15


def test_pictures_stand_beside_and_above_each_other() -> None:
    small, large = np.zeros((2, 3), np.uint8), np.ones((4, 5), np.uint8)
    row = beside([small, large], 1)
    assert row.shape == (4, 3 + 8 + 5)
    assert np.array_equal(row[:2, :3], small)
    assert np.array_equal(row[:, 11:], large)
    assert (row[2:, :11] == 15).all()
    assert beside([small, large], 0).shape == (2 + 8 + 4, 5)


@pytest.mark.component
def test_a_sentence_too_long_for_the_repository_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheet, "SENTENCES", {"long": "One, two, three, four, five, six, seven, eight, nine."})
    with pytest.raises(ValueError, match="choose a shorter sentence"):
        write(tmp_path)
