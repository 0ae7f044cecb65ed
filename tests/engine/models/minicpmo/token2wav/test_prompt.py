from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from duologue.engine.config import ConfigError
from duologue.engine.models.minicpmo.token2wav.config import TINY
from duologue.engine.models.minicpmo.token2wav.features import code_frames, prompt_frames, speaker_frames
from duologue.engine.models.minicpmo.token2wav.prompt import PromptReader, made
from tests.engine.models.minicpmo.token2wav import onnx_files
from tests.engine.models.minicpmo.token2wav.speech import like_speech

CONFIG = TINY.model_copy(update={"flow": TINY.flow.model_copy(update={"spk_embed_dim": onnx_files.SPEAKER_SIZE})})


@pytest.mark.parametrize("seconds", [1.0, 1.33, 3.007])
def test_a_recording_becomes_codes_two_frames_for_each_and_a_speaker(tmp_path: Path, seconds: float) -> None:
    onnx_files.write(tmp_path)
    hearing, speaking = like_speech(16_000, seconds), like_speech(24_000, seconds)
    prompt = PromptReader(tmp_path, CONFIG).read(hearing, speaking, "a.wav")
    frames = code_frames(hearing)[:len(hearing) // 640 * 4]
    assert prompt.codes.tolist() == frames.reshape(-1, 4, 128).max(1).argmax(1).tolist()
    assert prompt.codes.dtype == torch.int64
    assert prompt.mel.shape == (2 * len(prompt.codes), TINY.flow.output_size)
    mel = prompt_frames(speaking, 24_000, 480, 80)
    own = min(len(mel), len(prompt.mel))
    assert np.array_equal(prompt.mel[:own].numpy(), mel[:own])
    assert np.allclose(prompt.speaker.numpy(), speaker_frames(hearing).mean(0), atol=1e-5)


def test_frames_that_the_recording_lacks_are_its_last(tmp_path: Path) -> None:
    onnx_files.write(tmp_path)
    prompt = PromptReader(tmp_path, CONFIG).read(like_speech(16_000, 2.0), like_speech(24_000, 1.9), "a.wav")
    assert len(prompt.mel) == 100
    assert torch.equal(prompt.mel[95:], prompt.mel[94:95].expand(5, -1))


def test_networks_that_are_absent_or_are_none_are_refused_by_their_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"speech_tokenizer_v2_25hz\.onnx: absent.*copy it from assets/token2wav"):
        PromptReader(tmp_path, CONFIG)
    onnx_files.write(tmp_path)
    (tmp_path / "campplus.onnx").write_bytes(b"no network")
    with pytest.raises(ConfigError, match=r"campplus\.onnx: no ONNX network"):
        PromptReader(tmp_path, CONFIG)


def test_networks_of_another_checkpoint_are_refused(tmp_path: Path) -> None:
    onnx_files.write(tmp_path)
    sound = like_speech(16_000), like_speech(24_000)
    with pytest.raises(ConfigError, match=r"campplus\.onnx: tells speakers apart by 80 numbers, but .* 192"):
        PromptReader(tmp_path, TINY).read(*sound, "a.wav")
    few = CONFIG.model_copy(update={"flow": CONFIG.flow.model_copy(update={"vocab_size": 2})})
    with pytest.raises(ConfigError, match=r"a\.wav: .* makes no codes of it that the flow knows"):
        PromptReader(tmp_path, few).read(*sound, "a.wav")


def test_made_up_prompts_have_the_right_shapes_and_differ() -> None:
    one, other = made(TINY, 0), made(TINY, 1)
    assert one.mel.shape == (2 * len(one.codes), TINY.flow.output_size)
    assert one.speaker.shape == (TINY.flow.spk_embed_dim,)
    assert not torch.equal(one.speaker, other.speaker)
    assert torch.equal(one.mel, made(TINY, 0).mel)
