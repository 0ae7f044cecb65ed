from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from duologue.engine.config import ConfigError
from duologue.engine.models.minicpmo.token2wav.recording import MOST_S, read
from tests.engine.models.minicpmo.token2wav.speech import like_speech, write_wav


def test_a_recording_is_read_as_it_is(tmp_path: Path) -> None:
    sound = like_speech(16_000, 1.5)
    file = write_wav(tmp_path / "a.wav", sound, 16_000)
    assert np.abs(read(file, 16_000) - sound).max() < 1e-4


@pytest.mark.parametrize(("rate", "channels"), [(8_000, 1), (44_100, 2), (48_000, 1)])
def test_any_rate_and_any_channels_become_the_rate_that_is_asked_for(tmp_path: Path, rate: int, channels: int) -> None:
    t = np.arange(2 * rate) / rate
    file = write_wav(tmp_path / "a.wav", (0.5 * np.sin(2 * np.pi * 440 * t)).astype(np.float32), rate, channels)
    sound = read(file, 24_000)
    assert abs(len(sound) - 48_000) <= 32
    spectrum = np.abs(np.fft.rfft(sound[4800:43_200]))
    assert spectrum.argmax() * 24_000 / 38_400 == 440
    assert abs(np.sqrt(np.mean(sound[4800:43_200] ** 2)) - 0.5 / np.sqrt(2)) < 0.01


def test_other_formats_are_read(tmp_path: Path) -> None:
    file = tmp_path / "a.ogg"
    with av.open(str(file), "w") as out:
        stream = out.add_stream("libopus", rate=48_000, layout="mono")
        frame = av.AudioFrame.from_ndarray((like_speech(48_000, 2.0) * 20_000).astype(np.int16)[None], "s16", "mono")
        frame.sample_rate = 48_000
        for packet in (*stream.encode(frame), *stream.encode(None)):
            out.mux(packet)
    assert abs(len(read(file, 16_000)) - 32_000) < 2000


def test_no_more_than_six_seconds_are_used(tmp_path: Path) -> None:
    file = write_wav(tmp_path / "a.wav", like_speech(16_000, 9.0), 16_000)
    assert len(read(file, 24_000)) == MOST_S * 24_000


def test_what_is_no_recording_is_refused_by_its_name(tmp_path: Path) -> None:
    short = write_wav(tmp_path / "short.wav", like_speech(16_000, 0.5), 16_000)
    with pytest.raises(ConfigError, match=r"short\.wav: is 0\.5 s long; a voice needs at least 1 s"):
        read(short, 16_000)
    text = tmp_path / "text.wav"
    text.write_text("no sound at all")
    with pytest.raises(ConfigError, match=r"text\.wav: cannot be read as a recording"):
        read(text, 16_000)
    with pytest.raises(ConfigError, match=r"absent\.wav: cannot be read as a recording"):
        read(tmp_path / "absent.wav", 16_000)
    cut = tmp_path / "cut.wav"
    cut.write_bytes(write_wav(tmp_path / "whole.wav", like_speech(16_000, 3.0), 16_000).read_bytes()[:20_000])
    with pytest.raises(ConfigError, match=r"cut\.wav: is 0\.6 s long"):
        read(cut, 16_000)


def test_a_file_without_sound_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "film.mkv"
    with av.open(str(file), "w") as out:
        stream = out.add_stream("mjpeg", rate=10)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuvj420p"
        for packet in (*stream.encode(av.VideoFrame(32, 32, "yuvj420p")), *stream.encode(None)):
            out.mux(packet)
    with pytest.raises(ConfigError, match=r"film\.mkv: has no sound"):
        read(file, 16_000)
