from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from duologue.engine.config import ConfigError
from duologue.engine.models.minicpmo.voices import ReferenceOptions, Voices, require
from tests.engine.models.minicpmo.token2wav.speech import like_speech, write_wav


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    return {name: write_wav(tmp_path / f"{name}.wav", gain * like_speech(16_000, 2.0), 16_000)
            for name, gain in (("alto", 0.5), ("bass", 1.0))}


def test_a_voice_is_given_as_its_reference_at_16_khz(files: dict[str, Path]) -> None:
    voices = Voices(ReferenceOptions(voices=files), None)
    pcm = voices.load("bass")
    assert pcm is not None
    assert pcm.dtype == np.int16
    assert np.abs(pcm / 32768 - like_speech(16_000, 2.0)).max() < 2e-4
    assert voices.load("bass") is pcm
    assert len(voices.samples("bass", 24_000)) == 48_000


def test_who_asks_for_no_voice_or_an_unknown_one_gets_the_default_and_each_name_is_logged_once(
        files: dict[str, Path], caplog: pytest.LogCaptureFixture) -> None:
    for options, default in ((ReferenceOptions(voices=files), "alto"),
                             (ReferenceOptions(voices=files, default_voice="bass"), "bass")):
        voices = Voices(options, None)
        with caplog.at_level(logging.WARNING):
            caplog.clear()
            assert [voices.resolve(name) for name in ("", "marin", "marin", "cedar", "alto")] == [
                default, default, default, default, "alto"]
        assert [("marin" in line, "cedar" in line) for line in caplog.messages] == [(True, False), (False, True)]


def test_names_that_callers_make_up_do_not_fill_the_log(files: dict[str, Path],
                                                        caplog: pytest.LogCaptureFixture) -> None:
    voices = Voices(ReferenceOptions(voices=files), None)
    with caplog.at_level(logging.WARNING):
        for i in range(1000):
            voices.resolve(f"{i}" * 1000)
    assert len(caplog.messages) == 100
    assert max(map(len, caplog.messages)) < 150


def test_a_default_that_is_no_voice_is_refused(files: dict[str, Path]) -> None:
    with pytest.raises(ValidationError, match=r"default_voice: 'tenor' is not one of the voices \(alto, bass\)"):
        ReferenceOptions(voices=files, default_voice="tenor")


def test_a_bad_recording_is_refused_at_the_start_by_its_file(files: dict[str, Path], tmp_path: Path) -> None:
    bad = tmp_path / "bad.wav"
    bad.write_bytes(b"RIFF")
    with pytest.raises(ConfigError, match=r"bad\.wav: cannot be read"):
        Voices(ReferenceOptions(voices={**files, "bad": bad}), None)


def test_the_release_speaks_in_the_voice_that_comes_with_it(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    write_wav(tmp_path / "assets" / "HT_ref_audio.wav", like_speech(16_000, 2.0), 16_000)
    voices = Voices(ReferenceOptions(), tmp_path)
    assert voices.names == ("HT_ref_audio",)
    assert voices.resolve("marin") == "HT_ref_audio"
    require(voices, tmp_path)


def test_without_any_reference_random_weights_have_no_voice_and_stored_ones_ask_for_one(tmp_path: Path) -> None:
    voices = Voices(ReferenceOptions(), tmp_path)
    assert (voices.names, voices.resolve("marin"), voices.load("")) == ((), None, None)
    with pytest.raises(ConfigError, match=r"comes with no reference recording .*`voices: \{name: FILE\}`"):
        require(voices, tmp_path)
