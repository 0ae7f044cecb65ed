"""What the talker's model is given for a text: its condition, as rows of the talker's embedding space."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch.nn import functional

from duologue.engine.messages import Conditioning
from duologue.engine.runners.base import Embeddings, Tokens


class DuplexConditioner:
    """Makes conditions of text tokens and of the thinker's states of them (as MiniCPM-o 4.5's talker has it)."""

    def __init__(self, emb_text: torch.Tensor, projector: torch.Tensor, tokenizer: Tokenizer, audio_bos: int) -> None:
        """Take ``emb_text`` (text vocabulary, talker hidden_size), ``projector`` (talker, thinker hidden_size)."""
        self._tokenizer = tokenizer
        self._audio_bos = Tokens((audio_bos,))
        self._emb_text = emb_text.float()
        self._projector = projector.float()

    def check(self, conditioning: Conditioning) -> None:
        """See ``speech.Conditioner``."""
        check_conditioning(conditioning, len(self._emb_text), self._projector.shape[1])

    def by_words(self, text: str, start: int) -> Conditioning:
        """See ``speech.Conditioner``. A state of zeros adds nothing to the token's own embedding."""
        return words_alone(self._tokenizer, text, start, self._projector.shape[1])

    def pieces(self, conditioning: Conditioning) -> tuple[Embeddings, Tokens]:
        """The condition, and ``audio_bos`` behind it."""
        return self.condition(conditioning), self._audio_bos

    @torch.inference_mode()
    def condition(self, conditioning: Conditioning) -> Embeddings:
        """A row for each token: ``emb_text[token] + h / |h|``, where h is the projected state."""
        device = self._emb_text.device
        tokens = torch.from_numpy(conditioning.tokens.astype(np.int64)).to(device)
        states = torch.from_numpy(np.ascontiguousarray(conditioning.rows, np.float32)).to(device)
        rows = (self._emb_text[tokens] + functional.normalize(states @ self._projector.T, dim=-1)).cpu().numpy()
        return embeddings(rows)


def check_conditioning(conditioning: Conditioning, vocabulary: int, hidden: int) -> None:
    """Raise ``ValueError`` for tokens or states that are not the thinker's of these sizes, or not as many of each."""
    tokens, rows = conditioning.tokens, conditioning.rows
    if rows.shape != (len(tokens), hidden) or len(conditioning.ends) != len(tokens):
        raise ValueError(f"{len(tokens)} tokens come with {len(conditioning.ends)} ends and states of shape "
                         f"{list(rows.shape)}; this checkpoint's thinker has {hidden} numbers a state")
    if len(tokens) and not 0 <= tokens.min() <= tokens.max() < vocabulary:
        raise ValueError(f"a text token is not in the thinker's vocabulary of {vocabulary}")
    if not np.isfinite(rows).all():
        raise ValueError("the thinker's states have values that are not finite")


def words_alone(tokenizer: Tokenizer, text: str, start: int, hidden: int) -> Conditioning:
    """The tokens of ``text``, which is at character ``start`` of its reply, with states of zeros for those lost."""
    encoded = tokenizer.encode(text, add_special_tokens=False)
    ends = np.array([end for _, end in encoded.offsets], np.int32) + start
    return Conditioning(np.array(encoded.ids, np.int32), np.zeros((len(encoded.ids), hidden), np.float32),
                        ends.astype(np.int32))


def embeddings(rows: NDArray[np.float32]) -> Embeddings:
    """``rows``, named by what is in them."""
    return Embeddings(rows, hashlib.blake2b(rows.tobytes(), digest_size=16).digest())
