"""Conditions, logits and codes equal those of the released code, greedy, through both runners.

All compute in float32 on a CPU, in another order. Codes are the likeliest, and at every step the likeliest two are at
least 0.01 apart, where logits of some 10 are to agree to 0.001 at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from duologue.engine.messages import Conditioning
from duologue.engine.models.minicpmo.checkpoint import Checkpoint, load
from duologue.engine.models.minicpmo.conditioning import TENSORS, TtsConditioner
from duologue.engine.models.minicpmo.voice import TtsSpeech, VoiceOptions
from duologue.engine.models.minicpmo.weights import talker_weights
from duologue.engine.runners.base import Embeddings, Rows, Runner, Segment, Tokens
from duologue.engine.runners.opening import RunnerOptions, open_runner
from duologue.engine.runners.vllm.options import VllmOptions
from tests.engine.models.minicpmo.golden.inputs import INTERRUPTED
from tests.engine.models.minicpmo.golden.values import SOURCE, parts, values
from tests.engine.runners.vllm.driving import finish

ATOL = 1e-4


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return load(SOURCE)


def replies() -> list[list[int]]:
    """The spoken units of each reply, as places in the talker's arrays; a reply ends, or is interrupted."""
    ends, found = values("decisions")["ends"], list[list[int]]()
    begins = True
    for place, unit in enumerate(values("talker")["units"]):
        if begins or unit in INTERRUPTED:
            found.append([])
        found[-1].append(place)
        begins = bool(ends[unit])
    return found


def test_conditions_are_made_of_tokens_and_states_as_the_release_makes_them(checkpoint: Checkpoint) -> None:
    made = TtsConditioner({name: tensor for name, tensor in checkpoint.tensors("talker") if name in TENSORS},
                          checkpoint.tokenizer, checkpoint.config.tts.audio_bos_token_id)
    tokens, states = parts("decisions", "answers"), parts("decisions", "states")
    lengths = set()
    for unit, golden in zip(values("talker")["units"], parts("talker", "conditions"), strict=True):
        text = tokens[unit][1:1 + len(states[unit])]
        lengths.add(len(text))
        piece, = made.pieces(Conditioning(text, states[unit], np.zeros(len(text), np.int32)))
        np.testing.assert_allclose(piece.rows, golden, rtol=1e-4, atol=1e-5)
    assert {0, 18} <= lengths, "units without text, and full ones"


@dataclass
class Reply:
    """One reply, as far as it is spoken."""

    places: list[int]
    held: int = 0
    unfed: tuple[int, ...] = ()


def spoken(runner: Runner, speech: TtsSpeech) -> tuple[list[list[int]], list[dict[int, Rows]]]:
    """Speak all replies at once on the released conditions: codes of each unit, and its states by the step they decide.

    The release stops a reply's last unit after 25 codes as well; ours would go on.
    """
    ends, units, conditions = values("decisions")["ends"], values("talker")["units"], parts("talker", "conditions")
    codes: list[list[int]] = [[] for _ in units]
    starts = [0] * len(units)
    states: dict[str, dict[int, Rows]] = {}
    all_replies = {f"reply {number}": Reply(places) for number, places in enumerate(replies())}
    for turn in range(max(len(reply.places) for reply in all_replies.values())):
        segments = []
        for name, reply in all_replies.items():
            if turn < len(reply.places):
                place = reply.places[turn]
                golden = conditions[place]
                pieces = (*((Tokens(reply.unfed),) if reply.unfed else ()), Embeddings(golden, golden.tobytes()))
                starts[place] = reply.held + len(reply.unfed) + len(golden) - 1
                segments.append(Segment(name, reply.held, pieces, speech.sampling(
                    first=turn == 0, last=bool(ends[units[place]]), codes=25, recent=(), of_unit=0, seed=0), "all"))
        for name, told in finish(runner, *segments).items():
            reply, ended = all_replies[name], told.tokens[-1] == speech.eos
            codes[reply.places[turn]] = told.tokens[:-1] if ended else told.tokens
            reply.held, reply.unfed = told.cached, () if ended else (told.tokens[-1],)
            states.setdefault(name, {}).update(told.rows)
    steps: list[dict[int, Rows]] = [{} for _ in units]
    for name, reply in all_replies.items():
        runner.drop(name)
        for place in reply.places:
            steps[place] = {step: states[name][starts[place] + step] for step in range(len(codes[place]) + 1)
                            if starts[place] + step in states[name]}
    return codes, steps


def check(runner: Runner, checkpoint: Checkpoint) -> None:
    tts = checkpoint.config.tts
    speech = TtsSpeech(VoiceOptions(temperature=0, short_first_unit=True), eos=tts.eos, unit_codes=25,
                       frame_samples=1920, silence_code=4218)
    codes, steps = spoken(runner, speech)
    golden = [part.tolist() for part in parts("talker", "codes")]
    assert codes == golden
    assert {14, 20, 25} <= {len(unit) for unit in golden}, "ends of speech in a first and in a last unit"
    head = dict(talker_weights(SOURCE)(torch.device("cpu")))["lm_head.weight"].numpy()
    arrays, at, compared = values("talker"), 0, 0
    for unit, states in zip(golden, steps, strict=True):
        for step, state in states.items():
            logits, row = head @ state, at + step
            np.testing.assert_allclose(logits[arrays["top"][row]], arrays["top_logits"][row], rtol=1e-4, atol=ATOL)
            np.testing.assert_allclose(logits[::128], arrays["every"][row], rtol=1e-4, atol=ATOL)
            compared += 1
        at += len(unit) + 1
    # The state behind a reply's last code is never computed, where speech did not end by itself.
    assert compared >= at - len(replies())


def test_codes_and_logits_are_the_releases_through_the_torch_runner(checkpoint: Checkpoint) -> None:
    runner = open_runner(checkpoint.talker, talker_weights(SOURCE), RunnerOptions())
    check(runner, checkpoint)
    runner.close()


@pytest.mark.component
def test_codes_and_logits_are_the_releases_through_vllm(checkpoint: Checkpoint) -> None:
    runner = open_runner(checkpoint.talker, talker_weights(SOURCE), RunnerOptions(
        runner="vllm", vllm=VllmOptions(max_model_len=512, max_num_seqs=8, kv_positions=4096, enforce_eager=True)))
    try:
        check(runner, checkpoint)
    finally:
        runner.close()
