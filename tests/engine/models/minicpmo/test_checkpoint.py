"""MiniCPM-o 4.5 checkpoints: the released layout is read, and what is wrong with one is said with its file."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import pre_tokenizers
from transformers import Qwen2TokenizerFast

from duologue.engine.config import ConfigError
from duologue.engine.models.minicpmo import layout
from duologue.engine.models.minicpmo.checkpoint import Checkpoint, CheckpointOptions, load
from duologue.engine.models.minicpmo.tokens import NAMES, read_tokenizer, special_tokens


def opened(folder: Path) -> Checkpoint:
    return load(CheckpointOptions(checkpoint=folder))


def edit(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads(file.read_text())
    change(value)
    file.write_text(json.dumps(value))


def shard_of(folder: Path, name: str) -> Path:
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    return folder / str(index["weight_map"][name])


def change_tensors(file: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file)


# --- what a release looks like ---


def test_a_release_is_one_folder_of_shards_of_which_each_part_reads_its_own_by_its_consumers_names(
        stored: Path) -> None:
    index = json.loads((stored / "model.safetensors.index.json").read_text())["weight_map"]
    assert len(set(index.values())) > 1
    read = {part: dict(opened(stored).tensors(part)) for part in layout.PARTS}
    assert "model.layers.2.self_attn.q_norm.weight" in read["thinker"]
    assert "apm.layers.1.self_attn.out_proj.bias" in read["hearing"]
    assert "head_code.0.parametrizations.weight.original0" in read["talker"]
    assert {layout.PREFIX[part] + name for part in layout.PARTS for name in read[part]} == set(index)
    shard = load_file(shard_of(stored, "llm.lm_head.weight"))
    assert torch.equal(read["thinker"]["lm_head.weight"], shard["llm.lm_head.weight"])


def test_modules_that_nothing_here_runs_are_passed_over(folder: Path) -> None:
    file = shard_of(folder, "llm.lm_head.weight")
    change_tensors(file, lambda tensors: tensors.update({
        "vpm.embeddings.patch_embedding.weight": torch.zeros(2), "resampler.query": torch.zeros(3),
        "tts.model.embed_tokens.weight": torch.zeros(32_000, 96),
        "tts.projector_spk.linear1.weight": torch.zeros(96, 128)}))
    assert all(dict(opened(folder).tensors(part)) for part in layout.PARTS)


def test_keys_that_a_released_config_leaves_out_have_the_released_defaults(folder: Path) -> None:
    def shorten(config: dict[str, Any]) -> None:
        for key in ("num_mel_bins", "max_source_positions", "activation_function"):
            del config["audio_config"][key]
        for key in ("max_position_embeddings", "num_vq", "projector_type", "backbone_model"):
            del config["tts_config"][key]
        config["vision_config"] = {"hidden_size": 1152}

    before = opened(folder).config
    edit(folder / "config.json", shorten)
    assert opened(folder).config == before


def test_the_talkers_decoder_is_a_llama_with_the_released_rotation(stored: Path) -> None:
    """``LlamaConfig``'s defaults, which the released talker is built with."""
    talker = opened(stored).talker
    assert (talker.model_type, talker.rope_theta, talker.rms_norm_eps, talker.head_dim) == ("llama", 1e4, 1e-6, 32)
    assert talker.vocab_size == opened(stored).config.tts.num_audio_tokens


def test_tensors_are_read_one_at_a_time(stored: Path) -> None:
    """A checkpoint that fills the memory must still load: nothing holds on to what was handed out."""
    handed: list[weakref.ref[torch.Tensor]] = []
    for _, tensor in opened(stored).tensors("thinker"):
        handed.append(weakref.ref(tensor))
        del tensor
        assert sum(each() is not None for each in handed) <= 2


# --- tokens ---


def test_special_tokens_are_looked_up_by_their_names(stored: Path) -> None:
    checkpoint = opened(stored)
    assert {field: checkpoint.tokenizer.token_to_id(name) for field, name in NAMES.items()} \
        == checkpoint.tokens.model_dump(exclude={"forbidden"})


def test_a_token_that_the_tokenizer_lacks_is_named(folder: Path) -> None:
    file = folder / "tokenizer.json"
    file.write_text(file.read_text().replace("<|chunk_tts_eos|>", "<|somewhat_else|>"))
    with pytest.raises(ConfigError, match=r"no token <\|chunk_tts_eos\|>.*Fetch tokenizer\.json") as error:
        opened(folder)
    assert str(folder) in str(error.value)


