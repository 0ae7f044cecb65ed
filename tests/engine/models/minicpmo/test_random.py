"""Random MiniCPM-o 4.5 checkpoints: the released layout at the released size, and sessions that take turns."""

from __future__ import annotations

import json
import sys
from math import prod
from pathlib import Path

import pytest
import torch

from duologue.engine.config import PipelineConfig
from duologue.engine.messages import AppendUnit, Choice, Decision, Open, ReplyText, StageOutput, Unit
from duologue.engine.models.minicpmo import layout, random, thinker
from duologue.engine.models.minicpmo.checkpoint import Checkpoint, CheckpointOptions, load
from duologue.engine.models.minicpmo.token2wav import layout as token2wav_layout
from tests.engine.models.minicpmo.conftest import STORED_SEED
from tests.engine.models.minicpmo.golden.inputs import RATE, caller


def made(size: random.Size = "tiny", seed: int = STORED_SEED) -> Checkpoint:
    return load(CheckpointOptions(load_format="random", size=size, seed=seed))


def test_random_weights_are_the_same_stored_and_made_where_they_are_used(stored: Path) -> None:
    ours, theirs = made(), load(CheckpointOptions(checkpoint=stored))
    assert (ours.config, ours.tokens, ours.token2wav) == (theirs.config, theirs.tokens, theirs.token2wav)
    assert ours.tokenizer.to_str() == theirs.tokenizer.to_str()
    assert (ours.folder, theirs.folder) == (None, stored)
    for part in layout.PARTS:
        mine, read = dict(ours.tensors(part)), dict(theirs.tensors(part))
        assert mine.keys() == read.keys()
        assert all(torch.equal(mine[name], read[name]) for name in mine)
    mine, read = dict(ours.token2wav_tensors()), dict(theirs.token2wav_tensors())
    assert mine.keys() == read.keys()
    assert all(torch.equal(mine[name], read[name]) for name in mine)


def test_the_released_size_has_the_releases_tensors_and_parameters() -> None:
    """399 of the language model, 367 + 4 of the ears, 194 of the talker; with its eyes the release has 9.37 B."""
    config = made("released").config
    shapes = {part: layout.tensors(part, config) for part in layout.PARTS}
    assert {part: len(names) for part, names in shapes.items()} == {"thinker": 399, "hearing": 371, "talker": 189}
    assert len(layout.unread(config)) == 194 - 189
    # Qwen3-8B has 8.19 B parameters with its vocabulary of 151,936; this one's has 188 rows fewer, twice.
    assert sum(map(prod, shapes["thinker"].values())) == 8_190_735_360 - 2 * 188 * 4096
    # Whisper medium has 307.2 M in its encoder (openai/whisper: model.py), its positions included.
    encoder = sum(prod(shape) for name, shape in shapes["hearing"].items() if name.startswith("apm."))
    assert encoder == 307_216_384


def test_the_released_size_is_made_tensor_by_tensor_where_it_is_used() -> None:
    checkpoint = made("released")
    parts: tuple[layout.Part, ...] = ("hearing", "talker")
    for part in parts:
        name, tensor = next(checkpoint.tensors(part))
        assert tensor.shape == layout.tensors(part, checkpoint.config)[name]
    assert next(checkpoint.token2wav_tensors())[1].shape == (6561, 512)
    assert checkpoint.token2wav.silence_code == 4218
    assert checkpoint.tokens.listen == 151_705
    assert checkpoint.tokenizer.token_to_id("<|chunk_tts_eos|>") == 151_721
    assert checkpoint.tokenizer.get_vocab_size() == checkpoint.config.llm.vocab_size


def test_another_seed_gives_other_weights() -> None:
    one, other = (dict(made(seed=seed).tensors("hearing"))["apm.conv1.weight"] for seed in (1, 2))
    assert not torch.equal(one, other)


