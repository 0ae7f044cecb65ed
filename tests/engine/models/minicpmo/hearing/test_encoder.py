"""Against the Whisper encoder of Hugging Face's transformers, which knows of no stream."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import WhisperConfig
from transformers.models.whisper.modeling_whisper import WhisperEncoder

from duologue.engine.models.minicpmo.hearing.ear import Hearing
from duologue.engine.models.minicpmo.hearing.mel import Spectrum, clip_frames
from duologue.engine.runners.base import Rows
from tests.engine.models.minicpmo.hearing.small import config, ear, units, weights

pytestmark = pytest.mark.component


def stock(positions: int = 1500) -> WhisperEncoder:
    ours = config(1500)
    made = WhisperConfig(**ours.audio.model_dump() | {"max_source_positions": positions}, dropout=0.0)
    made._attn_implementation = "eager"
    encoder = WhisperEncoder(made).eval()
    state = {name.removeprefix("apm."): tensor for name, tensor in weights(ours) if name.startswith("apm.")}
    state["embed_positions.weight"] = state["embed_positions.weight"][:positions]
    encoder.load_state_dict(state)
    return encoder


def project(states: torch.Tensor) -> Rows:
    """Hidden states (n, d_model) to rows: two layers, then the mean of five."""
    named = dict(weights(config(1500)))
    first, second = ((named[f"audio_projection_layer.{name}.weight"], named[f"audio_projection_layer.{name}.bias"])
                     for name in ("linear1", "linear2"))
    rows = torch.clamp(states @ first[0].T + first[1], min=0) @ second[0].T + second[1]
    whole = len(rows) // 5
    return np.asarray(rows[:5 * whole].reshape(whole, 5, -1).mean(1))


def by_blocks(encoder: WhisperEncoder, stems: torch.Tensor) -> torch.Tensor:
    """Run the stock layers over stems (n, d_model) from position 0; a block of 50 hears itself and those before."""
    block = torch.arange(len(stems)) // 50
    mask = torch.zeros(len(stems), len(stems)).masked_fill(block[:, None] < block, -torch.inf)[None, None]
    states = (stems + encoder.embed_positions.weight[:len(stems)])[None]
    for layer in encoder.layers:
        states = layer(states, mask)
    normed: torch.Tensor = encoder.layer_norm(states)[0]
    return normed


def stem(encoder: WhisperEncoder, frames: Rows) -> torch.Tensor:
    mel = torch.from_numpy(frames.T.copy())[None]
    gelu = torch.nn.functional.gelu
    return gelu(encoder.conv2(gelu(encoder.conv1(mel))))[0].T


@torch.inference_mode()
def test_a_stream_is_a_whole_whisper_that_hears_by_the_second_and_starts_anew_every_29() -> None:
    encoder, hearing, spectrum = stock(), Hearing(ear()), Spectrum()
    heard, stems = [], []
    for i, unit in enumerate(units(33, seed=1)):
        frames, spectrum = spectrum.after(unit)
        rows = stem(encoder, frames[2:])[:-1] if i == 0 else stem(encoder, frames)[1:-1]
        stems.append(rows)
        heard.append(hearing.hear(unit).rows)
    golden = [project(by_blocks(encoder, torch.cat(life))) for life in (stems[:29], stems[29:])]
    np.testing.assert_allclose(np.concatenate(heard), np.concatenate(golden), rtol=1e-4, atol=1e-5)


@torch.inference_mode()
def test_a_clip_of_a_second_is_stock_whisper() -> None:
    pcm = units(4)[3]
    mel = torch.from_numpy(clip_frames(pcm).T.copy())[None]
    golden = project(stock(positions=50)(mel).last_hidden_state[0])
    np.testing.assert_allclose(ear().clip(pcm).rows, golden, rtol=1e-4, atol=1e-5)


@torch.inference_mode()
@pytest.mark.parametrize("samples", [8_000, 35_700, 480_000])
def test_a_clip_hears_by_the_second(samples: int) -> None:
    encoder, pcm = stock(), np.concatenate(units(30, seed=2))[:samples]
    golden = project(by_blocks(encoder, stem(encoder, clip_frames(pcm))))
    np.testing.assert_allclose(ear().clip(pcm).rows, golden, rtol=1e-4, atol=1e-5)
