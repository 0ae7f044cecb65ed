"""Voices by reference recordings: which there are, and which one a session gets."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from duologue.engine.config import ConfigError
from duologue.engine.messages import INPUT_RATE, Pcm
from duologue.engine.models.minicpmo.token2wav.features import Samples
from duologue.engine.models.minicpmo.token2wav.recording import read
from duologue.strict import Strict

_log = logging.getLogger(__name__)

_RELEASED = ("assets/ref_audio/ref_minicpm_signature.wav", "assets/HT_ref_audio.wav")
"""References that come with the release, the first that is there being its voice."""
_MOST_NAMES = 100
"""Unknown names that are remembered as logged."""


class ReferenceOptions(Strict):
    """Which voices there are. The thinker and the codec are to be given the same."""

    voices: dict[str, Path] = Field(default_factory=dict)
    """Reference recordings by name, in any format that FFmpeg decodes: one speaker, 1 to 6 s (more is left out).
    Without any, the one that comes with the checkpoint."""
    default_voice: str | None = None
    """Voice of a session that asks for none, or for one that there is not; the first, if this is not given."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.default_voice is not None and self.default_voice not in self.voices:
            raise ValueError(f"default_voice: {self.default_voice!r} is not one of the voices "
                             f"({', '.join(self.voices) or 'none'})")
        return self


class Voices:
    """The voices, read once."""

    def __init__(self, options: ReferenceOptions, folder: Path | None) -> None:
        """``folder`` is the checkpoint's, None for random weights, which need no voice.

        Raises ``ConfigError`` that names the file when a recording cannot be used.
        """
        files = dict(options.voices)
        if not files and folder is not None:
            files = {Path(name).stem: folder / name for name in _RELEASED if (folder / name).is_file()}
        self._files = files
        self._default = options.default_voice or next(iter(files), None)
        self._pcm = {name: _pcm(read(file, INPUT_RATE)) for name, file in files.items()}
        self._unknown: set[str] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """The voices there are."""
        return tuple(self._files)

    def resolve(self, asked: str) -> str | None:
        """Which voice a session gets that asked for ``asked``; None if there are none."""
        if asked in self._files:
            return asked
        if asked and self._files and asked not in self._unknown and len(self._unknown) < _MOST_NAMES:
            self._unknown.add(asked)
            _log.warning("there is no voice %.40r; sessions that ask for it get %r", asked, self._default)
        return self._default

    def load(self, asked: str) -> Pcm | None:
        """The reference of the voice that a session gets which asked for ``asked``: int16 at 16 kHz; None if none."""
        name = self.resolve(asked)
        return None if name is None else self._pcm[name]

    def samples(self, name: str, rate: int) -> Samples:
        """The reference of voice ``name`` at ``rate`` Hz."""
        return read(self._files[name], rate)

    def file(self, name: str) -> Path:
        """Where the reference of voice ``name`` was read from."""
        return self._files[name]


def require(voices: Voices, folder: Path) -> None:
    """Raise ``ConfigError`` when a checkpoint that needs a voice has none."""
    if not voices.names:
        raise ConfigError(f"{folder}: comes with no reference recording ({' or '.join(_RELEASED)}); name one in the "
                          f"options of thinker and codec: `voices: {{name: FILE}}`")


def _pcm(samples: Samples) -> Pcm:
    pcm: Pcm = np.clip(np.rint(samples * 32768), -32768, 32767).astype(np.int16)
    return pcm
