"""A token2wav folder as the release has it, at the tiny size: pickles, YAML that describes objects, ONNX files."""

from __future__ import annotations

from pathlib import Path

import torch

from duologue.engine.models.minicpmo.token2wav.config import TINY
from tests.engine.models.minicpmo.token2wav import onnx_files, small

FLOW_YAML = """\
__set_seed: !apply:torch.manual_seed [1986]
width: 32
twice: !ref <width> * 2
flow: !new:cosyvoice2.flow.flow.CausalMaskedDiffWithXvec
  input_size: !ref <width>
  output_size: 80
  spk_embed_dim: 192
  output_type: mel
  vocab_size: 6561
  encoder: !new:cosyvoice2.transformer.upsample_encoder_v2.UpsampleConformerEncoderV2
    input_size: !ref <width>
    output_size: !ref <width>
    input_layer: linear
    num_blocks: 2
    num_up_blocks: 1
    attention_heads: 2
    linear_units: 64
    dropout_rate: 0.1
  decoder: !new:cosyvoice2.flow.flow_matching.CausalConditionalCFM
    inference_cfg_rate: 0.7
    estimator: !new:cosyvoice2.flow.decoder_dit.DiT
      in_channels: 320
      out_channels: 80
      mlp_ratio: 2.0
      depth: 2
      num_heads: 2
      head_dim: 16
      hidden_size: !ref <width>
"""

HIFT_YAML = """\
sample_rate: 24000
hift: !new:cosyvoice.hifigan.generator.CausalHiFTGenerator
  base_channels: 32
  nb_harmonics: 4
  sampling_rate: !ref <sample_rate>
  upsample_rates: [8, 5, 3]
  upsample_kernel_sizes: [16, 11, 7]
  istft_params: {n_fft: 16, hop_len: 4}
  resblock_kernel_sizes: [3, 5]
  resblock_dilation_sizes: [[1, 3], [1, 3]]
  source_resblock_kernel_sizes: [3, 3, 5]
  source_resblock_dilation_sizes: [[1, 3], [1, 3], [1, 3]]
  f0_predictor: !new:cosyvoice.hifigan.f0_predictor.CausalConvRNNF0Predictor
    num_class: 1
    in_channels: 80
    cond_channels: 32
feat_extractor: !name:matcha.utils.audio.mel_spectrogram
  n_fft: 1920
  num_mels: 80
  sampling_rate: !ref <sample_rate>
  hop_size: 480
  win_size: 1920
  fmin: 0
  fmax: 8000
  center: false
hifigan: !new:cosyvoice.hifigan.hifigan.HiFiGan
  generator: !ref <hift>
"""

FACTORS = {"new": (".parametrizations.weight.original0", ".parametrizations.weight.original1"),
           "old": (".weight_g", ".weight_v")}
"""How torch names the length and the direction of a weight."""


def write(folder: Path, names: str = "new", speaker_size: int = TINY.flow.spk_embed_dim) -> Path:
    """Write the folder, which is made."""
    folder.mkdir(parents=True)
    speaker = f"spk_embed_dim: {speaker_size}"
    (folder / "flow.yaml").write_text(FLOW_YAML.replace(f"spk_embed_dim: {TINY.flow.spk_embed_dim}", speaker))
    (folder / "config.yaml").write_text(HIFT_YAML)
    flow, name = dict(small.part("flow")), "spk_embed_affine_layer.weight"
    torch.save(flow | {name: flow[name][:, :speaker_size].clone()}, folder / "flow.pt")
    torch.save(factored(names), folder / "hift.pt")
    onnx_files.write(folder)
    return folder


def factored(names: str = "new") -> dict[str, torch.Tensor]:
    """The vocoder's tensors as the release has them: the weights of most convolutions in two factors."""
    length, direction = FACTORS[names]
    made = {}
    for name, tensor in small.part("hift").items():
        if tensor.dim() == 3 and not name.startswith("source_downs"):
            base = name.removesuffix(".weight")
            made[base + length] = tensor.flatten(1).norm(dim=1)[:, None, None]
            made[base + direction] = tensor * 3
        else:
            made[name] = tensor
    return made
