from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from duologue.engine.config import ConfigError
from duologue.engine.models.duplex import random
from duologue.engine.models.duplex.words import Text, Words


def trained() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        ["the quick brown fox jumps over the lazy dog", "Grüße aus Köln, 東京 と 大阪 🙂🙃"] * 20,
        trainers.BpeTrainer(vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                            special_tokens=["<|speak|>"], show_progress=False))
    return tokenizer


TOKENIZER = trained()
WORDS = Words(TOKENIZER)


@given(st.text(max_size=40))
def test_text_that_came_token_by_token_is_the_text(text: str) -> None:
    said = Text(WORDS)
    for token in TOKENIZER.encode(text).ids:
        before = said.text
        said.add(token)
        assert said.text.startswith(before)
        assert len(said.ends) == len(said.tokens)
    assert said.text == text
    assert said.whole == len(said.tokens)
    assert said.ends == sorted(said.ends)


def test_a_character_waits_for_its_bytes_and_its_tokens_end_with_it() -> None:
    bytes_only = Words(random.tokenizer(random.shape("tiny")))
    tokens = random.tokenizer(random.shape("tiny")).encode("a東b").ids
    said = Text(bytes_only)
    seen = []
    for token in tokens:
        said.add(token)
        seen.append((said.text, said.whole))
    assert seen == [("a", 1), ("a", 1), ("a", 1), ("a東", 4), ("a東b", 5)]
    assert said.ends == [1, 2, 2, 2, 3]


def test_what_is_no_text_is_replaced_at_once_and_half_a_character_at_the_end_is_none() -> None:
    words = Words(random.tokenizer(random.shape("tiny")))
    by_byte = {words.of(token): token for token in range(256)}
    said = Text(words)
    said.add(by_byte[b"\xff"])
    assert (said.text, said.whole) == ("�", 1)
    said.add(by_byte[b"\xe6"])
    assert said.whole == 1
    said.end()
    assert (said.text, said.whole, said.ends) == ("�", 2, [1, 1])


def test_special_tokens_are_no_text() -> None:
    speak = TOKENIZER.token_to_id("<|speak|>")
    assert speak is not None
    assert (WORDS.of(speak), WORDS.of(10**6)) == (b"", b"")
    assert WORDS.of(TOKENIZER.encode("the").ids[0]) == b"the"


def test_another_kind_of_tokenizer_is_refused() -> None:
    with pytest.raises(ConfigError, match="ByteLevel"):
        Words(Tokenizer(models.WordPiece()))
