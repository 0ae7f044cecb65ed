"""The ear that all sessions share, and what it keeps of one session's stream.

A stream's encoder keeps keys and values of what it has heard. Once the next unit might not fit the encoder's positions
they are dropped and the stream starts anew: with 1500 positions after every 29 units, as released
(``get_audio_embedding_streaming`` of ``modeling_minicpmo.py``). Only a unit's own positions are ever kept: those of the
frames around it are cut off before the first layer, and streams of a batch need no padding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch.nn.functional import avg_pool1d, linear, relu, scaled_dot_product_attention

from duologue.engine.config import ConfigError
from duologue.engine.messages import Pcm
from duologue.engine.models.duplex.layout import MEL_BINS
from duologue.engine.models.minicpmo.config import MiniCPMOConfig
from duologue.engine.models.minicpmo.hearing.encoder import Encoder
from duologue.engine.models.minicpmo.hearing.mel import (
    CLIP_SAMPLES,
    OVERLAP,
    UNIT_FRAMES,
    UNIT_SAMPLES,
    Frames,
    Spectrum,
    clip_frames,
)
from duologue.engine.runners.base import Embeddings, Rows

UNIT_POSITIONS = UNIT_FRAMES // 2
"""Encoder positions of a unit: its second convolution has a stride of 2."""
_AROUND = OVERLAP // 2
"""Positions to either side of a unit's own that come of the frames around it."""


