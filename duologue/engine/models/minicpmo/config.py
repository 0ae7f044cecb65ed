"""The shape of a MiniCPM-o 4.5 checkpoint, as its released ``config.json`` gives it.

The language model's keys (``Qwen3ForCausalLM``) stand at the top level there; here they are ``llm``. Keys that a
released file may leave out have the defaults of the released configuration classes (``MiniCPMTTSConfig``,
``WhisperConfig``).
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from duologue.engine.models.duplex.config import DecoderConfig

VERSION: Literal["4.5"] = "4.5"
"""The only ``version`` that is run here. It alone tells 4.5 from 2.6, whose ``model_type`` is the same."""


class AudioConfig(BaseModel):
    """``audio_config``: the encoder half of a Whisper (arXiv 2212.04356)."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    d_model: int = Field(gt=0)
    encoder_layers: int = Field(gt=0)
    encoder_attention_heads: int = Field(gt=0)
    encoder_ffn_dim: int = Field(gt=0)
    num_mel_bins: int = Field(default=80, gt=0)
    max_source_positions: int = Field(default=1500, gt=0)
    """Positions of the stream, 20 ms each, after which the encoder's keys and values are dropped."""
    activation_function: Literal["gelu"] = "gelu"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.encoder_ffn_dim != 4 * self.d_model:
            raise ValueError(f"encoder_ffn_dim ({self.encoder_ffn_dim}) must be 4 * d_model ({self.d_model}): the "
                             f"projection behind the encoder is sized by it")
        if self.d_model % self.encoder_attention_heads:
            raise ValueError(f"d_model ({self.d_model}) is no multiple of encoder_attention_heads "
                             f"({self.encoder_attention_heads})")
        return self


class TtsConfig(BaseModel):
    """``tts_config``: the talker, a Llama over codes of 25 Hz, conditioned on the thinker's tokens and states."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    llm_dim: int = Field(gt=0)
    """Size of the thinker's hidden states."""
    num_text_tokens: int = Field(gt=0)
    """Rows of ``emb_text``: at least the thinker's vocabulary."""
    num_audio_tokens: int = Field(gt=1)
    """The codes and, as the last, their end (EOS)."""
    audio_bos_token_id: int = Field(ge=0)
    """Row of ``emb_text`` that closes the condition of a unit."""
    hidden_size: int = Field(default=768, gt=0)
    intermediate_size: int = Field(default=3072, gt=0)
    num_hidden_layers: int = Field(default=20, gt=0)
    num_attention_heads: int = Field(default=12, gt=0)
    num_key_value_heads: int = Field(default=12, gt=0)
    max_position_embeddings: int = Field(default=4096, gt=0)
    num_vq: Literal[1] = 1
    """Codebooks."""
    projector_type: Literal["mlp"] = "mlp"
    backbone_model: Literal["llama"] = "llama"

    @property
    def eos(self) -> int:
        """The code that ends speech."""
        return self.num_audio_tokens - 1

    @property
    def decoder(self) -> DecoderConfig:
        """The Llama; its vocabulary is the codes. ``LlamaConfig``'s defaults stand for what ``tts_config`` lacks."""
        return DecoderConfig.model_validate({
            "model_type": "llama", "vocab_size": self.num_audio_tokens, "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size, "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads, "num_key_value_heads": self.num_key_value_heads,
            "head_dim": self.hidden_size // self.num_attention_heads,
            "max_position_embeddings": self.max_position_embeddings, "rms_norm_eps": 1e-6, "rope_theta": 1e4,
            "tie_word_embeddings": False})


class MiniCPMOConfig(BaseModel):
    """``config.json`` of MiniCPM-o 4.5. Its vision keys are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    model_type: Literal["minicpmo"] = "minicpmo"
    version: Literal["4.5"]
    llm: DecoderConfig
    audio: AudioConfig = Field(alias="audio_config")
    tts: TtsConfig = Field(alias="tts_config")
    audio_pool_step: int = Field(default=5, gt=0)
    """Encoder positions (20 ms) that one embedding row stands for."""
    audio_chunk_length: float = Field(default=1.0, gt=0)
    """Seconds of a unit, and of the blocks in which a reference clip is attended to."""
    stream_input: Literal[True] = True

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, value: Any) -> Any:
        """Refuse other models in a sentence; gather the language model's keys."""
        if not isinstance(value, dict) or "llm" in value:
            return value
        if value.get("model_type") != "minicpmo":
            raise ValueError(f"model_type is {value.get('model_type')!r}; only 'minicpmo' can be run here")
        if (version := str(value.get("version"))) != VERSION:
            raise ValueError(f"this is version {version} of MiniCPM-o; only {VERSION} can be run here")
        if value.get("rope_scaling"):
            raise ValueError("rope_scaling is set; only plain rotary positions can be run here")
        return {**value, "version": version, "llm": {**value, "model_type": "qwen3"}}

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.tts.llm_dim != self.llm.hidden_size:
            raise ValueError(f"tts_config.llm_dim is {self.tts.llm_dim}, but hidden_size is {self.llm.hidden_size}")
        if self.tts.num_text_tokens < self.llm.vocab_size:
            raise ValueError(f"tts_config.num_text_tokens is {self.tts.num_text_tokens}, less than vocab_size "
                             f"{self.llm.vocab_size}")
        if self.tts.audio_bos_token_id >= self.tts.num_text_tokens:
            raise ValueError(f"tts_config.audio_bos_token_id is {self.tts.audio_bos_token_id}, but num_text_tokens is "
                             f"{self.tts.num_text_tokens}")
        for name, parts, whole in (
                ("tts_config.hidden_size", self.tts.num_attention_heads, self.tts.hidden_size),
                ("tts_config.num_attention_heads", self.tts.num_key_value_heads, self.tts.num_attention_heads),
                ("num_attention_heads", self.llm.num_key_value_heads, self.llm.num_attention_heads)):
            if whole % parts:
                raise ValueError(f"{name} is {whole}, which {parts} does not divide")
        return self

    @property
    def unit_ms(self) -> int:
        """Length of a unit in ms."""
        return round(1000 * self.audio_chunk_length)

    @property
    def row_ms(self) -> int:
        """Audio of one embedding row in ms: an encoder position is two mel frames of 10 ms."""
        return 20 * self.audio_pool_step
