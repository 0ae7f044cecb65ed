"""The shape of a duplex checkpoint, as its ``config.json`` files give it.

Layout of a checkpoint, one stock folder a stage:

* ``config.json``: :class:`DuplexConfig`, without the three stages' own
* ``tokenizer.json``: the text tokenizer (the ``tokenizers`` library's format)
* ``thinker/``: ``config.json`` (:class:`DecoderConfig`) and ``model.safetensors`` with the tensor names of
  ``Qwen3ForCausalLM``
* ``ear/model.safetensors``: ``proj.weight`` (hidden_size, 80), ``proj.bias``
* ``talker/``: like ``thinker/``, its vocabulary being the codec's, with ``emb_text.weight`` (text vocabulary, talker
  hidden_size) and ``projector.weight`` (talker hidden_size, thinker hidden_size) beside
* ``codec/model.safetensors``: named in ``codec.py``
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class DecoderConfig(BaseModel):
    """A decoder: the keys of a released ``config.json`` that say what it computes.

    ``qwen3`` (arXiv 2505.09388) has norms on query and key, ``llama`` (arXiv 2302.13971) has not; they are alike in
    all else.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    model_type: Literal["qwen3", "llama"] = "qwen3"
    vocab_size: int = Field(gt=0)
    hidden_size: int = Field(gt=0)
    intermediate_size: int = Field(gt=0)
    num_hidden_layers: int = Field(gt=0)
    num_attention_heads: int = Field(gt=0)
    num_key_value_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    max_position_embeddings: int = Field(gt=0)
    rms_norm_eps: float = 1e-6
    rope_theta: float = 1e6
    tie_word_embeddings: bool = False

    @property
    def query_key_norms(self) -> bool:
        """Whether queries and keys are normed, head by head."""
        return self.model_type == "qwen3"


class UnitTokens(BaseModel):
    """Ids of the tokens that make a unit (names as in MiniCPM-o 4.5's tokenizer)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    unit: int
    """``<unit>`` opens a unit; the rows of its audio follow."""
    unit_end: int
    """``</unit>`` closes it, after the answer's terminator."""
    listen: int
    """``<|listen|>``: the whole answer of a unit in which the model listens. A terminator."""
    speak: int
    """``<|speak|>``: text follows."""
    turn_eos: int
    """``<|turn_eos|>``: the reply is whole; fed like text."""
    chunk_eos: int
    """``<|chunk_eos|>``: the unit's text is over, the reply goes on. A terminator."""
    im_start: int
    im_end: int


class CodecConfig(BaseModel):
    """The codec: codes at ``frame_rate`` Hz to a waveform at ``sample_rate`` Hz; causal, looks back only."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    codebook_size: int = Field(gt=0)
    hidden_size: int = Field(gt=0)
    upsample: tuple[int, ...]
    """Factors of the transposed convolutions; their product is the samples of one frame."""
    kernel: int = Field(gt=0)
    frame_rate: float = Field(gt=0)
    sample_rate: int = Field(gt=0)


class DuplexConfig(BaseModel):
    """``config.json`` of a duplex checkpoint."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model_type: Literal["duologue_duplex"] = "duologue_duplex"
    unit_ms: int = Field(gt=0)
    """Length of a unit; each is ``unit_ms / row_ms`` rows of audio."""
    row_ms: int = 100
    """Audio of one embedding row (MiniCPM-o 4.5: 10 rows a second)."""
    max_unit_tokens: int = 20
    """Tokens of one unit's answer at most, its terminator included (MiniCPM-o 4.5)."""
    codes_per_unit: int = Field(gt=0)
    """Codec frames the talker writes for the text of one unit (MiniCPM-o 4.5: 25 for 1 s)."""
    tokens: UnitTokens
    codec: CodecConfig
