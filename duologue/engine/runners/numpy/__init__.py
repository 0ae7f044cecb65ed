"""The light runner: a Qwen3-shaped decoder in numpy, for small models on a CPU without torch."""

from duologue.engine.runners.numpy.opening import open_numpy
from duologue.engine.runners.numpy.runner import NumpyOptions, NumpyRunner

__all__ = ["NumpyOptions", "NumpyRunner", "open_numpy"]
