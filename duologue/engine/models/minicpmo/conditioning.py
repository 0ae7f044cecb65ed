"""What the talker is given for a unit's text: its condition, as rows of the talker's embedding space."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn.functional import linear, normalize, relu

from duologue.engine.messages import Conditioning
from duologue.engine.models.duplex.conditioning import check_conditioning, embeddings, words_alone
from duologue.engine.runners.base import Embeddings

TENSORS = ("emb_text.weight", "projector_semantic.linear1.weight", "projector_semantic.linear1.bias",
           "projector_semantic.linear2.weight", "projector_semantic.linear2.bias")
"""What it is made with, of the talker's tensors."""


class TtsConditioner:
    """Row of a token: ``emb_text[token] + h / |h|`` with h of the thinker's state by two linear layers, ReLU between.

    Behind a unit's rows stands that of ``audio_bos``, alone when the unit has no text (the released ``MiniCPMDuplex``).
    """

    def __init__(self, tensors: Mapping[str, torch.Tensor], tokenizer: Tokenizer, audio_bos: int) -> None:
        """Take those of ``TENSORS``, on one device: the embeddings stay in their type, the layers become float32."""
        self._tokenizer = tokenizer
        self._emb_text = tensors["emb_text.weight"]
        self._layers = [(tensors[f"projector_semantic.linear{i}.weight"].float(),
                         tensors[f"projector_semantic.linear{i}.bias"].float()) for i in (1, 2)]
        self._audio_bos = self._emb_text[audio_bos].float().cpu().numpy()[None]

    @property
    def _hidden(self) -> int:
        return self._layers[0][0].shape[1]

    def check(self, conditioning: Conditioning) -> None:
        """See ``speech.Conditioner``."""
        check_conditioning(conditioning, len(self._emb_text), self._hidden)

    def by_words(self, text: str, start: int) -> Conditioning:
        """See ``speech.Conditioner``. A state of zeros adds nothing to the token's own embedding."""
        return words_alone(self._tokenizer, text, start, self._hidden)

    @torch.inference_mode()
    def pieces(self, conditioning: Conditioning) -> tuple[Embeddings]:
        """All rows in one piece."""
        device = self._emb_text.device
        tokens = torch.from_numpy(conditioning.tokens.astype(np.int64)).to(device)
        states = torch.from_numpy(np.ascontiguousarray(conditioning.rows, np.float32)).to(device)
        (first, first_bias), (second, second_bias) = self._layers
        projected = normalize(linear(relu(linear(states, first, first_bias)), second, second_bias), dim=-1)
        known = states.any(dim=-1, keepdim=True)
        rows = (self._emb_text[tokens].float() + projected * known).cpu().numpy()
        return (embeddings(np.concatenate((rows, self._audio_bos))),)
