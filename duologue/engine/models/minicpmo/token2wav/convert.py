"""Makes safetensors of the release's token2wav: ``python -m ...token2wav.convert ASSETS_DIR OUT_DIR``, once.

The release has its weights as pickles (``flow.pt``, ``hift.pt``) and its sizes as YAML that describes objects. Both
are read as data here, and nothing of them is run.
"""

from __future__ import annotations

import argparse
import json
import pickle
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors.torch import save_file

from duologue.engine.config import ConfigError
from duologue.engine.models.minicpmo.token2wav import released_yaml
from duologue.engine.models.minicpmo.token2wav.config import Token2wavConfig
from duologue.engine.models.minicpmo.token2wav.layout import FILES, file_tensors
from duologue.engine.models.minicpmo.token2wav.prompt import ONNX_FILES
from duologue.strict import faults

_FACTORS = ((".parametrizations.weight.original0", ".parametrizations.weight.original1"), (".weight_g", ".weight_v"))
"""How the length and the direction of a weight are named, by torch's newer and older way."""

_FLOW = {"input_size": 512, "output_size": 80, "spk_embed_dim": 192, "vocab_size": 5121}
_ENCODER = {"output_size": 256, "input_layer": "linear", "pre_lookahead_len": 3, "num_blocks": 6, "num_up_blocks": 4,
            "up_stride": 2, "up_scale_factor": 2, "attention_heads": 4, "pos_enc_layer_type": "rel_pos_espnet",
            "selfattention_layer_type": "rel_selfattn", "key_bias": True, "linear_units": 2048,
            "normalize_before": True, "activation_type": "swish"}
_SOLVER = {"inference_cfg_rate": 0.7}
_ESTIMATOR = {"mlp_ratio": 4.0, "depth": 28, "num_heads": 8, "head_dim": 64, "hidden_size": 256}
_HIFT = {"in_channels": 80, "base_channels": 512, "nb_harmonics": 8, "sampling_rate": 22050, "nsf_alpha": 0.1,
         "nsf_sigma": 0.003, "nsf_voiced_threshold": 10, "upsample_rates": [8, 8], "upsample_kernel_sizes": [16, 16],
         "istft_params": {"n_fft": 16, "hop_len": 4}, "resblock_kernel_sizes": [3, 7, 11],
         "resblock_dilation_sizes": [[1, 3, 5]] * 3, "source_resblock_kernel_sizes": [7, 11],
         "source_resblock_dilation_sizes": [[1, 3, 5]] * 2, "lrelu_slope": 0.1, "audio_limit": 0.99,
         "conv_pre_look_right": 4}
_PREDICTOR = {"num_class": 1, "in_channels": 80, "cond_channels": 512}
"""What the released classes take where the YAML says nothing."""

_MEL = {"n_fft": 1920, "num_mels": 80, "sampling_rate": 24000, "hop_size": 480, "win_size": 1920, "fmin": 0,
        "fmax": 8000, "center": False}
"""The mel frames that flow and vocoder agree on."""
_FIXED = {"input_layer": "linear", "up_scale_factor": 2, "pos_enc_layer_type": "rel_pos_espnet",
          "selfattention_layer_type": "rel_selfattn", "activation_type": "swish"}
"""Choices of the encoder of which one is made here."""


def convert(assets: Path, out: Path) -> Token2wavConfig:
    """Write ``out``, which is made, from the released folder ``assets``; raises ``ConfigError`` with the file at fault.

    ``config.json`` is written last: a folder that has one is whole.
    """
    config = _config(assets)
    for name in ONNX_FILES:
        if not (assets / name).is_file():
            raise ConfigError(f"{assets / name}: absent; the release has it, and no voice is heard without it")
    weights = {file: _weights(assets / f"{file}.pt", file_tensors(file, config)) for file in FILES}
    out.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        save_file(weights[file], out / f"{file}.safetensors", metadata={"format": "pt"})
    for name in ONNX_FILES:
        if not (out / name).exists() or not (out / name).samefile(assets / name):
            shutil.copyfile(assets / name, out / name)
    (out / "config.json").write_text(json.dumps(config.model_dump(mode="json"), indent=2) + "\n", encoding="utf-8")
    return config