def test_forbidden_are_the_pad_and_the_bad_tokens_of_the_tokenizers_config(folder: Path) -> None:
    edit(folder / "tokenizer_config.json", lambda config: config.update(bad_token_ids=[7, 9, 9]))
    tokens = opened(folder).tokens
    assert tokens.forbidden == (tokens.tts_pad, 7, 9)
    edit(folder / "tokenizer_config.json", lambda config: config.update(bad_token_ids="7"))
    with pytest.raises(ConfigError, match=r"tokenizer_config\.json: bad_token_ids must be a list"):
        opened(folder)


def test_without_the_tokenizers_config_nobody_knows_what_must_not_be_said(folder: Path) -> None:
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(ConfigError, match=r"tokenizer_config\.json: cannot be read .*; MiniCPM-o 4\.5 has one"):
        opened(folder)


def test_an_id_beyond_the_vocabulary_is_refused(folder: Path) -> None:
    edit(folder / "tokenizer_config.json", lambda config: config.update(bad_token_ids=[320]))
    with pytest.raises(ConfigError, match=r"320, but vocab_size in config\.json is 320"):
        opened(folder)


TEXTS = ["<|im_start|>system\nStreaming Omni Conversation.\n<|audio_start|>",
         "you're 12 <unit> Grüße, 世界!\n\n  e\u0301",
         "<tool_call>{}</tool_call><|chunk_eos|></unit>"]


@pytest.fixture
def parted(tmp_path: Path) -> Path:
    """A tokenizer as the release has it: a vocabulary, merges, and tokens added to it."""
    folder = tmp_path / "parted"
    folder.mkdir()
    vocabulary = {byte: id for id, byte in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    merges = [("y", "o"), ("yo", "u"), ("Ġ", "C"), ("r", "e"), ("'", "re"), ("Ġ", "Ġ")]
    vocabulary |= {"".join(pair): 256 + i for i, pair in enumerate(merges)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
    added = [("<|endoftext|>", True), *((name, True) for name in NAMES.values()), ("<tool_call>", False),
             ("</tool_call>", False)]
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "Qwen2Tokenizer", "bad_token_ids": [3],
        "added_tokens_decoder": {str(len(vocabulary) + i): {
            "content": content, "special": special, "normalized": False, "lstrip": False, "rstrip": False,
            "single_word": False} for i, (content, special) in enumerate(added)}}))
    return folder


@pytest.mark.parametrize("text", TEXTS)
def test_a_tokenizer_in_parts_is_put_together_as_transformers_does(parted: Path, text: str) -> None:
    ours, theirs = read_tokenizer(parted), Qwen2TokenizerFast.from_pretrained(parted)
    ids = ours.encode(text, add_special_tokens=False).ids
    assert ids == theirs.encode(text, add_special_tokens=False)
    assert ours.decode(ids, skip_special_tokens=True) == theirs.decode(ids, skip_special_tokens=True)
    assert special_tokens(ours, parted).forbidden[1:] == (3,)


@pytest.mark.parametrize(("change", "says"), [
    (lambda added: added.update({"999": added.pop("262")}), r"token <unit> has id 263, but .* comes 262"),
    (lambda added: added.update({"262": {}}), r"added_tokens_decoder must give each added token's content"),
])
def test_added_tokens_that_do_not_fit_are_refused(parted: Path, change: Callable[[dict[str, Any]], object],
                                                  says: str) -> None:
    edit(parted / "tokenizer_config.json", lambda config: change(config["added_tokens_decoder"]))
    with pytest.raises(ConfigError, match=says):
        read_tokenizer(parted)


def test_a_folder_without_a_tokenizer_is_named(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match=r"has no tokenizer\.json, and none can be made of vocab\.json"):
        opened(folder)


# --- what is wrong is said ---


