"""Opens a decoder's stock folder for the light runner."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict
from safetensors import SafetensorError, deserialize

from duologue.engine.config import ConfigError
from duologue.engine.models.duplex.config import DecoderConfig
from duologue.engine.models.duplex.layout import decoder_tensors
from duologue.engine.models.stored import checked, json_object
from duologue.engine.runners.base import Rows
from duologue.engine.runners.numpy.blas import one_thread
from duologue.engine.runners.numpy.runner import NumpyOptions, NumpyRunner


class _Rope(BaseModel):
    """Where transformers 5 writes what ``rope_theta`` is in older configs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rope_type: Literal["default"] = "default"
    rope_theta: float


class _StockConfig(DecoderConfig):
    """What a stock ``config.json`` may ask for besides, and must not: it would be computed differently."""

    rope_parameters: _Rope | None = None
    rope_scaling: None = None
    hidden_act: Literal["silu"] = "silu"
    attention_bias: Literal[False] = False
    mlp_bias: Literal[False] = False
    use_sliding_window: Literal[False] = False


def open_numpy(folder: Path, options: NumpyOptions) -> NumpyRunner:
    """Open the decoder in ``folder``, no longer in its sessions than it goes; this process's numpy has one thread then.

    The folder is as Hugging Face's ``save_pretrained`` writes one: ``config.json`` and ``model.safetensors``. Raises
    ``ConfigError`` when either cannot be used.
    """
    one_thread()
    config = _config(folder / "config.json")
    if "max_length" not in options.model_fields_set:
        options = options.model_copy(update={"max_length": min(options.max_length, config.max_position_embeddings)})
    return NumpyRunner(config, _tensors(folder / "model.safetensors", config), options)


def _config(file: Path) -> DecoderConfig:
    config = checked(file, json_object(file, "a decoder"), _StockConfig)
    if config.num_attention_heads % config.num_key_value_heads:
        raise ConfigError(f"{file}: num_attention_heads ({config.num_attention_heads}) is no multiple of "
                          f"num_key_value_heads ({config.num_key_value_heads})")
    if config.rope_parameters is None:
        return config
    return config.model_copy(update={"rope_theta": config.rope_parameters.rope_theta})


def _tensors(file: Path, config: DecoderConfig) -> dict[str, Rows]:
    try:
        stored: dict[str, Any] = dict(deserialize(file.read_bytes()))  # type: ignore[no-untyped-call]
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}); a decoder has one") from None
    except SafetensorError as error:
        raise ConfigError(f"{file}: cannot be read as safetensors: {error}") from None
    wanted = decoder_tensors(config)
    for name in stored:
        if name.startswith("model.") and name not in wanted:
            raise ConfigError(f"{file}: has tensor {name}, which its config has no place for")
    return {name: _float32(file, name, stored[name]) for name in wanted if name in stored}


def _float32(file: Path, name: str, stored: dict[str, Any]) -> Rows:
    data, shape = stored["data"], stored["shape"]
    if stored["dtype"] == "BF16":
        # It is the upper half of a float32.
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    if stored["dtype"] not in ("F16", "F32"):
        raise ConfigError(f"{file}: tensor {name} is stored as {stored['dtype']}; this runner reads F32, F16 and BF16")
    return np.frombuffer(data, "<f2" if stored["dtype"] == "F16" else "<f4").astype(np.float32).reshape(shape)
