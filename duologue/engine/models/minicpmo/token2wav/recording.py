"""Reads reference recordings: any format and rate that FFmpeg decodes."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np

from duologue.engine.config import ConfigError
from duologue.engine.models.minicpmo.token2wav.features import Samples

LEAST_S = 1.0
"""Seconds of sound a voice cannot be told from less of."""
MOST_S = 6.0
"""Seconds of a reference that are used: more adds cost to every chunk and little to the likeness (MiniCPM-o 4.5)."""


def read(file: Path, rate: int) -> Samples:
    """The first ``MOST_S`` seconds of ``file``, the mean of its channels, at ``rate`` Hz.

    Raises ``ConfigError`` that names the file if it is no recording, or one of less than ``LEAST_S`` seconds.
    """
    most = round(MOST_S * rate)
    resampler = av.AudioResampler("fltp", rate=rate)
    pieces: list[Samples] = []
    try:
        with av.open(str(file)) as container:
            if not container.streams.audio:
                raise ConfigError(f"{file}: has no sound; a voice needs a recording of somebody who speaks")
            for frame in container.decode(audio=0):
                pieces += [out.to_ndarray().mean(0) for out in resampler.resample(frame)]
                if sum(map(len, pieces)) >= most:
                    break
            else:
                pieces += [out.to_ndarray().mean(0) for out in resampler.resample(None)]
    except (av.FFmpegError, OSError) as error:
        raise ConfigError(f"{file}: cannot be read as a recording: {error.strerror or error}") from None
    samples: Samples = np.concatenate([np.empty(0, np.float32), *pieces])[:most].astype(np.float32)
    if len(samples) < LEAST_S * rate:
        raise ConfigError(f"{file}: is {len(samples) / rate:.1f} s long; a voice needs at least {LEAST_S:g} s, and "
                          f"{MOST_S:g} s are used")
    return samples
