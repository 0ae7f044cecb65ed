"""The numpy side computes what the trained modules compute; torch's own arithmetic is the judge."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from duologue.engine.models.embedded.voice import weights
from duologue.engine.models.embedded.voice.decoder import CodeDecoder
from duologue.engine.models.embedded.voice.letters import Reader
from duologue.engine.models.embedded.voice.network import DIGITS, LEVELS, Network, Position
from duologue.engine.models.embedded.voice.symbols import BOS, BOUNDARY, EOS, ID, SYMBOLS, WORD, WORD_END
from duologue.engine.models.embedded.voice.utterance import CODES, Utterance, to_codes, to_digits
from tests.engine.models.embedded.trained.conftest import Modules
from training.voice import letters

_FIRST_PHONE = ID[BOUNDARY + "!"] + 1


@pytest.fixture(scope="module")
def network(modules: Modules) -> Network:
    return Network(weights.load(modules.folder, "talker"))


def words(count: int) -> list[list[int]]:
    chosen = np.random.default_rng(3)
    return [[*chosen.integers(_FIRST_PHONE, len(SYMBOLS), chosen.integers(1, 6)).tolist(), ID[BOUNDARY]]
            for _ in range(count)]


def test_the_talker_says_what_the_trained_module_expects(network: Network, modules: Modules) -> None:
    text = words(4)
    after = [*text[1:], [ID[EOS]]]
    utterance = Utterance(network)
    said = [utterance.say(word, behind) for word, behind in zip(text, after, strict=True)]
    symbols, digits, pointers = [ID[BOS], *text[0]], list[list[int]](), list[tuple[int, int, int]]()
    digits += [[0] * DIGITS] * len(symbols)
    pointers += [(0, 0, 0)] * len(symbols)
    for word, behind, frames in zip(text, after, said, strict=True):
        symbols += [*behind, ID[WORD]]
        digits += [[0] * DIGITS] * (len(behind) + 1)
        around = [*word, behind[0]]
        pointers += [*[(0, 0, 0)] * len(behind), (around[0], around[1], 0)]
        place = held = 0
        for code, now in zip(frames.codes, frames.places, strict=True):
            held = held + 1 if now == place else 0
            place = now
            symbols.append(-1)
            digits.append(to_digits(code[None])[0].tolist())
            pointers.append((around[now], around[now + 1], held))
        symbols.append(ID[WORD_END])
        digits.append([0] * DIGITS)
        pointers.append((0, 0, 0))
    symbol, digit, pointer = (torch.tensor(column)[None] for column in (symbols, digits, pointers))
    talker = modules.talker
    with torch.inference_mode():
        states = talker.states(symbol, digit, pointer)
        spoken = symbol[:, 1:] == -1
        logits = talker.digit_logits(states[:, :-1][spoken], pointer[:, 1:][spoken], digit[:, 1:][spoken])
    assert len(logits) == sum(len(frames.codes) for frames in said) > 10
    expected = logits.softmax(-1) @ torch.arange(LEVELS).float()
    assert ((expected - digit[:, 1:][spoken]).abs() <= 0.5 + 1e-4).all()


def test_a_state_is_the_modules_state_also_beyond_the_room_a_stream_has_at_first(
        network: Network, modules: Modules) -> None:
    text = [ID[BOS], *(symbol for word in words(150) for symbol in word)]
    stream = network.open()
    state = network.read_text(stream, [*text, ID[WORD]], Position(12, 13, 0))
    pointer = torch.zeros(1, len(text) + 1, 3, dtype=torch.long)
    pointer[0, -1] = torch.tensor([12, 13, 0])
    talker = modules.talker
    with torch.inference_mode():
        wanted = talker.states(torch.tensor([[*text, ID[WORD]]]), torch.zeros(1, len(text) + 1, DIGITS).long(), pointer)
        moves = talker.advance(wanted[0, -1])
    assert stream.rows == len(text) + 1 > 512
    np.testing.assert_allclose(state, wanted[0, -1].numpy(), atol=2e-4)
    np.testing.assert_allclose(network.moves(state), moves.numpy(), atol=2e-3)


def test_codes_are_decoded_frame_by_frame_as_the_module_decodes_them_at_once(modules: Modules) -> None:
    digits = np.random.default_rng(0).integers(0, 8, (20, DIGITS))
    decoder = CodeDecoder(weights.load(modules.folder, "codec"))
    state = decoder.open()
    vectors = np.concatenate([decoder.step(state, row.astype(np.float32)) for row in digits])
    with torch.inference_mode():
        wanted = modules.codec.decode(torch.from_numpy(digits)[None].float())[0].numpy()
    np.testing.assert_allclose(vectors[:, 1:], wanted[:, 2:], atol=1e-4)
    voiced = wanted[:, 1] > 0.5
    assert 0 < voiced.sum() < len(voiced)
    np.testing.assert_allclose(vectors[:, 0], np.where(voiced, np.exp(wanted[:, 0]), 0), rtol=1e-4)


@pytest.mark.parametrize("word", ["a", "xerox", "strengths", "antidisestablishmentarianism"])
def test_letters_are_read_as_the_module_reads_them_among_longer_words(word: str, modules: Modules) -> None:
    reader = Reader(weights.load(modules.folder, "letters"))
    assert reader.read(word) == letters.read(modules.reader, [word, "q" * 30])[0]


def test_codes_and_digits_are_the_same_thing() -> None:
    codes: NDArray[np.int32] = np.random.default_rng(0).integers(0, CODES, (50, 4), dtype=np.int32)
    assert np.array_equal(to_codes(to_digits(codes).astype(np.int64)), codes)
    assert to_digits(np.array([[511, 0, 1, 8]], np.int32)).tolist() == [[7, 7, 7, 0, 0, 0, 1, 0, 0, 0, 1, 0]]
