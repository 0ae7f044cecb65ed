"""The text tokenizer of a MiniCPM-o 4.5 checkpoint, and its special tokens, looked up by their names."""

from __future__ import annotations

from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from duologue.engine.config import ConfigError
from duologue.engine.models.duplex.config import UnitTokens
from duologue.engine.models.stored import json_object

NAMES: dict[str, str] = {
    "unit": "<unit>", "unit_end": "</unit>", "listen": "<|listen|>", "speak": "<|speak|>",
    "turn_eos": "<|turn_eos|>", "chunk_eos": "<|chunk_eos|>", "im_start": "<|im_start|>", "im_end": "<|im_end|>",
    "chunk_tts_eos": "<|chunk_tts_eos|>", "tts_bos": "<|tts_bos|>", "tts_pad": "<|tts_pad|>",
    "audio_start": "<|audio_start|>", "audio_end": "<|audio_end|>",
}
"""Fields of :class:`SpecialTokens` and the names of their tokens."""

_WORDS = Regex(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
               r"|\s*[\r\n]+|\s+(?!\S)|\s+")
"""How Qwen2's tokenizer cuts text before it merges bytes (transformers, ``Qwen2Converter``)."""


class SpecialTokens(UnitTokens):
    """Ids of the special tokens."""

    chunk_tts_eos: int
    """``<|chunk_tts_eos|>``: ends the text of a unit, like ``chunk_eos``. A terminator."""
    tts_bos: int
    """``<|tts_bos|>``: stands in a reply for a ``listen`` the model may not say there."""
    tts_pad: int
    audio_start: int
    """``<|audio_start|>``: before the rows of a reference clip in the system text."""
    audio_end: int
    forbidden: tuple[int, ...]
    """Ids the model must never say: ``tts_pad``, and ``bad_token_ids`` of ``tokenizer_config.json``."""

    @property
    def all(self) -> tuple[int, ...]:
        """Every id of these."""
        return (*(getattr(self, field) for field in NAMES), *self.forbidden)


def read_tokenizer(folder: Path) -> Tokenizer:
    """Read ``tokenizer.json`` of ``folder`` or, where that is absent, what it can be made of.

    The latter are ``vocab.json``, ``merges.txt`` and the added tokens of ``tokenizer_config.json``. Raises
    ``ConfigError`` with the file that is no good.
    """
    whole = folder / "tokenizer.json"
    if not whole.exists():
        return _assemble(folder)
    try:
        return Tokenizer.from_file(str(whole))
    except Exception as error:  # The library raises Exception itself.
        raise ConfigError(f"{whole}: no tokenizer: {error}") from None


def special_tokens(tokenizer: Tokenizer, folder: Path) -> SpecialTokens:
    """Look the special tokens up in ``tokenizer``, which is that of ``folder``.

    Raises ``ConfigError`` with the token that is absent, or when there is no ``tokenizer_config.json``: without it the
    model would say what it must not.
    """
    ids: dict[str, int] = {}
    for field, name in NAMES.items():
        id = tokenizer.token_to_id(name)
        if id is None:
            raise ConfigError(f"{folder}: its tokenizer has no token {name}; MiniCPM-o 4.5's has. Fetch "
                              f"tokenizer.json, or vocab.json, merges.txt and tokenizer_config.json, of the release")
        ids[field] = id
    file = folder / "tokenizer_config.json"
    bad = json_object(file, "MiniCPM-o 4.5").get("bad_token_ids", [])
    if not isinstance(bad, list) or not all(isinstance(id, int) and id >= 0 for id in bad):
        raise ConfigError(f"{file}: bad_token_ids must be a list of token ids")
    return SpecialTokens(**ids, forbidden=tuple(dict.fromkeys([ids["tts_pad"], *bad])))


def _assemble(folder: Path) -> Tokenizer:
    """Make Qwen2's byte-level BPE tokenizer of the files of the release."""
    vocabulary, merges = folder / "vocab.json", folder / "merges.txt"
    try:
        made = Tokenizer(models.BPE.from_file(str(vocabulary), str(merges)))
    except Exception as error:  # The library raises Exception itself.
        raise ConfigError(f"{folder}: has no tokenizer.json, and none can be made of vocab.json and merges.txt: "
                          f"{error}") from None
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(_WORDS, behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    file = folder / "tokenizer_config.json"
    added = json_object(file, "MiniCPM-o 4.5").get("added_tokens_decoder", {})
    try:
        tokens = {int(id): AddedToken(token["content"], special=token["special"], normalized=token["normalized"],
                                      lstrip=token["lstrip"], rstrip=token["rstrip"],
                                      single_word=token["single_word"])
                  for id, token in added.items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ConfigError(f"{file}: added_tokens_decoder must give each added token's content by its id") from None
    for id in sorted(tokens):
        (made.add_special_tokens if tokens[id].special else made.add_tokens)([tokens[id]])
        if (given := made.token_to_id(tokens[id].content)) != id:
            raise ConfigError(f"{file}: token {tokens[id].content} has id {id}, but behind vocab.json and the tokens "
                              f"before it comes {given}")
    return made
