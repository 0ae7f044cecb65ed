"""How sure the thinker is of an answer, and that it asks back where it is not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine.models.embedded.thinking.doubt import ASK_BACK, REFUSALS, SURE, considered, likelihood
from duologue.engine.models.embedded.thinking.format import Answer, Call, Format, Heard
from duologue.engine.models.embedded.thinking.model import Model
from duologue.engine.models.embedded.thinking.record import Record
from duologue.engine.runners.base import Copy, Sampling
from duologue.engine.runners.window import WindowConfig
from tests.engine.models.embedded.thinking.oracle import Oracle, vocabulary

TIME = Heard(("what", "time", "is", "it"), 160)


@given(st.lists(st.lists(st.integers(-4, 4), min_size=4, max_size=4), min_size=1, max_size=4), st.data())
def test_the_likelihood_is_the_product_of_each_tokens_share(logits: list[list[int]], data: st.DataObject) -> None:
    tokens = [0, *(data.draw(st.integers(0, 2)) for _ in logits)]
    shares = [math.exp(row[token]) / sum(map(math.exp, row[:3])) for row, token in zip(logits, tokens[1:], strict=True)]
    found = likelihood(np.array(logits, np.float32), np.eye(4, dtype=np.float32), tokens,
                       Sampling(max_tokens=9, forbidden=(3,)))
    assert found == pytest.approx(math.prod(shares), rel=1e-5)


def test_what_could_not_be_chosen_takes_no_share() -> None:
    even = np.zeros((3, 6), np.float32)
    rule = Sampling(max_tokens=9, copy=Copy((1,), (2,), (((3,), (4,)),)))
    # Behind the opening token one of two words, then one that follows or the end.
    assert likelihood(even, np.eye(6, dtype=np.float32), [0, 1, 3, 2], rule) == pytest.approx(1 / 6 * 1 / 2 * 1 / 2)


def test_a_token_forced_by_the_budget_takes_no_share() -> None:
    rule = Sampling(max_tokens=3, at_budget=1)
    even = np.zeros((2, 4), np.float32)
    assert likelihood(even, np.eye(4, dtype=np.float32), [0, 2, 1], rule) == pytest.approx(1 / 4)


@pytest.mark.parametrize(("answer", "asks"), [
    (Answer(speaks=True, text="Hi.", whole=True, likelihood=SURE - 0.01), True),
    (Answer(speaks=True, text="Hi.", whole=True, likelihood=SURE), False),
    (Answer(speaks=True, call=Call("time", {}), likelihood=0.1), True),
    (Answer(speaks=True, text=REFUSALS[1], whole=True, likelihood=0.1), False),
    (Answer(likelihood=0.1), False), (Answer(speaks=True, likelihood=0.1), False)])
def test_an_answer_that_is_not_sure_becomes_a_question(answer: Answer, asks: bool) -> None:
    assert (considered(answer, TIME).text == ASK_BACK) == asks
    assert considered(answer, replace(TIME, over=True)) is answer


def test_the_thinker_asks_back_where_its_runner_is_not_sure() -> None:
    form = Format(vocabulary())
    runner = Oracle(form)
    record = Record(Model(runner, form, WindowConfig(high=2000, low=1000), runner.table), "s")
    assert record.ask(TIME).call == Call("time", {})
    runner.likely = SURE
    asked = record.ask(replace(TIME, silent_ms=240))
    assert (asked.speaks, asked.text, asked.call) == (True, ASK_BACK, None)
