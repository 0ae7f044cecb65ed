from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from duologue.engine.config import ConfigError
from duologue.engine.models.minicpmo.token2wav.config import TINY, Token2wavConfig
from duologue.engine.models.minicpmo.token2wav.convert import convert, main
from duologue.engine.models.minicpmo.token2wav.prompt import ONNX_FILES
from tests.engine.models.minicpmo.token2wav import released_folder, small


@pytest.mark.parametrize("names", released_folder.FACTORS)
def test_a_released_folder_becomes_safetensors_that_say_the_same(tmp_path: Path, names: str) -> None:
    assets, out = released_folder.write(tmp_path / "assets", names), tmp_path / "deep" / "token2wav"
    convert(assets, out)
    assert Token2wavConfig.model_validate(json.loads((out / "config.json").read_text())) == TINY
    flow, hift = load_file(out / "flow.safetensors"), load_file(out / "hift.safetensors")
    assert flow.keys() == small.part("flow").keys()
    assert all(torch.equal(flow[name], tensor) for name, tensor in small.part("flow").items())
    assert hift.keys() == small.part("hift").keys()
    assert all((hift[name] - tensor).abs().max() <= 1e-6 * tensor.abs().max()
               for name, tensor in small.part("hift").items())
    assert all((out / name).read_bytes() == (assets / name).read_bytes() for name in ONNX_FILES)


def test_what_the_yaml_leaves_out_is_as_the_released_classes_have_it(tmp_path: Path) -> None:
    assets = released_folder.write(tmp_path / "assets")
    text = released_folder.FLOW_YAML.replace("  vocab_size: 6561\n", "")
    (assets / "flow.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"flow\.pt: tensor input_embedding\.weight is \[6561, 32\], "
                                          r"its config says \[5121, 32\]"):
        convert(assets, tmp_path / "out")


def test_the_folder_may_be_converted_in_place(tmp_path: Path) -> None:
    assets = released_folder.write(tmp_path / "assets")
    before = {name: (assets / name).read_bytes() for name in ONNX_FILES}
    convert(assets, assets)
    assert {name: (assets / name).read_bytes() for name in ONNX_FILES} == before


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self._file,)


def test_nothing_that_is_pickled_or_described_is_run(tmp_path: Path) -> None:
    assets, trap = released_folder.write(tmp_path / "assets"), tmp_path / "sprung"
    (assets / "flow.pt").write_bytes(pickle.dumps({"a": Trap(trap)}, protocol=2))
    with pytest.raises(ConfigError, match=r"flow\.pt: is not a file of tensors alone, and nothing else is unpickled"):
        convert(assets, tmp_path / "out")
    torch.save({"a": Trap(trap)}, assets / "flow.pt")
    with pytest.raises(ConfigError, match=r"flow\.pt: is not a file of tensors alone"):
        convert(assets, tmp_path / "out")
    (assets / "flow.yaml").write_text(f"flow: !!python/object/apply:pathlib.Path.touch [{trap}]\n")
    with pytest.raises(ConfigError, match=r"flow\.yaml"):
        convert(assets, tmp_path / "out")
    assert not trap.exists()
    assert not (tmp_path / "out").exists()


def test_an_older_release_is_told_what_to_fetch(tmp_path: Path) -> None:
    assets = released_folder.write(tmp_path / "assets")
    (assets / "config.yaml").unlink()
    with pytest.raises(ConfigError, match=r"config\.yaml: absent\. This folder has the vocoder of an older release, "
                                          r"which cannot stream: fetch config\.yaml and hift\.pt"):
        convert(assets, tmp_path / "out")


@pytest.mark.parametrize(("change", "message"), [
    (lambda tensors: tensors.pop("conv_post.bias"), r"hift\.pt: lacks tensor conv_post\.bias \[18\]"),
    (lambda tensors: tensors.update({"conv_post.bias": torch.zeros(4)}),
     r"hift\.pt: tensor conv_post\.bias is \[4\], its config says \[18\]"),
    (lambda tensors: tensors.update({"extra": torch.zeros(4)}), r"hift\.pt: has tensor extra, which its config has no"),
    (lambda tensors: tensors.update({"step": 4}), r"hift\.pt: must hold tensors by name"),
])
def test_wrong_tensors_are_named_with_the_file_and_what_was_expected(
        tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str) -> None:
    assets = released_folder.write(tmp_path / "assets")
    tensors = released_folder.factored()
    change(tensors)
    torch.save(tensors, assets / "hift.pt")
    with pytest.raises(ConfigError, match=message):
        convert(assets, tmp_path / "out")


@pytest.mark.parametrize(("file", "old", "new", "message"), [
    ("flow.yaml", "CausalMaskedDiffWithXvec", "MaskedDiff", r"flow\.yaml: flow is a MaskedDiff; only a Causal"),
    ("flow.yaml", "flow: !new", "river: !new", r"flow\.yaml: has no object 'flow'"),
    ("flow.yaml", "input_layer: linear", "input_layer: conv2d",
     r"flow\.yaml: encoder: input_layer is 'conv2d'; only 'linear'"),
    ("flow.yaml", "input_size: !ref <width>\n  output", "input_size: !ref <twice>\n  output",
     r"flow\.yaml: cannot follow the reference '<width> \* 2'; write the value in its place"),
    ("flow.yaml", "width: 32", "width: !ref <width>", r"flow\.yaml: cannot follow the reference '<width>'"),
    ("flow.yaml", "attention_heads: 2", "attention_heads: 3", r"must be an even multiple of attention_heads"),
    ("flow.yaml", "flow:", "\tflow:", r"flow\.yaml: not YAML"),
    ("config.yaml", "CausalHiFTGenerator", "HiFTGenerator", r"config\.yaml: hift is a HiFTGenerator; only a Causal"),
    ("config.yaml", "fmax: 8000", "fmax: 12000",
     r"config\.yaml: feat_extractor: fmax is 12000; the flow's frames have 8000"),
    ("config.yaml", "upsample_rates: [8, 5, 3]", "upsample_rates: [8, 5, 4]", r"are 32000 Hz, not hift\.sampling_rate"),
])
def test_a_config_that_describes_something_else_is_refused_in_a_sentence(
        tmp_path: Path, file: str, old: str, new: str, message: str) -> None:
    assets = released_folder.write(tmp_path / "assets")
    text = (assets / file).read_text()
    assert old in text
    (assets / file).write_text(text.replace(old, new))
    with pytest.raises(ConfigError, match=message):
        convert(assets, tmp_path / "out")


@pytest.mark.parametrize("name", ["flow.yaml", "flow.pt", "hift.pt", *ONNX_FILES])
def test_a_file_that_is_absent_is_named(tmp_path: Path, name: str) -> None:
    assets = released_folder.write(tmp_path / "assets")
    (assets / name).unlink()
    with pytest.raises(ConfigError, match=name):
        convert(assets, tmp_path / "out")


def test_the_command_ends_with_the_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assets = released_folder.write(tmp_path / "assets")
    monkeypatch.setattr("sys.argv", ["convert", str(assets), str(tmp_path / "out")])
    main()
    assert (tmp_path / "out" / "config.json").exists()
    (assets / "config.yaml").unlink()
    with pytest.raises(SystemExit, match="older release"):
        main()