def _config(assets: Path) -> Token2wavConfig:
    flow_file, hift_file = assets / "flow.yaml", assets / "config.yaml"
    if not hift_file.is_file():
        raise ConfigError(f"{hift_file}: absent. This folder has the vocoder of an older release, which cannot stream: "
                          f"fetch config.yaml and hift.pt (the causal vocoder) of the folder that minicpmo-utils 1.0.7 "
                          f"asks for, which has the older one as hift_original.pt")
    flow = released_yaml.member(released_yaml.read(flow_file, "flow"), "flow", "CausalMaskedDiffWithXvec", flow_file)
    encoder = _ENCODER | released_yaml.member(flow, "encoder", "UpsampleConformerEncoderV2", flow_file)
    solver = _SOLVER | released_yaml.member(flow, "decoder", "CausalConditionalCFM", flow_file)
    estimator = _ESTIMATOR | released_yaml.member(solver, "estimator", "DiT", flow_file)
    for key, value in _FIXED.items():
        if encoder[key] != value:
            raise ConfigError(f"{flow_file}: encoder: {key} is {encoder[key]!r}; only {value!r} can be converted")
    top = released_yaml.read(hift_file, "hift", "feat_extractor")
    hift = _HIFT | released_yaml.member(top, "hift", "CausalHiFTGenerator", hift_file)
    predictor = _PREDICTOR | released_yaml.member(hift, "f0_predictor", "CausalConvRNNF0Predictor", hift_file)
    mel = released_yaml.member(top, "feat_extractor", "mel_spectrogram", hift_file)
    for key, wanted in _MEL.items():
        if mel.get(key, wanted) != wanted:
            raise ConfigError(f"{hift_file}: feat_extractor: {key} is {mel[key]!r}; the flow's frames have {wanted!r}")
    try:
        return Token2wavConfig.model_validate({
            "flow": _FLOW | flow | {"encoder": encoder, "estimator": estimator,
                                    "inference_cfg_rate": solver["inference_cfg_rate"]},
            "hift": hift | {"f0_channels": predictor["cond_channels"]}})
    except ValidationError as error:
        raise ConfigError(f"{flow_file}, {hift_file}: {faults(error)}") from None


def _weights(file: Path, shapes: dict[str, tuple[int, ...]]) -> dict[str, torch.Tensor]:
    found = _whole(_unpickled(file))
    for name in found:
        if name not in shapes:
            raise ConfigError(f"{file}: has tensor {name}, which its config has no place for")
    for name, shape in shapes.items():
        if name not in found:
            raise ConfigError(f"{file}: lacks tensor {name} {list(shape)}")
        if tuple(found[name].shape) != shape:
            raise ConfigError(f"{file}: tensor {name} is {list(found[name].shape)}, its config says {list(shape)}")
    return {name: found[name].to(torch.float32).contiguous() for name in shapes}


def _unpickled(file: Path) -> dict[str, torch.Tensor]:
    try:
        value: Any = torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}); the release has it") from None
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise ConfigError(f"{file}: is not a file of tensors alone, and nothing else is unpickled: "
                          f"{str(error).splitlines()[0]}") from None
    if not isinstance(value, dict) or not all(isinstance(each, torch.Tensor) for each in value.values()):
        raise ConfigError(f"{file}: must hold tensors by name")
    return value


def _whole(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """``tensors`` with the factors of weights multiplied out (arXiv 1602.07868, over all but the first dimension)."""
    whole = {}
    for name, tensor in tensors.items():
        for length, direction in _FACTORS:
            if name.endswith(length):
                break
            if name.endswith(direction) and (base := name.removesuffix(direction)) + length in tensors:
                by = tensors[base + length].double() / tensor.double().flatten(1).norm(dim=1).view(-1, 1, 1)
                whole[f"{base}.weight"] = (tensor.double() * by).float()
                break
        else:
            whole[name] = tensor
    return whole


def main() -> None:
    """Convert as the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m duologue.engine.models.minicpmo.token2wav.convert",
        description="Make safetensors of the token2wav folder of a MiniCPM-o 4.5 release.")
    parser.add_argument("assets", type=Path, metavar="ASSETS_DIR", help="assets/token2wav of the release")
    parser.add_argument("out", type=Path, metavar="OUT_DIR", help="token2wav in the folder of the checkpoint")
    arguments = parser.parse_args()
    try:
        convert(arguments.assets, arguments.out)
    except ConfigError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