class Ear:
    """The weights, on ``device`` in ``dtype``: of the tensors those named ``apm.*`` and ``audio_projection_layer.*``.

    Raises ``ConfigError`` for a config that cannot be run, and for a tensor that is absent or not finite.
    """

    def __init__(self, config: MiniCPMOConfig, tensors: Iterable[tuple[str, torch.Tensor]], device: torch.device,
                 dtype: torch.dtype) -> None:
        _check(config)
        found = {name: _finite(name, tensor.to(device, dtype)) for name, tensor in tensors
                 if name.startswith(("apm.", "audio_projection_layer."))}
        try:
            self._encoder = Encoder(config.audio, found)
            self._projection = [tuple(found.pop(f"audio_projection_layer.{layer}.{kind}")
                                      for kind in ("weight", "bias")) for layer in ("linear1", "linear2")]
        except KeyError as error:
            raise ConfigError(f"hearing lacks tensor {error.args[0]}") from None
        self.hidden_size = config.llm.hidden_size
        self._device, self._dtype, self._pool = device, dtype, config.audio_pool_step
        fitting = config.audio.max_source_positions - UNIT_POSITIONS - 2 * _AROUND
        self._units = max(-(-fitting // UNIT_POSITIONS), 1)
        """Units after which a stream starts anew."""

    @torch.inference_mode()
    def hear(self, streams: Sequence[Hearing], units: Sequence[Pcm]) -> list[Embeddings]:
        """Hear the next unit of each stream, int16 (16000,); returns the rows of each, (10, hidden_size).

        Raises ``ValueError`` for what is not a unit, or for a stream given twice: then no stream has heard anything.
        """
        if len({id(stream) for stream in streams}) != len(streams) or len(streams) != len(units):
            raise ValueError("a batch has each stream once, and one unit for each")
        for unit in units:
            if unit.dtype != np.int16 or unit.shape != (UNIT_SAMPLES,):
                raise ValueError(f"a unit is int16 ({UNIT_SAMPLES},), but this is {unit.dtype} {unit.shape}")
        if not streams:
            return []
        frames, spectra = zip(*(stream.spectrum.after(unit) for stream, unit in zip(streams, units, strict=True)),
                              strict=True)
        starts = [stream.units % self._units * UNIT_POSITIONS for stream in streams]

        def attend(layer: int, query: torch.Tensor, pair: torch.Tensor) -> torch.Tensor:
            return torch.stack([_attend(query[i], pair[i], streams[i].past[layer], start)
                                for i, start in enumerate(starts)])

        absent = np.zeros((len(streams), len(frames[0])), np.bool_)
        absent[[stream.units == 0 for stream in streams], :OVERLAP] = True
        rows = self._stem(np.stack(frames), absent)[:, _AROUND:-_AROUND]
        heard = self._rows(self._encoder.forward(rows, starts, attend))
        for stream, spectrum, unit in zip(streams, spectra, units, strict=True):
            stream.spectrum, stream.units, stream.key = spectrum, stream.units + 1, _digest(stream.key, unit)
        return [Embeddings(rows, stream.key) for rows, stream in zip(heard, streams, strict=True)]

    def stream(self) -> Hearing:
        """Begin a session's stream."""
        return Hearing(self)

    @torch.inference_mode()
    def clip(self, pcm: Pcm) -> Embeddings:
        """Encode a whole clip, int16 (n,), 30 s at a time; returns a row for each whole 100 ms, (rows, hidden_size).

        Raises ``ValueError`` for a clip that has no row.
        """
        if pcm.dtype != np.int16 or pcm.ndim != 1:
            raise ValueError(f"a clip is int16 (n,), but this is {pcm.dtype} {pcm.shape}")
        rows = [np.empty((0, self.hidden_size), np.float32)]
        rows += [self._piece(pcm[start:start + CLIP_SAMPLES]) for start in range(0, len(pcm), CLIP_SAMPLES)]
        whole = np.concatenate(rows)
        if not len(whole):
            raise ValueError(f"a clip of {len(pcm)} samples is too short to be heard; give at least 100 ms")
        return Embeddings(whole, _digest(b"clip", pcm))

    def past(self) -> torch.Tensor:
        """Room for the keys and values of one stream, (layers, positions, 2, heads, head_dim)."""
        audio = self._encoder.config
        heads = audio.encoder_attention_heads
        return torch.empty((audio.encoder_layers, self._units * UNIT_POSITIONS, 2, heads, audio.d_model // heads),
                           device=self._device, dtype=self._dtype)

    def _piece(self, pcm: Pcm) -> Rows:
        """Rows of at most 30 s: each second attends to itself and to those before it, as units of a stream do."""
        frames = clip_frames(pcm)[None]
        rows = self._stem(frames, np.zeros(frames.shape[:2], np.bool_))
        if rows.shape[1] < self._pool:
            return np.empty((0, self.hidden_size), np.float32)
        second = torch.arange(rows.shape[1], device=self._device) // UNIT_POSITIONS
        known = second[:, None] >= second

        def attend(_: int, query: torch.Tensor, pair: torch.Tensor) -> torch.Tensor:
            key, value = pair.transpose(1, 3).unbind(2)
            return scaled_dot_product_attention(query.transpose(1, 2), key, value, attn_mask=known).transpose(1, 2)

        return self._rows(self._encoder.forward(rows, [0], attend))[0]

    def _stem(self, frames: Frames, absent: np.ndarray[tuple[int, int], np.dtype[np.bool_]]) -> torch.Tensor:
        return self._encoder.stem(torch.from_numpy(frames).to(self._device, self._dtype),
                                  torch.from_numpy(absent).to(self._device))

    def _rows(self, states: torch.Tensor) -> list[Rows]:
        """Hidden states (streams, n, d_model) to each stream's rows for the thinker, (n // pool, hidden_size)."""
        first, second = self._projection
        rows = linear(relu(linear(states, *first)), *second)
        return list(avg_pool1d(rows.transpose(1, 2), self._pool).transpose(1, 2).float().cpu().numpy())


class Hearing:
    """One session's stream, as far as ``ear`` has heard it. Streams that have heard the same units are equal.

    What it holds is bounded: the keys and values of at most 29 s and some 70 ms of samples, and goes with it.
    """

    def __init__(self, ear: Ear) -> None:
        self._ear = ear
        self.units = 0
        """Units heard."""
        self.spectrum = Spectrum()
        self.past = ear.past()
        self.key = b"stream"
        """Hash of all that was heard, in its order."""

    def hear(self, pcm: Pcm) -> Embeddings:
        """Hear the next unit; see :meth:`Ear.hear`."""
        return self._ear.hear([self], [pcm])[0]


def _check(config: MiniCPMOConfig) -> None:
    if config.audio.num_mel_bins != MEL_BINS:
        raise ConfigError(f"audio_config.num_mel_bins is {config.audio.num_mel_bins}; only {MEL_BINS} can be run here")
    if config.unit_ms != 1000:
        raise ConfigError(f"audio_chunk_length is {config.audio_chunk_length}; only units of 1 s can be run here")
    if UNIT_POSITIONS % config.audio_pool_step:
        raise ConfigError(f"audio_pool_step is {config.audio_pool_step}, but a row must be a whole part of a unit's "
                          f"{UNIT_POSITIONS} positions")
    if config.audio.max_source_positions < UNIT_POSITIONS:
        raise ConfigError(f"audio_config.max_source_positions is {config.audio.max_source_positions}, but a unit has "
                          f"{UNIT_POSITIONS}")


def _finite(name: str, tensor: torch.Tensor) -> torch.Tensor:
    if not tensor.isfinite().all():
        raise ConfigError(f"tensor {name} holds values that are no numbers; the checkpoint is damaged")
    return tensor


def _attend(query: torch.Tensor, pair: torch.Tensor, past: torch.Tensor, start: int) -> torch.Tensor:
    """Attend to everything up to ``start`` and to the unit itself, whose keys and values are put into ``past``.

    ``query`` is (n, heads, head_dim), ``pair`` (n, 2, heads, head_dim), ``past`` (positions, 2, heads, head_dim).
    """
    end = start + len(query)
    past[start:end] = pair
    key, value = past[:end].permute(1, 2, 0, 3).unsqueeze(1).unbind()
    return scaled_dot_product_attention(query.transpose(0, 1).unsqueeze(0), key, value).squeeze(0).transpose(0, 1)


def _digest(key: bytes, pcm: Pcm) -> bytes:
    return hashlib.blake2b(pcm.tobytes(), digest_size=16, key=key).digest()
