"""Writes ``released.npz``: ``python -m tests.engine.models.minicpmo.token2wav.golden.make SDIST``.

SDIST is the unpacked source of minicpmo-utils 1.0.7. Its Token2wav is run unmodified on a CPU, with the tensors, the
noise and the prompt of ``small``; it needs torch, einops and scipy. From outside are set: buffers that it has at the
released size only, and the two tables of noise, which it draws anew at every start. What hears recordings is left out.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import torch

from duologue.engine.models.minicpmo.token2wav.config import TINY
from tests.engine.models.minicpmo.token2wav import small

STREAMS = {"long": 107, "whole": 50}
"""Codes of each stream: one that outgrows what is kept, and one that ends where a chunk does."""
CHUNK, AHEAD = 25, 3
KEPT_SAMPLES = 5
"""One of so many samples of the waveform is stored."""


def main(source: Path) -> None:
    """Run the streams and store what came of them."""
    _import_without(source)
    with torch.inference_mode():
        stored: dict[str, Any] = {}
        for name, count in STREAMS.items():
            token2wav = _released()
            mels: list[torch.Tensor] = []
            vocode = token2wav._stream_vocode

            def spy(mel: torch.Tensor, last: bool, vocode: Any = vocode, mels: list[torch.Tensor] = mels) -> Any:
                mels.append(mel.clone())
                return vocode(mel, last)

            token2wav._stream_vocode = spy
            token2wav.set_stream_cache("prompt")
            waiting = [TINY.silence_code] * AHEAD + small.codes(name, count)
            sounds = []
            while len(waiting) >= CHUNK + AHEAD:
                sounds.append(token2wav.stream(waiting[:CHUNK + AHEAD], return_waveform=True))
                waiting = waiting[CHUNK:]
            sounds.append(token2wav.stream(waiting, last_chunk=True, return_waveform=True))
            wave = np.concatenate(sounds, 1)[0]
            stored |= {f"{name}_mel": torch.cat(mels, 2)[0].numpy(), f"{name}_samples": np.array(len(wave)),
                       f"{name}_chunks": np.array([each.shape[1] for each in sounds]),
                       f"{name}_wave": wave[::KEPT_SAMPLES]}
    np.savez_compressed(Path(__file__).with_name("released.npz"), **stored)


def _import_without(source: Path) -> None:
    """Let the released package be imported without what hears recordings and reads YAML."""
    dynamo: Any = importlib.import_module("torch._dynamo")
    dynamo.config.disable = True
    package = ModuleType("stepaudio2")
    package.__path__ = [str(source / "src" / "stepaudio2")]
    sys.modules["stepaudio2"] = package
    for name in ("s3tokenizer", "torchaudio", "torchaudio.compliance", "torchaudio.compliance.kaldi", "hyperpyyaml",
                 "librosa", "librosa.filters"):
        sys.modules[name] = mock.MagicMock()


def _take(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"stepaudio2.{module}"), name)


def _released() -> Any:
    """The released object, holding our tensors."""
    kind = _take("token2wav", "Token2wav")
    token2wav = object.__new__(kind)
    token2wav.float16, token2wav.n_timesteps, token2wav.device = False, small.STEPS, torch.device("cpu")
    token2wav.flow = _flow().eval()
    token2wav.hift = _hift().float().eval()
    token2wav.bounded_vocoder = _take("causal_vocoder.bounded_vocoder", "BoundedVocoder")(token2wav.hift)
    token2wav.source_cache_len = token2wav.bounded_vocoder.delay * token2wav.bounded_vocoder.hop
    prompt = small.prompt()
    token2wav.cache = {"prompt": (prompt.codes[None].int(), None, prompt.speaker[None], prompt.mel[None], None)}
    token2wav.stream_cache, token2wav.hift_cache_dict, token2wav._stream_prompt = None, {}, None
    return token2wav


def _flow() -> Any:
    flow, encoder, estimator = TINY.flow, TINY.flow.encoder, TINY.flow.estimator
    dit = _take("cosyvoice2.flow.decoder_dit", "DiT")(
        4 * flow.output_size, flow.output_size, estimator.mlp_ratio, estimator.depth, estimator.num_heads,
        estimator.head_dim, estimator.hidden_size)
    solver = _take("cosyvoice2.flow.flow_matching", "CausalConditionalCFM")(dit, flow.inference_cfg_rate)
    solver.rand_noise = small.noise().T[None]
    for owner, steps in ((dit, ()), (solver, (small.STEPS,))):
        owner.att_cache_buffer = torch.zeros(*steps, estimator.depth, 2, estimator.num_heads, 1000,
                                             2 * estimator.head_dim)
        owner.cnn_cache_buffer = torch.zeros(*steps, estimator.depth, 2, 2 * estimator.hidden_size, 2)
    conformer = _take("cosyvoice2.transformer.upsample_encoder_v2", "UpsampleConformerEncoderV2")(
        flow.input_size, encoder.output_size, pre_lookahead_len=encoder.pre_lookahead_len,
        num_blocks=encoder.num_blocks, num_up_blocks=encoder.num_up_blocks, attention_heads=encoder.attention_heads,
        linear_units=encoder.linear_units)
    made = _take("cosyvoice2.flow.flow", "CausalMaskedDiffWithXvec")(
        flow.input_size, flow.output_size, flow.spk_embed_dim, "mel", flow.vocab_size, conformer, solver)
    made.load_state_dict(small.part("flow"), strict=True)
    return made


def _hift() -> Any:
    hift = TINY.hift
    predictor = _take("causal_vocoder.f0_predictor", "CausalConvRNNF0Predictor")(1, hift.in_channels,
                                                                                 hift.f0_channels)
    with mock.patch("torch.rand", return_value=torch.zeros(1, 9)):
        made = _take("causal_vocoder.generator", "CausalHiFTGenerator")(
            f0_predictor=predictor, istft_params=hift.istft_params.model_dump(),
            **hift.model_dump(exclude={"istft_params", "f0_channels"}, mode="json"))
    made.m_source.l_sin_gen.sine_waves = small.source_noise()[None]
    factored: dict[str, torch.Tensor] = {}
    for name, tensor in small.part("hift").items():
        if tensor.dim() == 3 and not name.startswith("source_downs"):
            base = name.removesuffix("weight") + "parametrizations.weight.original"
            factored |= {f"{base}0": tensor.flatten(1).norm(dim=1)[:, None, None], f"{base}1": tensor}
        else:
            factored[name] = tensor
    made.load_state_dict(factored, strict=True)
    return made


if __name__ == "__main__":
    main(Path(sys.argv[1]))
