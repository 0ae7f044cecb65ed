"""How vLLM comes by a decoder's tensors: from the same checkpoint reader as the own runner, or maker of random ones.

vLLM's own loaders read a folder with nothing but one decoder in it. A released checkpoint may hold several models in
one set of files, under names of its own, or tensors that are to be put together first.
"""

from __future__ import annotations

from typing import Any

from vllm.model_executor.model_loader import register_model_loader
from vllm.model_executor.model_loader.base_loader import BaseModelLoader

from duologue.engine.runners.weights import Weights

FORMAT = "duologue"
"""vLLM's ``load_format`` for it."""
KEY = "weights"
"""Where in vLLM's ``model_loader_extra_config`` the ``Weights`` are."""


@register_model_loader(FORMAT)
class Loader(BaseModelLoader):  # type: ignore[misc]
    """Loads ``Weights`` straight to the model's device. Importing this module makes it known to vLLM."""

    def download_model(self, model_config: Any) -> None:
        """Nothing is downloaded."""

    def load_weights(self, model: Any, model_config: Any) -> None:
        """Fill ``model``; raises ``ValueError`` when a tensor is lacking."""
        weights: Weights = self.load_config.model_loader_extra_config[KEY]
        wanted = {name: parameter.device for name, parameter in model.named_parameters()}
        lacking = wanted.keys() - model.load_weights(weights(next(iter(wanted.values()))))
        if lacking:
            raise ValueError(f"the decoder lacks tensors for {', '.join(sorted(lacking))}")
