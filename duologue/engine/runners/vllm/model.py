"""The model classes that vLLM loads: stock Qwen3 and stock Llama, and embedding rows among the tokens.

vLLM takes ready embedding rows into a resumable request only as a multimodal input, and only of a multimodal model.
Its modality ``prompt_embeds`` passes rows through to the input embeddings without an encoder, so all there is to
multimodality here is to say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor
from vllm.model_executor.models.interfaces import SupportsMultiModal
from vllm.model_executor.models.llama import LlamaForCausalLM
from vllm.model_executor.models.qwen3 import Qwen3ForCausalLM
from vllm.model_executor.models.registry import ModelRegistry
from vllm.model_executor.models.utils import _merge_multimodal_embeddings
from vllm.multimodal import MULTIMODAL_REGISTRY
from vllm.multimodal.processing import BaseMultiModalProcessor, BaseProcessingInfo
from vllm.multimodal.processing.dummy_inputs import BaseDummyInputsBuilder

from duologue.engine.models.duplex.config import DecoderConfig

MODALITY = "prompt_embeds"


class Info(BaseProcessingInfo):  # type: ignore[misc]
    """How large an item may be: as long as a session, which is what sizes the cache that holds it until it is fed."""

    def get_supported_mm_limits(self) -> Mapping[str, int | None]:
        """Any number of pieces."""
        return {MODALITY: None}

    def get_mm_max_tokens_per_item(self, seq_len: int, mm_counts: Mapping[str, int]) -> Mapping[str, int]:
        """A piece may be the whole sequence."""
        return {MODALITY: seq_len}


class DummyInputs(BaseDummyInputsBuilder):  # type: ignore[misc]
    """vLLM asks for a builder of inputs to profile an encoder with; there is no encoder."""

    def get_dummy_text(self, mm_counts: Mapping[str, int]) -> str:
        """Nothing."""
        return ""

    def get_dummy_mm_data(self, seq_len: int, mm_counts: Mapping[str, int], mm_options: Any) -> dict[str, Any]:
        """Nothing."""
        return {}


class Processor(BaseMultiModalProcessor):  # type: ignore[misc]
    """vLLM asks for a processor of raw inputs; ours come processed."""

    requires_tokenizer = False

    def _get_mm_fields_config(self, hf_inputs: Any, hf_processor_mm_kwargs: Any) -> Mapping[str, Any]:
        return {}

    def _get_prompt_updates(self, mm_items: Any, hf_processor_mm_kwargs: Any, out_mm_kwargs: Any) -> Sequence[Any]:
        return []


class TakesRows:
    """What both have beside their stock class; ``model`` is the stock class's."""

    model: Any

    def get_language_model(self) -> TakesRows:
        """All of it."""
        return self

    def embed_input_ids(self, input_ids: Tensor, multimodal_embeddings: Sequence[Tensor] | None = None, *,
                        is_multimodal: Tensor | None = None) -> Tensor:
        """Input embeddings (n, hidden_size) of ``input_ids`` (n,), rows given instead where ``is_multimodal`` (n,)."""
        embeddings: Tensor = self.model.embed_input_ids(input_ids)
        if multimodal_embeddings is None or is_multimodal is None or not len(multimodal_embeddings):
            return embeddings
        merged: Tensor = _merge_multimodal_embeddings(
            inputs_embeds=embeddings, multimodal_embeddings=multimodal_embeddings, is_multimodal=is_multimodal)
        return merged

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> set[str]:
        """Load the decoder's; a talker's checkpoint has tensors of its own beside."""
        loaded: set[str] = super().load_weights(  # type: ignore[misc]
            (name, tensor) for name, tensor in weights if name.startswith(("model.", "lm_head.")))
        return loaded


@MULTIMODAL_REGISTRY.register_processor(Processor, info=Info, dummy_inputs=DummyInputs)
class DuologueQwen3ForCausalLM(TakesRows, Qwen3ForCausalLM, SupportsMultiModal):  # type: ignore[misc]
    """``Qwen3ForCausalLM`` with rows in place of the embeddings of the positions that are given as rows."""


@MULTIMODAL_REGISTRY.register_processor(Processor, info=Info, dummy_inputs=DummyInputs)
class DuologueLlamaForCausalLM(TakesRows, LlamaForCausalLM, SupportsMultiModal):  # type: ignore[misc]
    """``LlamaForCausalLM``, likewise."""


ARCHITECTURES = {"qwen3": DuologueQwen3ForCausalLM, "llama": DuologueLlamaForCausalLM}
"""By ``DecoderConfig.model_type``."""


def hf_config(config: DecoderConfig) -> dict[str, Any]:
    """``config.json`` of the decoder as vLLM and Hugging Face read it."""
    return {**config.model_dump(mode="json"), "architectures": [ARCHITECTURES[config.model_type].__name__],
            "hidden_act": "silu", "attention_bias": False,
            "rope_parameters": {"rope_type": "default", "rope_theta": config.rope_theta}}


def register() -> None:
    """Make the architectures known to vLLM, in this process; idempotent."""
    known = ModelRegistry.get_supported_archs()
    for architecture in ARCHITECTURES.values():
        if architecture.__name__ not in known:
            ModelRegistry.register_model(architecture.__name__, architecture)
