"""How vLLM comes by a decoder's tensors: from the same checkpoint reader as the own runner, or maker of random ones.

vLLM's own loaders read a folder with nothing but one decoder in it. A released checkpoint may hold several models in
one set of files, under names of its own, or tensors that are to be put together first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vllm.model_executor.model_loader import register_model_loader
from vllm.model_executor.model_loader.base_loader import BaseModelLoader

from duologue.engine.config import ConfigError
from duologue.engine.runners.weights import Weights

FORMAT = "duologue"
"""vLLM's ``load_format`` for it."""
KEY = "weights"
"""Where in vLLM's ``model_loader_extra_config`` the ``Weights`` are."""
_REFUSAL = "refusal.txt"
"""File in the folder that is vLLM's ``model``: of an error in its process vLLM tells only that there was one."""


@register_model_loader(FORMAT)
class Loader(BaseModelLoader):  # type: ignore[misc]
    """Loads ``Weights`` straight to the model's device. Importing this module makes it known to vLLM."""

    def download_model(self, model_config: Any) -> None:
        """Nothing is downloaded."""

    def load_weights(self, model: Any, model_config: Any) -> None:
        """Fill ``model``; raises ``ConfigError`` when a tensor is lacking or wrong, which ``refusal`` then finds."""
        weights: Weights = self.load_config.model_loader_extra_config[KEY]
        wanted = {name: parameter.device for name, parameter in model.named_parameters()}
        try:
            lacking = wanted.keys() - model.load_weights(weights(next(iter(wanted.values()))))
            if lacking:
                raise ConfigError(f"the decoder lacks tensors for {', '.join(sorted(lacking))}")
        except ConfigError as error:
            (Path(model_config.model) / _REFUSAL).write_text(str(error), encoding="utf-8")
            raise


def refusal(folder: str) -> ConfigError | None:
    """Why weights were refused in vLLM's process, whose ``model`` was ``folder``; None if they were not."""
    file = Path(folder) / _REFUSAL
    return ConfigError(file.read_text(encoding="utf-8")) if file.exists() else None