@pytest.mark.parametrize("seed", range(4))
def test_no_value_is_out_of_range(seed: int) -> None:
    checkpoint = made(seed=seed)
    for part in layout.PARTS:
        assert all(tensor.isfinite().all() and tensor.abs().max() < 100 for _, tensor in checkpoint.tensors(part))


def test_only_what_the_thinker_read_last_says_whether_to_listen_or_to_end() -> None:
    """The head's channel that makes turns is set by embeddings and audio rows, and written by no layer."""
    checkpoint = made()
    tensors, tokens = dict(checkpoint.tensors("thinker")), checkpoint.tokens
    head, embedded = (tensors[name][:, 0] for name in ("lm_head.weight", "model.embed_tokens.weight"))
    assert set(head.nonzero().flatten().tolist()) == {tokens.listen, tokens.chunk_eos, tokens.turn_eos}
    assert head[tokens.listen] < 0 < head[tokens.turn_eos] < head[tokens.chunk_eos]
    assert embedded.min() > 0
    assert embedded.argmax() == tokens.turn_eos
    written = [tensor[0] for name, tensor in tensors.items() if name.endswith(("o_proj.weight", "down_proj.weight"))]
    assert written
    assert not any(channel.any() for channel in written)
    rows = dict(checkpoint.tensors("hearing"))
    assert not rows["audio_projection_layer.linear2.weight"][0].any()
    assert rows["audio_projection_layer.linear2.bias"][0] == -embedded.min()


def test_sessions_take_turns() -> None:
    """They listen, begin to speak, go on for more than a unit and come to an end, with the released sampling."""
    config = PipelineConfig.model_validate({
        "name": "t", "unit_ms": 1000, "output_rate": 24_000, "stages": [
            {"name": "thinker", "role": "thinker", "model": "minicpmo.thinker", "process": "p"}]})
    stage = thinker.create({"load_format": "random"}, config)
    stage.receive(Open("s", 0, 0, 0))
    pcm, said = caller(), list[StageOutput]()
    for unit in range(30):
        stage.receive(AppendUnit("s", 0, Unit(unit, pcm[unit * RATE:(unit + 1) * RATE], 0.0)))
        while stage.ready:
            said += stage.step()
    stage.close()
    decisions = [each for each in said if isinstance(each, Decision)]
    assert len(decisions) == 30
    assert {each.choice for each in decisions} == {Choice.LISTEN, Choice.SPEAK}
    assert sum(each.choice is Choice.LISTEN for each in decisions) > 3, "not only those it is made to listen to"
    replies = [each for each in said if isinstance(each, ReplyText)]
    assert any(each.last for each in replies)
    assert any(not each.last for each in replies)


def test_the_command_line_writes_a_checkpoint(tmp_path: Path, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["random", str(tmp_path / "made"), "--seed", str(STORED_SEED)])
    random.main()
    files = {file.relative_to(stored) for file in stored.rglob("*") if file.is_file()}
    assert {file.relative_to(tmp_path / "made") for file in (tmp_path / "made").rglob("*") if file.is_file()} == files
    for file in files:
        assert (tmp_path / "made" / file).read_bytes() == (stored / file).read_bytes()
    assert {f"token2wav/{file}.safetensors" for file in token2wav_layout.FILES} <= set(map(str, files))
    size = sum((stored / file).stat().st_size for file in files)
    assert size < 16 << 20, "a few MB, so that it is made anew in every run"


def test_the_config_has_its_keys_where_the_release_has_them(stored: Path) -> None:
    config = json.loads((stored / "config.json").read_text())
    assert (config["architectures"], config["model_type"], config["version"]) == (["MiniCPMO"], "minicpmo", "4.5")
    assert (config["hidden_size"], config["init_vision"]) == (128, False)
    assert config["tts_config"]["num_audio_tokens"] == 6562
    assert "llm" not in config
    assert config["audio_config"]["encoder_layers"] == 2
