"""Writes ``features.npz``: ``python -m tests.engine.models.minicpmo.token2wav.golden.make_features SDIST``.

The spectra that reference recordings are turned into, by others: Kaldi's by kaldi-native-fbank 1.23, the other two as
the released code computes them, with torch, from the filters in the unpacked source of minicpmo-utils 1.0.7 (SDIST)
and those of transformers.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.engine.models.minicpmo.token2wav.speech import like_speech


def main(source: Path) -> None:
    """Compute and store."""
    np.savez_compressed(Path(__file__).with_name("features.npz"), speaker=_kaldi(like_speech(16_000)),
                        code=_whisper(like_speech(16_000), source), prompt=_prompt(like_speech(24_000)))


def _kaldi(samples: Any) -> Any:
    knf = importlib.import_module("kaldi_native_fbank")
    options = knf.FbankOptions()
    options.frame_opts.dither, options.frame_opts.samp_freq = 0, 16_000
    options.mel_opts.num_bins = 80
    fbank = knf.OnlineFbank(options)
    fbank.accept_waveform(16_000, samples.tolist())
    fbank.input_finished()
    frames = np.stack([fbank.get_frame(i) for i in range(fbank.num_frames_ready)])
    return frames - frames.mean(0)


def _whisper(samples: Any, source: Path) -> Any:
    filters = torch.from_numpy(np.load(source / "src" / "s3tokenizer" / "assets" / "mel_filters.npz")["mel_128"])
    spectrum = torch.stft(torch.from_numpy(samples), 400, 160, window=torch.hann_window(400), return_complex=True)
    log = torch.clamp(filters @ spectrum[..., :-1].abs().square(), min=1e-10).log10()
    return ((torch.maximum(log, log.max() - 8) + 4) / 4).T.numpy()


def _prompt(samples: Any) -> Any:
    bank = importlib.import_module("transformers.audio_utils").mel_filter_bank(
        961, 80, 0, 8000, 24_000, norm="slaney", mel_scale="slaney")
    padded = torch.nn.functional.pad(torch.from_numpy(samples)[None], (720, 720), mode="reflect")[0]
    spectrum = torch.stft(padded, 1920, 480, window=torch.hann_window(1920), center=False, return_complex=True)
    magnitude = (torch.view_as_real(spectrum).square().sum(-1) + 1e-9).sqrt()
    return (torch.from_numpy(bank).float().T @ magnitude).clamp(min=1e-5).log().T.numpy()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
