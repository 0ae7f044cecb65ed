"""Answers unit by unit equal those of the released code, greedy, over listening, speaking and two interruptions."""

from __future__ import annotations

import select
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest
import torch

from duologue.engine.messages import AppendUnit, Choice, Decision, Open, ReplyText, StageOutput, Unit
from duologue.engine.models.duplex.family import Ask
from duologue.engine.models.duplex.floor import Floor, FloorOptions
from duologue.engine.models.duplex.mind import Model
from duologue.engine.models.duplex.thinker import Thinker
from duologue.engine.models.duplex.words import Words
from duologue.engine.models.minicpmo.checkpoint import Checkpoint, load
from duologue.engine.models.minicpmo.format import Answer, Format, SamplingOptions
from duologue.engine.models.minicpmo.hearing.ear import Ear
from duologue.engine.models.minicpmo.weights import thinker_weights
from duologue.engine.runners.base import Embeddings, Runner, Tokens
from duologue.engine.runners.opening import RunnerOptions, open_runner
from duologue.engine.runners.sessions import Sessions
from duologue.engine.runners.window import WindowConfig
from tests.engine.models.minicpmo.golden.inputs import FORCED, INTERRUPTED, RATE, UNITS, caller, reference
from tests.engine.models.minicpmo.golden.values import SOURCE, parts, values

GOLDEN = values("decisions")
CLOSE = 1e-3
"""Two implementations of one model in single precision, over 800 positions."""


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return load(SOURCE)


@pytest.fixture(scope="module")
def ear(checkpoint: Checkpoint) -> Ear:
    return Ear(checkpoint.config, checkpoint.tensors("hearing"), torch.device("cpu"), torch.float32)


@pytest.fixture(scope="module")
def form(checkpoint: Checkpoint, ear: Ear) -> Format:
    clip = ear.clip(reference())
    return Format(checkpoint.config, checkpoint.tokens, checkpoint.tokenizer,
                  SamplingOptions(temperature=0, force_listen_count=FORCED), lambda _: clip)


@dataclass
class Answered:
    answer: Answer
    rows: dict[int, npt.NDArray[np.float32]] = field(default_factory=dict)

    @property
    def states(self) -> npt.NDArray[np.float32]:
        """Those the talker is given."""
        return np.array([self.rows[place] for place in self.answer.places], np.float32).reshape(-1, 128)


def session(runner: Runner, form: Format, ear: Ear) -> list[Answered]:
    """The golden session: as the release does, an interruption closes the reply and leaves what was said."""
    sessions, hearing, floor = Sessions(runner, form.grammar), ear.stream(), Floor(FloorOptions(), FORCED, auto=True)
    sessions.open("s", form.prefix("", "marin"))
    pcm, recent, open_reply = caller(), list[int](), False
    answers: list[Answered] = []
    for unit in range(UNITS):
        if unit in INTERRUPTED:
            open_reply = False
        rule = floor.rule(unit, open=open_reply)
        sessions.append("s", form.unit(hearing.hear(pcm[unit * RATE:(unit + 1) * RATE])))
        sessions.generate("s", form.sampling(Ask(unit, rule, open_reply, tuple(recent))), "generated")
        answered = Answered(form.answer(open=open_reply))
        while sessions.busy("s"):
            if not sessions.ready:
                assert runner.wake_fd is not None
                assert select.select([runner.wake_fd], [], [], 60)[0], "nothing came"
            for output in sessions.step():
                answered.answer.take(output.tokens)
                for i, row in enumerate(output.rows if output.rows is not None else ()):
                    answered.rows[output.first_row + i] = row
        answer = answered.answer
        if unit >= FORCED:
            recent = [*recent, *form.counted(answer.well_formed)][-form.recent:]
        open_reply = (open_reply or answer.speaks) and not (answer.ends or answer.listens)
        answers.append(answered)
    return answers


def test_a_session_begins_with_the_released_template(form: Format) -> None:
    before, clip, behind = form.prefix("", "marin")
    assert isinstance(before, Tokens)
    assert isinstance(behind, Tokens)
    assert isinstance(clip, Embeddings)
    assert list(before.ids) == GOLDEN["before"].tolist()
    assert list(behind.ids) == GOLDEN["behind"].tolist()
    assert len(clip) == 32


def check(answers: list[Answered]) -> None:
    tokens = [part.tolist() for part in parts("decisions", "answers")]
    assert [list(each.answer.well_formed) for each in answers] == tokens
    assert [each.answer.listens for each in answers] == [len(each) == 1 and each[0] == tokens[0][0] for each in tokens]
    assert [each.answer.ends for each in answers if each.answer.speaks] \
        == GOLDEN["ends"][[each.answer.speaks for each in answers]].tolist()
    for each, states in zip(answers, parts("decisions", "states"), strict=True):
        np.testing.assert_allclose(each.states, states, rtol=CLOSE, atol=CLOSE)


def test_greedy_decisions_texts_and_states_are_the_releases(checkpoint: Checkpoint, form: Format, ear: Ear) -> None:
    runner = open_runner(checkpoint.thinker, thinker_weights(SOURCE), RunnerOptions())
    answers = session(runner, form, ear)
    check(answers)
    # It has everything in it: listening, whole replies, a unit that is full, and a listen that was not to be.
    kinds = {(each.answer.speaks, each.answer.ends) for each in answers}
    assert kinds == {(False, False), (True, False), (True, True)}
    assert max(len(each.answer.sampled) for each in answers) == 20
    assert any(checkpoint.tokens.tts_bos in each.answer.sampled for each in answers)


@pytest.mark.component
def test_vllm_decides_as_the_release_does(checkpoint: Checkpoint, form: Format, ear: Ear) -> None:
    options = {"max_model_len": 2048, "enforce_eager": True, "kv_positions": 4096, "max_num_seqs": 2}
    runner = open_runner(checkpoint.thinker, thinker_weights(SOURCE),
                         RunnerOptions.model_validate({"runner": "vllm", "vllm": options}))
    try:
        check(session(runner, form, ear))
    finally:
        runner.close()


def test_the_thinker_answers_the_releases_session(ear: Ear, checkpoint: Checkpoint, form: Format) -> None:
    # Up to the interruption, where ours closes the reply in the sequence too.
    runner = open_runner(checkpoint.thinker, thinker_weights(SOURCE), RunnerOptions())
    stage = Thinker(runner, Model(form, Words(checkpoint.tokenizer), ear, 64, FloorOptions()), WindowConfig())
    stage.receive(Open("s", 0, 0, 0, voice="marin"))
    out: list[StageOutput] = []
    for unit in range(INTERRUPTED[0]):
        stage.receive(AppendUnit("s", 0, Unit(unit, caller()[unit * RATE:(unit + 1) * RATE], 0.0)))
        while stage.ready:
            out += stage.step()
    decisions = [each for each in out if isinstance(each, Decision)]
    answers = [part.tolist() for part in parts("decisions", "answers")]
    assert [list(each.tokens) for each in decisions] == answers[:INTERRUPTED[0]]
    assert [each.choice is Choice.LISTEN for each in decisions] == GOLDEN["listens"][:INTERRUPTED[0]].tolist()
    given = [each.conditioning.rows for each in out if isinstance(each, ReplyText) and each.conditioning is not None]
    states = np.concatenate(parts("decisions", "states")[:INTERRUPTED[0]])
    np.testing.assert_allclose(np.concatenate(given), states, rtol=CLOSE, atol=CLOSE)
