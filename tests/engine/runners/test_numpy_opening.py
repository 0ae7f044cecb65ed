"""A stock folder in the light runner: what it says, what it refuses, and that it takes no torch."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import Qwen3Config, Qwen3ForCausalLM

from duologue.engine.config import ConfigError
from duologue.engine.runners.base import Runner
from duologue.engine.runners.numpy import NumpyOptions, NumpyRunner, open_numpy
from tests.engine.runners.kinds import on_torch
from tests.engine.runners.torch_reference import finish, segment, small, tokens

GIVEN = tokens(20, 3, 40)


def write(folder: Path, keys: Mapping[str, Any] = MappingProxyType({}),
          changed: Mapping[str, torch.Tensor] = MappingProxyType({})) -> Path:
    """The small decoder's folder, with other keys or tensors."""
    config, tensors = small()
    (folder / "config.json").write_text(json.dumps({**config.model_dump(mode="json"), **keys}))
    save_file({**tensors, **changed}, folder / "model.safetensors")
    return folder


def opened(folder: Path, **options: Any) -> NumpyRunner:
    return open_numpy(folder, NumpyOptions(**options))


def said(made: Runner) -> list[int]:
    return finish(made, segment("a", 0, [GIVEN], 12))["a"].tokens


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_weights_stored_in_any_float_are_computed_in_float32(tmp_path: Path, dtype: torch.dtype) -> None:
    config, tensors = small()
    rounded = {name: tensor.to(dtype) for name, tensor in tensors.items()}
    made = opened(write(tmp_path, changed=rounded))
    told = finish(made, segment("a", 0, [GIVEN], 12, "all"))["a"]
    expected = finish(on_torch((config, rounded), max_length=512), segment("a", 0, [GIVEN], 12, "all"))["a"]
    assert told.tokens == expected.tokens
    for position, row in expected.rows.items():
        np.testing.assert_allclose(told.rows[position], row, atol=2e-5)


@pytest.mark.parametrize("tied", [True, False])
def test_what_transformers_saves_is_read_with_its_rotation(tmp_path: Path, tied: bool) -> None:
    torch.manual_seed(1)
    config, _ = small()
    stock = Qwen3ForCausalLM(Qwen3Config(
        **config.model_dump(exclude={"model_type", "rope_theta", "tie_word_embeddings"}), tie_word_embeddings=tied,
        initializer_range=0.3, rope_parameters={"rope_type": "default", "rope_theta": 100.0})).eval()
    stock.save_pretrained(tmp_path)
    expected = stock.generate(torch.tensor([GIVEN.ids]), max_new_tokens=12, do_sample=False, pad_token_id=0)
    assert said(opened(tmp_path)) == expected[0, 20:].tolist()
    assert "rope_theta" not in json.loads((tmp_path / "config.json").read_text())


def test_a_session_is_no_longer_than_the_model_goes_unless_told(tmp_path: Path) -> None:
    folder = write(tmp_path)
    assert opened(folder).capacity.max_length == 512
    assert opened(folder, max_length=100).capacity.max_length == 100
    with pytest.raises(ConfigError, match="max_length is 513, but the model goes up to 512"):
        opened(folder, max_length=513)


@pytest.mark.parametrize(("keys", "says"), [
    ({"hidden_act": "gelu"}, "hidden_act"),
    ({"attention_bias": True}, "attention_bias"),
    ({"mlp_bias": True}, "mlp_bias"),
    ({"use_sliding_window": True}, "use_sliding_window"),
    ({"rope_scaling": {"type": "yarn"}}, "rope_scaling"),
    ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0}}, "rope_parameters"),
    ({"model_type": "gpt2"}, "model_type"),
    ({"num_hidden_layers": "many"}, "num_hidden_layers"),
    ({"num_key_value_heads": 3}, r"num_attention_heads \(4\) is no multiple"),
    ({"hidden_size": 32}, r"model\.embed_tokens\.weight is \[40, 24\], its config says \[40, 32\]"),
    ({"num_hidden_layers": 3}, r"lacks tensor model\.layers\.2\.self_attn"),
    ({"num_hidden_layers": 1}, r"has tensor model\.layers\.1\..*, which its config has no place for"),
])
def test_a_config_that_asks_for_other_arithmetic_is_refused_by_its_key(
        tmp_path: Path, keys: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        opened(write(tmp_path, keys))


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"config\.json: cannot be read"):
        opened(tmp_path)
    folder = write(tmp_path, changed={"model.norm.weight": torch.ones(24, dtype=torch.int64)})
    with pytest.raises(ConfigError, match=r"model\.norm\.weight is stored as I64; this runner reads F32, F16 and BF16"):
        opened(folder)
    (folder / "model.safetensors").write_bytes(b"\x00" * 4)
    with pytest.raises(ConfigError, match=r"model\.safetensors: cannot be read as safetensors"):
        opened(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match=r"model\.safetensors: cannot be read \(No such file"):
        opened(folder)


_WITHOUT_TORCH = """
import sys
from pathlib import Path

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "tokenizers", "transformers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())

from duologue.engine.runners.base import Sampling, Segment, Tokens
from duologue.engine.runners.log import Grammar
from duologue.engine.runners.numpy import NumpyOptions, open_numpy
from duologue.engine.runners.sessions import Sessions
from duologue.engine.runners.window import WindowConfig

sessions = Sessions(open_numpy(Path(sys.argv[1]), NumpyOptions()), Grammar(terminators=True), WindowConfig())
sessions.open("a", [])
sessions.append("a", [Tokens(tuple(map(int, sys.argv[2:])))])
sessions.generate("a", Sampling(max_tokens=12))
while sessions.ready:
    for output in sessions.step():
        print(*output.tokens)
"""


def test_an_install_without_torch_runs_it(tmp_path: Path) -> None:
    folder = write(tmp_path)
    ran = subprocess.run([sys.executable, "-c", _WITHOUT_TORCH, str(folder), *map(str, GIVEN.ids)],
                         capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    assert [int(token) for token in ran.stdout.split()] == said(on_torch(small(), max_length=512))


def test_opening_leaves_numpys_blas_one_thread(tmp_path: Path) -> None:
    """As the library itself says; the wheels of the lock carry OpenBLAS by these names."""
    spec = find_spec("numpy._core._multiarray_umath")
    assert spec is not None
    library = ctypes.CDLL(spec.origin)
    library.scipy_openblas_set_num_threads64_(2)
    assert library.scipy_openblas_get_num_threads64_() == 2
    opened(write(tmp_path))
    assert library.scipy_openblas_get_num_threads64_() == 1
