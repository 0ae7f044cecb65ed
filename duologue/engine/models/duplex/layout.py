"""Which tensors each file of a duplex checkpoint holds: names and shapes."""

from __future__ import annotations

from typing import Literal

from duologue.engine.models.duplex import codec_layout, talker_layout
from duologue.engine.models.duplex.config import DecoderConfig, DuplexConfig

Part = Literal["thinker", "ear", "talker", "codec"]
"""A folder of a checkpoint."""

PARTS: tuple[Part, ...] = ("thinker", "ear", "talker", "codec")

MEL_BINS = 80
"""Log-mel channels of one row of audio (Whisper, arXiv 2212.04356)."""


def decoder_tensors(config: DecoderConfig) -> dict[str, tuple[int, ...]]:
    """Tensors of ``Qwen3ForCausalLM`` or ``LlamaForCausalLM`` by their released names; matrices are (out, in)."""
    hidden, ffn, head = config.hidden_size, config.intermediate_size, config.head_dim
    queries, keys = config.num_attention_heads * head, config.num_key_value_heads * head
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (config.vocab_size, hidden)}
    norms = {"self_attn.q_norm": (head,), "self_attn.k_norm": (head,)} if config.query_key_norms else {}
    for i in range(config.num_hidden_layers):
        shapes |= {f"model.layers.{i}.{name}.weight": shape for name, shape in {
            "input_layernorm": (hidden,),
            "self_attn.q_proj": (queries, hidden),
            "self_attn.k_proj": (keys, hidden),
            "self_attn.v_proj": (keys, hidden),
            **norms,
            "self_attn.o_proj": (hidden, queries),
            "post_attention_layernorm": (hidden,),
            "mlp.gate_proj": (ffn, hidden),
            "mlp.up_proj": (ffn, hidden),
            "mlp.down_proj": (hidden, ffn),
        }.items()}
    shapes["model.norm.weight"] = (hidden,)
    if not config.tie_word_embeddings:
        shapes["lm_head.weight"] = (config.vocab_size, hidden)
    return shapes


def tensors(part: Part, config: DuplexConfig, thinker: DecoderConfig, talker: DecoderConfig) \
        -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor of ``PART/model.safetensors``."""
    if part == "thinker":
        return decoder_tensors(thinker)
    if part == "ear":
        return {"proj.weight": (thinker.hidden_size, MEL_BINS), "proj.bias": (thinker.hidden_size,)}
    if part == "talker":
        return decoder_tensors(talker) | talker_layout.tensors(thinker.vocab_size, thinker.hidden_size,
                                                               talker.hidden_size)
    return codec_layout.tensors(config.codec)
