from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.config import ConfigError
from duologue.engine.messages import Pcm
from duologue.engine.models.minicpmo.hearing.ear import Ear, Hearing
from duologue.engine.runners.base import Embeddings
from tests.engine.models.minicpmo.hearing.small import HIDDEN, config, ear, units, weights

SHORT = 202
"""Positions with which a stream starts anew after every three units."""
EAR = ear(SHORT)
EAR_1500 = ear()


def alone(pcm: Sequence[Pcm]) -> list[Embeddings]:
    hearing = Hearing(EAR)
    return [hearing.hear(unit) for unit in pcm]


def same(one: Embeddings, other: Embeddings) -> None:
    assert one.key == other.key
    np.testing.assert_allclose(one.rows, other.rows, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def sessions() -> list[tuple[list[Pcm], list[Embeddings]]]:
    """What some sessions say, and its rows when each is heard alone."""
    return [(pcm, alone(pcm)) for pcm in (units(9, seed) for seed in range(4))]


@settings(max_examples=25)
@given(batches=st.lists(st.permutations(range(4)).flatmap(lambda order: st.integers(1, 4).map(lambda n: order[:n])),
                        min_size=1, max_size=9))
def test_rows_are_the_same_in_whatever_batches_sessions_are_heard(
        sessions: list[tuple[list[Pcm], list[Embeddings]]], batches: list[list[int]]) -> None:
    streams = [Hearing(EAR) for _ in sessions]
    for batch in batches:
        at = [streams[i].units for i in batch]
        found = EAR.hear([streams[i] for i in batch], [sessions[i][0][n] for i, n in zip(batch, at, strict=True)])
        for i, n, rows in zip(batch, at, found, strict=True):
            same(rows, sessions[i][1][n])


def test_a_unit_is_ten_rows_from_the_first_on_whatever_is_in_it() -> None:
    silence, loudest = np.zeros(16_000, np.int16), np.full(16_000, 32_767, np.int16)
    square = np.where(np.arange(16_000) % 40 < 20, 32_767, -32_768).astype(np.int16)
    for unit in alone([silence, loudest, silence, square, square, loudest, silence, silence]):
        assert unit.rows.shape == (10, HIDDEN)
        assert unit.rows.dtype == np.float32
        assert np.isfinite(unit.rows).all()


def test_silence_from_the_first_unit_on_is_finite() -> None:
    assert all(np.isfinite(unit.rows).all() for unit in alone([np.zeros(16_000, np.int16)] * 7))


@pytest.mark.parametrize(("positions", "lasts"), [(1500, 29), (SHORT, 3), (103, 2), (102, 1), (50, 1)])
def test_a_stream_starts_anew_before_its_positions_are_full(positions: int, lasts: int) -> None:
    """As released: once the next unit, with the two positions around it, would fill them."""
    made = ear(positions)
    hearing = Hearing(made)
    hearing.past.fill_(torch.nan)
    pcm = units(lasts + 1)
    for unit in pcm[:lasts]:
        hearing.hear(unit)
    before = hearing.past.clone()
    assert before.shape[1] == 50 * lasts
    assert before.isfinite().all()
    hearing.hear(pcm[lasts])
    assert (hearing.past != before)[:, :50].any()
    assert (hearing.past == before)[:, 50:].all()


def test_no_padded_slot_ever_enters_the_kv() -> None:
    streams = [Hearing(EAR) for _ in range(3)]
    for stream in streams:
        stream.past.fill_(torch.nan)
    pcm = units(3)
    streams[0].hear(pcm[0])
    EAR.hear(streams[:2], pcm[:2])
    for found in EAR.hear(streams[::-1], pcm):
        assert np.isfinite(found.rows).all()
    for stream, count in zip(streams, (3, 2, 1), strict=True):
        assert stream.units == count
        assert stream.past[:, :50 * count].isfinite().all()
        assert stream.past[:, 50 * count:].isnan().all()


def test_what_is_kept_of_a_stream_is_bounded() -> None:
    hearing = Hearing(EAR)
    room = hearing.past.shape
    for unit in units(40):
        hearing.hear(unit)
    assert hearing.past.shape == room == (2, 150, 2, 2, 8)
    assert len(hearing.key) == 16


def test_a_stream_is_rebuilt_by_hearing_its_units_again() -> None:
    pcm = units(8)
    first, again = Hearing(EAR), Hearing(EAR)
    for unit in pcm[:7]:
        first.hear(unit)
    for unit in pcm[:7]:
        again.hear(unit)
    one, other = first.hear(pcm[7]), again.hear(pcm[7])
    assert (one.key, one.rows.tobytes()) == (other.key, other.rows.tobytes())


def test_a_key_is_that_of_all_that_was_heard() -> None:
    a, b = units(4, seed=5)[:2]
    assert a.any()
    keys = [unit.key for unit in alone([a, a, b])]
    assert len(set(keys)) == 3
    assert [unit.key for unit in alone([a, a])] == keys[:2]
    assert alone([b, a])[1].key not in keys
    assert EAR.clip(a).key not in keys


@pytest.mark.parametrize("bad", [np.zeros(15_999, np.int16), np.zeros(16_000, np.float32),
                                 np.zeros((1, 16_000), np.int16), np.zeros(0, np.int16)])
def test_what_is_not_a_unit_is_refused_and_no_stream_of_the_batch_has_heard_anything(bad: Pcm) -> None:
    pcm = units(3)
    streams = [Hearing(EAR), Hearing(EAR)]
    EAR.hear(streams, [pcm[0], pcm[0]])
    with pytest.raises(ValueError, match=r"a unit is int16 \(16000,\)"):
        EAR.hear(streams, [pcm[1], bad])
    for found in EAR.hear(streams, [pcm[1], pcm[1]]):
        same(found, alone(pcm)[1])


def test_a_batch_has_each_stream_once_and_a_unit_for_each() -> None:
    stream, (unit,) = Hearing(EAR), units(1)
    with pytest.raises(ValueError, match="each stream once"):
        EAR.hear([stream, stream], [unit, unit])
    with pytest.raises(ValueError, match="one unit for each"):
        EAR.hear([stream], [unit, unit])
    assert stream.units == 0
    assert EAR.hear([], []) == []


def test_a_batch_that_fails_underway_leaves_its_streams_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    pcm = units(5)
    stream = Hearing(EAR)
    for unit in pcm[:3]:
        stream.hear(unit)

    def fail(*_: object) -> None:
        raise torch.OutOfMemoryError

    with monkeypatch.context() as patched:
        patched.setattr(EAR, "_rows", fail)
        with pytest.raises(torch.OutOfMemoryError):
            stream.hear(pcm[3])
    for found, golden in zip([stream.hear(unit) for unit in pcm[3:]], alone(pcm)[3:], strict=True):
        same(found, golden)


@pytest.mark.parametrize(("samples", "rows"), [(1281, 1), (1600, 1), (2880, 1), (2881, 2), (16_000, 10), (17_000, 10),
                                               (40_000, 25), (480_000, 300), (481_000, 300), (500_000, 312)])
def test_a_clip_is_cut_to_whole_rows(samples: int, rows: int) -> None:
    pcm = np.concatenate(units(32))[:samples]
    found = EAR_1500.clip(pcm)
    assert found.rows.shape == (rows, HIDDEN)
    assert np.isfinite(found.rows).all()


def test_a_long_clip_is_encoded_30_s_at_a_time() -> None:
    pcm = np.concatenate(units(34))
    pieces = [EAR_1500.clip(pcm[:480_000]).rows, EAR_1500.clip(pcm[480_000:]).rows]
    assert EAR_1500.clip(pcm).rows.tobytes() == np.concatenate(pieces).tobytes()


@pytest.mark.parametrize("samples", [0, 1, 1280])
def test_a_clip_without_a_row_is_refused(samples: int) -> None:
    with pytest.raises(ValueError, match="too short to be heard; give at least 100 ms"):
        EAR.clip(np.zeros(samples, np.int16))


def test_a_clip_is_mono_int16() -> None:
    with pytest.raises(ValueError, match=r"a clip is int16 \(n,\)"):
        EAR.clip(np.zeros(16_000, np.float32))


def test_bfloat16_is_near_float32() -> None:
    small = ear(SHORT, torch.bfloat16)
    hearing = Hearing(small)
    for unit, golden in zip(units(4, seed=9), alone(units(4, seed=9)), strict=True):
        rows = hearing.hear(unit).rows
        assert rows.dtype == np.float32
        assert np.abs(rows - golden.rows).max() < 0.1 * np.abs(golden.rows).max()


def test_a_checkpoint_that_lacks_a_tensor_or_holds_no_numbers_is_refused() -> None:
    of = config()
    named = dict(weights(of))
    lacking = [(name, tensor) for name, tensor in named.items() if name != "apm.layers.1.fc2.bias"]
    with pytest.raises(ConfigError, match=r"hearing lacks tensor apm\.layers\.1\.fc2\.bias"):
        Ear(of, lacking, torch.device("cpu"), torch.float32)
    for value in (torch.nan, torch.inf):
        named["apm.conv1.bias"] = torch.full_like(named["apm.conv1.bias"], value)
        with pytest.raises(ConfigError, match=r"tensor apm\.conv1\.bias holds values that are no numbers"):
            Ear(of, named.items(), torch.device("cpu"), torch.float32)


def test_tensors_of_other_modules_are_passed_over() -> None:
    of = config(SHORT)
    made = Ear(of, [("vpm.head", torch.full((2,), torch.nan)), *weights(of)], torch.device("cpu"), torch.float32)
    same(Hearing(made).hear(units(1)[0]), alone(units(1))[0])


@pytest.mark.parametrize(("key", "value", "says"), [
    ("num_mel_bins", 128, "only 80"), ("audio_chunk_length", 0.5, "only units of 1 s"),
    ("audio_pool_step", 7, "a unit's 50 positions"), ("max_source_positions", 49, "a unit has 50")])
def test_a_config_that_cannot_be_run_is_refused(key: str, value: Any, says: str) -> None:
    of = config(**{key: value})
    with pytest.raises(ConfigError, match=rf"{key} is {value}.*{says}"):
        Ear(of, weights(of), torch.device("cpu"), torch.float32)
