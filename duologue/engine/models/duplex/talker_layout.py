"""What ``talker/model.safetensors`` of a duplex checkpoint has beside the tensors of ``Qwen3ForCausalLM``.

The talker's vocabulary is the codec's codes, then two more: the end of the reply's speech, and the token that stands
between a unit's condition and its codes (``audio_bos`` and the talker's EOS in MiniCPM-o 4.5).
"""

from __future__ import annotations

from duologue.engine.models.duplex.config import CodecConfig

TENSORS = ("emb_text.weight", "projector.weight")
"""Their names."""


def eos(codec: CodecConfig) -> int:
    """The token that ends a reply's codes."""
    return codec.codebook_size


def audio_bos(codec: CodecConfig) -> int:
    """The token after a unit's condition: codes follow."""
    return codec.codebook_size + 1


def vocabulary(codec: CodecConfig) -> int:
    """``vocab_size`` of the talker."""
    return codec.codebook_size + 2


def tensors(text_vocabulary: int, thinker_hidden: int, talker_hidden: int) -> dict[str, tuple[int, ...]]:
    """Name and shape of the tensors that make a condition, all float32.

    The condition of a text token is ``emb_text.weight[id] + h / |h|``, where h is ``projector.weight @ hidden`` of the
    thinker's state after the token was fed.
    """
    return {"emb_text.weight": (text_vocabulary, talker_hidden), "projector.weight": (talker_hidden, thinker_hidden)}