CONFIG_FAULTS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another model": (lambda c: c.update(model_type="qwen3"), r"model_type is 'qwen3'; only 'minicpmo' can be run"),
    "another version": (lambda c: c.update(version=2.6), r"this is version 2\.6 of MiniCPM-o; only 4\.5 can be run"),
    "no version": (lambda c: c.pop("version"), r"this is version None of MiniCPM-o"),
    "a size is missing": (lambda c: c.pop("hidden_size"), r"llm\.hidden_size: Field required"),
    "no streaming": (lambda c: c.update(stream_input=False), r"stream_input: Input should be True"),
    "scaled positions": (lambda c: c.update(rope_scaling={"type": "yarn"}), r"rope_scaling is set"),
    "another projector": (lambda c: c["tts_config"].update(projector_type="minicpm"), r"tts_config\.projector_type"),
    "more codebooks": (lambda c: c["tts_config"].update(num_vq=4), r"tts_config\.num_vq: Input should be 1"),
    "another talker": (lambda c: c["tts_config"].update(llm_dim=64), r"llm_dim is 64, but hidden_size is 128"),
    "too few texts": (lambda c: c["tts_config"].update(num_text_tokens=300), r"num_text_tokens is 300, less than"),
    "audio_bos out of reach": (lambda c: c["tts_config"].update(audio_bos_token_id=324),
                               r"audio_bos_token_id is 324, but num_text_tokens is 324"),
    "another encoder": (lambda c: c["audio_config"].update(encoder_ffn_dim=128), r"must be 4 \* d_model"),
    "heads that do not fit": (lambda c: c.update(num_key_value_heads=3), r"num_attention_heads is 4, which 3 does not"),
}


@pytest.mark.parametrize("name", CONFIG_FAULTS)
def test_a_config_that_cannot_be_run_is_refused_with_the_file_and_the_reason(folder: Path, name: str) -> None:
    change, says = CONFIG_FAULTS[name]
    edit(folder / "config.json", change)
    with pytest.raises(ConfigError, match=rf"config\.json: .*{says}") as error:
        opened(folder)
    assert str(folder) in str(error.value)


@pytest.mark.parametrize(("part", "name", "change", "says"), [
    ("thinker", "llm.model.norm.weight", lambda t, n: t.pop(n), r"lacks tensor llm\.model\.norm\.weight \[128\]"),
    ("talker", "tts.emb_text.weight", lambda t, n: t.update({n: torch.zeros(320, 96)}),
     r"tensor tts\.emb_text\.weight is \[320, 96\], its config says \[324, 96\]"),
    ("hearing", "apm.conv1.bias", lambda t, n: t.update({"apm.conv3.bias": torch.zeros(2)}),
     r"has tensor apm\.conv3\.bias, which its config has no place for"),
    ("hearing", "apm.conv1.bias", lambda t, n: t.update({"llm.model.layers.9.mlp.up_proj.weight": torch.zeros(2)}),
     r"has tensor llm\.model\.layers\.9"),
])
def test_a_tensor_that_does_not_fit_is_named_with_its_file(
        folder: Path, part: layout.Part, name: str, change: Callable[[dict[str, torch.Tensor], str], object],
        says: str) -> None:
    file = shard_of(folder, name)
    change_tensors(file, lambda tensors: change(tensors, name))
    with pytest.raises(ConfigError, match=says) as error:
        dict(opened(folder).tensors(part))
    assert str(folder) in str(error.value)


@pytest.mark.parametrize("content", [None, b"PK\x03\x04 a pickle, say"])
def test_only_safetensors_are_read(folder: Path, content: bytes | None) -> None:
    file = shard_of(folder, "llm.lm_head.weight")
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=rf"{file.name}: cannot be read as safetensors"):
        dict(opened(folder).tensors("thinker"))


def test_a_release_whose_codec_was_not_converted_names_the_command_and_still_has_its_other_parts(folder: Path) -> None:
    (folder / "token2wav" / "config.json").unlink()
    checkpoint = opened(folder)
    assert dict(checkpoint.tensors("hearing"))
    for read in (lambda: checkpoint.token2wav, lambda: dict(checkpoint.token2wav_tensors())):
        with pytest.raises(ConfigError, match=r"python -m duologue\.engine\.models\.minicpmo\.token2wav\.convert "):
            read()


def test_a_codec_of_other_codes_than_the_talkers_is_refused(folder: Path) -> None:
    edit(folder / "token2wav" / "config.json", lambda config: config["flow"].update(vocab_size=5000))
    with pytest.raises(ConfigError, match=r"flow\.vocab_size is 5000, but the talker writes 6561 codes"):
        assert opened(folder).token2wav


def test_a_codecs_tensor_that_does_not_fit_is_named_with_its_file(folder: Path) -> None:
    file = folder / "token2wav" / "hift.safetensors"
    change_tensors(file, lambda tensors: tensors.pop("conv_pre.weight"))
    with pytest.raises(ConfigError, match=r"hift\.safetensors: lacks tensor conv_pre\.weight"):
        dict(opened(folder).token2wav_tensors())
