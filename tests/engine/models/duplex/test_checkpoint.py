"""Duplex checkpoints: random ones have the documented layout, and what is wrong with one is said with its file."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from duologue.engine.config import ConfigError
from duologue.engine.models.duplex import layout, random
from duologue.engine.models.duplex.checkpoint import Checkpoint, CheckpointOptions, load


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints") / "tiny"
    random.write(folder, "tiny", seed=3)
    return folder


@pytest.fixture
def folder(stored: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(stored, tmp_path / "checkpoint"))


def opened(folder: Path) -> Checkpoint:
    return load(CheckpointOptions(checkpoint=folder))


def test_random_weights_are_the_same_stored_and_made_where_they_are_used(stored: Path) -> None:
    made = load(CheckpointOptions(load_format="random", size="tiny", seed=3))
    read = opened(stored)
    assert (made.config, made.thinker, made.talker) == (read.config, read.thinker, read.talker)
    assert made.tokenizer.to_str() == read.tokenizer.to_str()
    assert (made.folder, read.folder) == (None, stored)
    for part in layout.PARTS:
        ours, theirs = dict(made.tensors(part)), dict(read.tensors(part))
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_another_seed_gives_other_weights() -> None:
    def embedding(seed: int) -> torch.Tensor:
        checkpoint = load(CheckpointOptions(load_format="random", seed=seed))
        return dict(checkpoint.tensors("thinker"))["model.embed_tokens.weight"]

    assert torch.equal(embedding(1), embedding(1))
    assert not torch.equal(embedding(1), embedding(2))


@pytest.mark.parametrize("part", ["thinker", "talker"])
def test_a_decoder_folder_is_a_stock_one(stored: Path, part: layout.Part) -> None:
    model, info = Qwen3ForCausalLM.from_pretrained(stored / part, output_loading_info=True)
    assert not info["missing_keys"]
    assert set(info["unexpected_keys"]) == ({"emb_text.weight", "projector.weight"} if part == "talker" else set())
    config = getattr(opened(stored), part)
    assert model.config.rope_parameters["rope_theta"] == config.rope_theta
    read = dict(opened(stored).tensors(part))
    state = model.state_dict()
    assert all(torch.equal(state[name], read[name]) for name in state)


def test_the_tokenizer_is_read_by_transformers_and_knows_the_units_tokens(stored: Path) -> None:
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(stored / "tokenizer.json"))
    checkpoint = opened(stored)
    tokens = checkpoint.config.tokens
    text = "Grüße, 世界!"
    ids = tokenizer.encode(f"<unit>{text}<|chunk_eos|></unit>")
    assert ids == checkpoint.tokenizer.encode(f"<unit>{text}<|chunk_eos|></unit>").ids
    assert ids[0] == tokens.unit
    assert ids[-2:] == [tokens.chunk_eos, tokens.unit_end]
    assert len(ids) == 3 + len(text.encode())
    assert checkpoint.tokenizer.decode(ids[1:-2]) == text
    assert {checkpoint.tokenizer.id_to_token(id) for _, id in tokens} \
        == {"<unit>", "</unit>", "<|listen|>", "<|speak|>", "<|turn_eos|>", "<|chunk_eos|>", "<|im_start|>",
            "<|im_end|>"}


@pytest.mark.parametrize("size", ["tiny", "minicpmo45"])
def test_every_id_but_the_units_tokens_has_a_text(size: random.Size) -> None:
    made = random.shape(size)
    tokenizer = random.tokenizer(made)
    assert tokenizer.get_vocab_size() == made.thinker.vocab_size
    special = {id for _, id in made.config.tokens}
    rest = [id for id in range(made.thinker.vocab_size) if id not in special]
    assert all(tokenizer.decode_batch([[id] for id in rest]))


def test_the_real_sizes_are_those_of_minicpm_o() -> None:
    made = random.shape("minicpmo45")
    count = sum(torch.Size(shape).numel() for shape in layout.decoder_tensors(made.thinker).values())
    # Qwen3-8B has 8.19 B parameters with its vocabulary of 151,936; this one's has 188 rows fewer, twice.
    assert count == 8_190_735_360 - 2 * 188 * 4096
    assert made.talker.num_hidden_layers == 20
    assert made.config.tokens.listen == 151_705


def test_the_command_line_writes_a_checkpoint(tmp_path: Path, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["random", str(tmp_path / "made"), "--seed", "3"])
    random.main()
    for file in stored.rglob("*"):
        if file.is_file():
            assert (tmp_path / "made" / file.relative_to(stored)).read_bytes() == file.read_bytes()


def test_a_sharded_folder_is_read_by_its_index(folder: Path, stored: Path) -> None:
    file = folder / "thinker" / "model.safetensors"
    tensors = load_file(file)
    names = sorted(tensors)
    shards = {"a.safetensors": names[:20], "b.safetensors": names[20:]}
    for shard, part in shards.items():
        save_file({name: tensors[name] for name in part}, folder / "thinker" / shard)
    file.unlink()
    index = folder / "thinker" / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {name: shard for shard, part in shards.items() for name in part}}))
    read = dict(opened(folder).tensors("thinker"))
    assert all(torch.equal(read[name], tensor) for name, tensor in opened(stored).tensors("thinker"))
    index.write_text("[]")
    with pytest.raises(ConfigError, match=r"index\.json: not an index"):
        dict(opened(folder).tensors("thinker"))


# --- what is wrong is said ---


def edit(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads(file.read_text())
    change(value)
    file.write_text(json.dumps(value))


CONFIG_FAULTS: dict[str, tuple[str, Callable[[dict[str, Any]], object], str]] = {
    "another family": ("config.json", lambda c: c.update(model_type="minicpmo"),
                       "model_type is 'minicpmo'; only 'duologue_duplex'"),
    "another decoder": ("thinker/config.json", lambda c: c.update(model_type="llama"),
                        "model_type is 'llama'; only 'qwen3'"),
    "no model_type": ("talker/config.json", lambda c: c.pop("model_type"), "model_type is None"),
    "a size is missing": ("thinker/config.json", lambda c: c.pop("hidden_size"), "hidden_size: Field required"),
    "an unknown key": ("config.json", lambda c: c.update(colour="red"), "colour: Extra inputs"),
    "a token too large": ("config.json", lambda c: c["tokens"].update(listen=272),
                          "tokens.listen is 272, but the thinker's vocab_size is 272"),
    "another codec": ("config.json", lambda c: c["codec"].update(codebook_size=100),
                      "vocab_size is 256, but the codec's 100 codes make 102"),
    "heads that do not group": ("thinker/config.json", lambda c: c.update(num_key_value_heads=3),
                                r"num_attention_heads \(4\) is no multiple of num_key_value_heads \(3\)"),
}


@pytest.mark.parametrize("name", CONFIG_FAULTS)
def test_a_config_that_cannot_be_run_is_refused_with_the_file_and_the_reason(folder: Path, name: str) -> None:
    file, change, says = CONFIG_FAULTS[name]
    edit(folder / file, change)
    with pytest.raises(ConfigError, match=says) as error:
        opened(folder)
    assert str(folder) in str(error.value)


@pytest.mark.parametrize(("text", "says"), [("{", "not JSON"), ("[]", "must hold a JSON object"),
                                            (None, "cannot be read")])
def test_a_file_that_is_no_config_is_named(folder: Path, text: str | None, says: str) -> None:
    file = folder / "talker" / "config.json"
    file.unlink()
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=rf"talker.config\.json: {says}"):
        opened(folder)


def test_a_missing_tokenizer_is_named(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match=r"tokenizer\.json: no tokenizer"):
        opened(folder)


@pytest.mark.parametrize(("change", "says"), [
    (lambda t: t.pop("model.norm.weight"), r"lacks tensor model\.norm\.weight \[128\]"),
    (lambda t: t.update({"model.norm.weight": torch.zeros(64)}),
     r"tensor model\.norm\.weight is \[64\], its config says \[128\]"),
    (lambda t: t.update({"model.layers.4.mlp.up_proj.weight": torch.zeros(2)}),
     r"has tensor model\.layers\.4\.mlp\.up_proj\.weight, which its config has no place for"),
])
def test_a_tensor_that_does_not_fit_is_named_with_its_file(
        folder: Path, change: Callable[[dict[str, torch.Tensor]], object], says: str) -> None:
    file = folder / "thinker" / "model.safetensors"
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file)
    with pytest.raises(ConfigError, match=says) as error:
        dict(opened(folder).tensors("thinker"))
    assert str(file) in str(error.value)


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 a pickle, say"])
def test_only_safetensors_are_read(folder: Path, content: bytes | None) -> None:
    file = folder / "codec" / "model.safetensors"
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"codec.model\.safetensors: cannot be read as safetensors"):
        dict(opened(folder).tensors("codec"))


@pytest.mark.parametrize("options", [{}, {"checkpoint": "somewhere", "load_format": "random"}])
def test_weights_come_from_one_place(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="or `load_format: random`, and not both"):
        CheckpointOptions(**options)
