"""What only the torch runner does: other types, other devices."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from duologue.engine.config import ConfigError
from duologue.engine.runners.base import Embeddings, Finish, Piece, Rows
from duologue.engine.runners.torch.decoder import Decoder
from tests.engine.runners.torch_reference import finish, reference, runner, segment, tiny, tokens


def test_a_session_whose_numbers_overflow_fails_alone() -> None:
    made = runner(dtype="float16")
    expected = finish(made, segment("alone", 0, [tokens(30, 5)], 6))["alone"].tokens
    loud = Embeddings(np.full((3, 128), 1e6, np.float32), b"")
    told = finish(made, segment("good", 0, [tokens(30, 5)], 6), segment("loud", 0, [tokens(5, 1), loud], 6))
    assert told["loud"].finish is Finish.FAILED
    assert "not finite" in told["loud"].detail
    assert made.keepable("loud", 9) == 0
    assert told["good"].tokens == expected


@pytest.mark.parametrize(("device", "says"), [("cuda:99", "cuda:99"), ("abacus", "must be cpu, cuda"),
                                              ("meta", "must be cpu, cuda")])
def test_a_device_that_cannot_be_used_is_refused_with_the_reason(device: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        runner(device=device)


def test_half_precision_gives_nearly_the_same_states() -> None:
    pieces: list[Piece] = [tokens(40, 4)]
    expected, _ = reference().states(pieces)
    told = finish(runner(dtype="bfloat16"), segment("a", 0, pieces, None, "all"))["a"]
    made: Rows = np.stack([told.rows[i] for i in range(40)])
    alike = (made * expected).sum(-1) / np.linalg.norm(made, axis=-1) / np.linalg.norm(expected, axis=-1)
    # bfloat16 has 8 bits of mantissa, and a sharp attention of random weights makes much of the last.
    assert np.median(alike) > 0.99


def test_weights_in_another_type_are_converted() -> None:
    config, tensors = tiny()
    halves = {name: tensor.to(torch.bfloat16) for name, tensor in tensors.items()}
    decoder = Decoder(config, halves.items(), 16, torch.device("cpu"), torch.float32)
    rows = decoder.embed(torch.tensor([3]))
    assert rows.dtype == torch.float32
    assert torch.equal(rows[0], halves["model.embed_tokens.weight"][3].float())
