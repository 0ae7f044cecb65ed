"""A session's log costs no more for having been listened to for long, and loses no text for it."""

from __future__ import annotations

from itertools import count, islice

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.messages import AppendUnit, Decision, Open, Unit
from duologue.engine.runners.base import Sampling, Tokens
from duologue.engine.runners.log import Grammar, Log
from duologue.engine.runners.sessions import Sessions
from tests.engine.models.duplex import fake_thinker
from tests.engine.runners.fake_runner import FakeRunner, capacity
from tests.engine.test_rules_cost import operations

LISTEN = 9
GRAMMAR = Grammar(terminators=True, unsaid=frozenset({LISTEN}))
SILENT = Sampling(max_tokens=1, first=(LISTEN,))


def test_a_unit_costs_the_same_however_long_the_session_has_listened() -> None:
    sessions = Sessions(FakeRunner(capacity(positions=16_384, max_length=16_000)), GRAMMAR)
    sessions.open("s", [Tokens((1, 2, 3))])

    def listen() -> None:
        sessions.append("s", [Tokens((4,) * 12)])
        assert sessions.said("s", 512) == ()
        sessions.generate("s", SILENT, "generated")
        while sessions.ready:
            sessions.step()

    for _ in range(50):
        listen()
    early = operations(listen)
    for _ in range(1000):
        listen()
    assert early > 100
    assert operations(listen) <= early * 1.02


def test_a_unit_of_the_duplex_thinker_costs_the_same_however_often_its_window_has_slid() -> None:
    stage = fake_thinker.create({"window": {"high": 1000, "low": 700}})
    stage.receive(Open("s", 0, 0, 0))
    noise = np.random.default_rng(0)
    numbers = count()
    decided: list[int] = []

    def hear(units: int) -> None:
        for number in islice(numbers, units):
            pcm = (noise.normal(size=fake_thinker.UNIT_SAMPLES) * 100).astype(np.int16)
            stage.receive(AppendUnit("s", 0, Unit(number, pcm, speech=0.0)))
            while stage.ready:
                decided.extend(output.unit for output in stage.step() if isinstance(output, Decision))

    hear(300)
    early = operations(lambda: hear(60))
    hear(500)
    late = operations(lambda: hear(60))
    assert decided == list(range(920))
    # Some units are answered with more words than others.
    assert late <= early * 1.3


ACTIONS: st.SearchStrategy[tuple[str, list[int]]] = st.one_of(
    st.tuples(st.just("append"), st.lists(st.integers(0, 5) | st.just(LISTEN), min_size=1, max_size=4)),
    st.tuples(st.just("revise"), st.lists(st.just(LISTEN) | st.integers(0, 5), min_size=1, max_size=4)),
    st.tuples(st.sampled_from(["rollback", "forget"]), st.just([])))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.tuples(ACTIONS, st.integers(0, 99)), max_size=40), st.integers(1, 12))
def test_the_text_said_last_is_that_of_the_answers_in_the_sequence(
        actions: list[tuple[tuple[str, list[int]], int]], last: int) -> None:
    log = Log([Tokens((1,))], GRAMMAR)
    answers: dict[int, list[int]] = {}
    for (kind, tokens), place in actions:
        if kind == "append":
            answers[log.append([Tokens((7, 7))])] = tokens
            log.answer(tokens)
        elif kind == "revise" and answers:
            number = list(answers)[place % len(answers)]
            log.revise(number, tokens)
            answers[number] = tokens
        elif kind == "rollback":
            mark = log.first + place % (log.next - log.first + 1)
            log.rollback(mark)
            answers = {number: answer for number, answer in answers.items() if number < mark}
        elif kind == "forget" and answers:
            # No text is kept of what is forgotten.
            log.forget(1 + place % len(answers), 0)
            answers = {number: answer for number, answer in answers.items() if number >= log.first}
        text = [token for number in sorted(answers) for token in answers[number] if token != LISTEN]
        assert log.said(last) == tuple(text[-last:])
