"""Which tensors each part of a MiniCPM-o 4.5 checkpoint consists of: names and shapes."""

from __future__ import annotations

from typing import Literal

from duologue.engine.models.duplex.layout import decoder_tensors
from duologue.engine.models.minicpmo.config import AudioConfig, MiniCPMOConfig, TtsConfig

Shapes = dict[str, tuple[int, ...]]

Part = Literal["thinker", "hearing", "talker"]
"""What a stage reads of a checkpoint's shards."""

PARTS: tuple[Part, ...] = ("thinker", "hearing", "talker")

PREFIX: dict[Part, str] = {"thinker": "llm.", "hearing": "", "talker": "tts."}
"""What a part's names begin with in the checkpoint, and here no longer."""

SIGHT = ("vpm.", "resampler.")
"""Modules of a checkpoint that nothing here reads: it has no eyes."""

LLAMA_VOCABULARY = 32_000
"""Rows of ``tts.model.embed_tokens``, which the released talker carries and never reads (``LlamaConfig``'s default)."""


def tensors(part: Part, config: MiniCPMOConfig) -> Shapes:
    """Name and shape of every tensor of ``part``; matrices are (out, in). :data:`PREFIX` is taken off the names.

    * thinker: those of ``Qwen3ForCausalLM``
    * hearing: ``apm.*`` (a Whisper encoder), ``audio_projection_layer.linear{1,2}.*``
    * talker: ``model.*`` (a Llama without embeddings), ``emb_code.0.weight`` and ``head_code.0.parametrizations.*``
      (its embedding and head; the head is the direction ``original1`` times the length ``original0``, by rows),
      ``emb_text.weight``, ``projector_semantic.linear{1,2}.*``
    """
    if part == "thinker":
        return decoder_tensors(config.llm)
    if part == "hearing":
        return _encoder(config.audio) | _projection("audio_projection_layer", config.audio.d_model,
                                                    config.llm.hidden_size)
    return _talker(config.tts)


def unread(config: MiniCPMOConfig) -> Shapes:
    """Tensors, by their full names, that the released talker is stored with and no stage reads."""
    return {"tts.model.embed_tokens.weight": (LLAMA_VOCABULARY, config.tts.hidden_size),
            **_projection("tts.projector_spk", config.tts.llm_dim, config.tts.hidden_size)}


def _encoder(config: AudioConfig) -> Shapes:
    """Tensors of the encoder of a Whisper."""
    size, ffn = config.d_model, config.encoder_ffn_dim
    shapes: Shapes = {"conv1.weight": (size, config.num_mel_bins, 3), "conv1.bias": (size,),
                      "conv2.weight": (size, size, 3), "conv2.bias": (size,),
                      "embed_positions.weight": (config.max_source_positions, size)}
    for i in range(config.encoder_layers):
        shapes |= {f"layers.{i}.{name}": shape for name, shape in {
            "self_attn.k_proj.weight": (size, size),
            **_linear("self_attn.v_proj", size, size),
            **_linear("self_attn.q_proj", size, size),
            **_linear("self_attn.out_proj", size, size),
            "self_attn_layer_norm.weight": (size,), "self_attn_layer_norm.bias": (size,),
            **_linear("fc1", ffn, size),
            **_linear("fc2", size, ffn),
            "final_layer_norm.weight": (size,), "final_layer_norm.bias": (size,),
        }.items()}
    shapes |= {"layer_norm.weight": (size,), "layer_norm.bias": (size,)}
    return {f"apm.{name}": shape for name, shape in shapes.items()}


def _talker(config: TtsConfig) -> Shapes:
    shapes = {name: shape for name, shape in decoder_tensors(config.decoder).items()
              if name not in ("model.embed_tokens.weight", "lm_head.weight")}
    codes, size = config.num_audio_tokens, config.hidden_size
    return shapes | {
        "emb_code.0.weight": (codes, size),
        "head_code.0.parametrizations.weight.original0": (codes, 1),
        "head_code.0.parametrizations.weight.original1": (codes, size),
        "emb_text.weight": (config.num_text_tokens, size),
        **_projection("projector_semantic", config.llm_dim, size),
    }


def _projection(name: str, inner: int, outer: int) -> Shapes:
    return _linear(f"{name}.linear1", outer, inner) | _linear(f"{name}.linear2", outer, outer)


def _linear(name: str, out: int, into: int) -> Shapes:
    return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}
