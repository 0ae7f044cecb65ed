"""The duplex talker: over a runner that shows every position that is wrong, and over the real one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models
from transformers import DynamicCache, Qwen3Config, Qwen3ForCausalLM

from duologue.engine.config import ConfigError, PipelineConfig
from duologue.engine.messages import (
    Close,
    CodecFrames,
    Conditioning,
    Fence,
    Hold,
    Interrupt,
    Open,
    ReplyText,
    SessionFailed,
    StageOutput,
    TextSpan,
)
from duologue.engine.models.duplex import random, talker, talker_layout
from duologue.engine.models.duplex.checkpoint import CheckpointOptions, load
from duologue.engine.models.duplex.conditioning import DuplexConditioner
from duologue.engine.models.duplex.config import CodecConfig, DuplexConfig, UnitTokens
from duologue.engine.models.duplex.talker import Talker
from duologue.engine.models.duplex.voice import DuplexSpeech, Voice
from duologue.engine.runners.base import Capacity
from duologue.metrics import DROPS
from tests.engine.runners.fake_runner import FakeRunner, capacity

CODES = 5
LAST = 10
"""Codes of a unit, and of a reply's last unit at most, of the small model."""
FRAME = 6
"""Samples of its frames."""
EOS, BOS = 30, 31
SMALL = DuplexConfig(
    unit_ms=200, codes_per_unit=CODES, max_unit_tokens=4,
    tokens=UnitTokens(unit=0, unit_end=1, listen=2, speak=3, turn_eos=4, chunk_eos=5, im_start=6, im_end=7),
    codec=CodecConfig(codebook_size=30, hidden_size=8, upsample=(3, 2), kernel=3, frame_rate=25, sample_rate=150))
VOICE = Voice(temperature=0, repetition_penalty=1, last_units=2)
TEXT_VOCABULARY, HIDDEN = 50, 3
LETTERS = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(" abcdefghijklmnopqrstuvwxyz")}, merges=[]))


def small(*sessions: str, limits: Capacity | None = None) -> tuple[Talker, FakeRunner]:
    runner = FakeRunner(limits or capacity(vocabulary=talker_layout.vocabulary(SMALL.codec)))
    generator = torch.Generator().manual_seed(1)
    conditioner = DuplexConditioner(torch.randn(TEXT_VOCABULARY, 4, generator=generator),
                                    torch.randn(4, HIDDEN, generator=generator), LETTERS, BOS)
    stage = Talker(runner, conditioner, DuplexSpeech(SMALL, VOICE))
    for session in sessions:
        stage.receive(Open(session, epoch=0, next_turn=0, next_unit=0))
    return stage, runner


def said(text: str, start: int, seq: int, *, last: bool = False, session: str = "a", turn: int = 0, epoch: int = 0,
         hidden: int = HIDDEN, width: int = 3) -> ReplyText:
    """A piece of text, a token for each ``width`` characters and one more if it is the last."""
    ends = [min(end, len(text)) for end in range(width, len(text) + width, width)] + [len(text)] * last
    tokens = np.array([(sum(map(ord, text[:end])) + i) % TEXT_VOCABULARY for i, end in enumerate(ends)], np.int32)
    rows = np.random.default_rng([turn, start, len(text)]).standard_normal((len(ends), hidden)).astype(np.float32)
    return ReplyText(Fence(session, epoch, turn, seq), start, text, last,
                     conditioning=Conditioning(tokens, rows, np.array(ends, np.int32) + start))


def pieces_of(texts: Sequence[str], session: str = "a", turn: int = 0, hidden: int = HIDDEN) -> list[ReplyText]:
    """A reply's text in pieces, the last of which ends it."""
    starts = np.cumsum([0, *map(len, texts)])
    return [said(text, int(start), seq, last=seq == len(texts) - 1, session=session, turn=turn, hidden=hidden)
            for seq, (text, start) in enumerate(zip(texts, starts, strict=False))]


def run(stage: Talker) -> list[CodecFrames]:
    out: list[CodecFrames] = []
    while stage.ready:
        out += only_frames(stage.step())
    return out


def only_frames(outputs: Sequence[StageOutput]) -> list[CodecFrames]:
    assert all(isinstance(output, CodecFrames) for output in outputs), outputs
    return [output for output in outputs if isinstance(output, CodecFrames)]


def codes(frames: Sequence[CodecFrames], session: str = "a") -> list[int]:
    return [int(code) for message in frames if message.fence.session == session for code in message.frames[:, 0]]


def spans(frames: Sequence[CodecFrames], session: str = "a") -> list[TextSpan]:
    return [span for message in frames if message.fence.session == session for span in message.spans]


def speak(texts: Sequence[str], session: str = "a") -> list[CodecFrames]:
    stage, _ = small(session)
    for message in pieces_of(texts, session):
        stage.receive(message)
    return run(stage)


def stale(reason: str) -> float:
    value: float = DROPS.labels(what="reply_text", reason=reason)._value.get()
    return value


# --- units ------------------------------------------------------------------------------------------------------


def test_each_unit_has_its_codes_and_the_last_one_runs_on_to_the_talkers_end() -> None:
    stage, runner = small("a")
    first, second, third = pieces_of(["one two ", "three ", "four"])
    stage.receive(first)
    assert len(codes(run(stage))) == CODES
    stage.receive(second)
    assert len(codes(run(stage))) == CODES
    stage.receive(third)
    end = run(stage)
    assert 0 <= len(codes(end)) <= LAST
    assert [message.last for message in end] == [False] * (len(end) - 1) + [True]
    assert EOS not in codes(end)
    assert runner.held == {}


def test_the_end_of_the_turn_is_held_back_until_its_text_is_whole_and_no_code_is_a_special_token() -> None:
    for seed in range(20):
        frames = speak([f"word{seed} and ", "some more of it ", "end"])
        whole = codes(frames)
        assert 0 <= min(whole) <= max(whole) < SMALL.codec.codebook_size
        assert len(whole) >= 3 * CODES  # the second piece is two units, of four tokens at most


def test_codes_come_one_by_one_so_that_the_codec_can_begin() -> None:
    stage, _ = small("a")
    stage.receive(pieces_of(["hello ", "there"])[0])
    sizes = [len(message.frames) for message in run(stage)]
    assert sizes == [1] * CODES


@pytest.mark.parametrize("spoken", [[], ["hello "]])
def test_an_end_without_text_ends_the_reply(spoken: list[str]) -> None:
    stage, _ = small("a")
    for piece in pieces_of([*spoken, ""])[:-1]:
        stage.receive(piece)
    begun = run(stage)
    stage.receive(ReplyText(Fence("a", 0, 0, len(spoken)), sum(map(len, spoken)), "", last=True))
    end = run(stage)
    assert end[-1].last
    assert not any(message.last for message in begun)
    assert len(codes(begun)) == CODES * len(spoken)
    assert len(codes(end)) <= LAST * len(spoken)


def test_text_of_another_thinker_is_refused_in_receive() -> None:
    stage, _ = small("a", "b")
    good = said("well", 0, 0)
    assert good.conditioning is not None
    for bad in (said("well", 0, 0, hidden=HIDDEN + 1),
                replace(good, conditioning=replace(good.conditioning, tokens=np.array([1, TEXT_VOCABULARY], np.int32))),
                replace(good, conditioning=replace(good.conditioning, rows=np.full((2, HIDDEN), np.nan, np.float32)))):
        with pytest.raises(ValueError):
            stage.receive(bad)
    stage.receive(said("well", 0, 0, session="b", last=True))
    assert {message.fence.session for message in run(stage)} == {"b"}


def test_a_piece_of_text_that_comes_twice_is_spoken_once() -> None:
    stage, _ = small("a")
    first, second = pieces_of(["one ", "two"])
    before = stale("duplicate")
    for message in (first, first, second):
        stage.receive(message)
    assert codes(run(stage)) == codes(speak(["one ", "two"]))
    assert stale("duplicate") == before + 1


def test_text_that_comes_again_without_its_states_is_said_by_its_words_and_the_thinkers_goes_on_after_it() -> None:
    # A process died: the hub sends what was not spoken, the thinker what follows it, both from number 0.
    stage, _ = small("a")
    stage.receive(ReplyText(Fence("a", 0, 0, 0), 10, "one two "))
    stage.receive(said("three", 18, 0, last=True))
    made = run(stage)
    assert made[-1].last
    spans = [(span.start, span.end) for message in made for span in message.spans]
    assert spans == [(10, 13), (14, 17), (18, 23)]
    alone, _ = small("a")
    alone.receive(said("three", 18, 0, last=True))
    assert codes(made)[-len(codes(run(alone))):] != codes(made)
    assert len(codes(made)) > CODES


# --- spans ------------------------------------------------------------------------------------------------------


def test_the_words_of_a_unit_share_its_samples_in_proportion_to_the_text() -> None:
    stage, _ = small("a")
    stage.receive(said("ab cdef gh", 0, 0))
    stage.receive(said(" ij", 10, 1, last=True))
    frames = run(stage)
    unit = CODES * FRAME
    assert spans(frames)[:3] == [TextSpan(0, 2, 0, unit * 2 // 10), TextSpan(3, 7, unit * 3 // 10, unit * 7 // 10),
                                 TextSpan(8, 10, unit * 8 // 10, unit)]
    end = 0
    for message in frames:
        end += len(message.frames) * FRAME
        assert all(span.end_sample <= end for span in message.spans)


@settings(deadline=None)
@given(st.lists(st.text(st.sampled_from("ab ,語"), max_size=12), min_size=1, max_size=5))
def test_every_word_is_told_once_in_order_and_within_the_sound(texts: list[str]) -> None:
    whole = "".join(texts)
    frames = speak(texts)
    told = spans(frames)
    total = len(codes(frames)) * FRAME
    spelled = "".join(whole[span.start:span.end] for span in told)
    assert spelled == "".join(whole.split())
    end = sample = 0
    for span in told:
        assert end <= span.start < span.end
        assert sample <= span.first_sample <= span.end_sample <= total
        end, sample = span.end, span.first_sample


# --- any order of events ----------------------------------------------------------------------------------------


REPLIES = st.lists(st.lists(st.text("abc ", min_size=1, max_size=8), min_size=1, max_size=4), min_size=1, max_size=3)


@settings(deadline=None)
@given(REPLIES, st.randoms(use_true_random=False))
def test_text_that_comes_while_the_talker_speaks_waits_and_sessions_sound_as_they_do_alone(
        replies: list[list[str]], dice: Any) -> None:
    stage, runner = small(*(f"s{i}" for i in range(len(replies))))
    waiting = [pieces_of(texts, f"s{i}") for i, texts in enumerate(replies)]
    out: list[CodecFrames] = []
    while any(waiting) or stage.ready:
        if any(waiting) and dice.random() < 0.4:
            stage.receive(dice.choice([queue for queue in waiting if queue]).pop(0))
        elif stage.ready:
            out += only_frames(stage.step())
    for i, texts in enumerate(replies):
        assert codes(out, f"s{i}") == codes(speak(texts, f"s{i}"), f"s{i}")
        mine = [message for message in out if message.fence.session == f"s{i}"]
        assert [message.fence.seq for message in mine] == list(range(len(mine)))
        assert [message.last for message in mine] == [False] * (len(mine) - 1) + [True]
    assert runner.held == {}


@settings(deadline=None)
@given(st.lists(st.sampled_from(["text", "step", "step", "hold", "release"]), max_size=60))
def test_a_held_session_makes_no_codes_and_none_is_lost_by_it(events: list[str]) -> None:
    texts = ["one ", "two ", "three ", "four "]
    stage, _ = small("a")
    waiting = pieces_of([*texts, "five"])
    out: list[CodecFrames] = []
    held = False
    for event in [*events, "release", *["text"] * len(waiting)]:
        if event == "text" and waiting:
            stage.receive(waiting.pop(0))
        elif event in ("hold", "release"):
            held = event == "hold"
            stage.receive(Hold("a", held))
        elif event == "step" and stage.ready:
            made = only_frames(stage.step())
            assert not (held and codes(made))
            out += made
    out += run(stage)
    assert CODES * len(texts) <= len(codes(out)) <= CODES * len(texts) + LAST
    assert sum(message.last for message in out) == 1
    assert [span.start for span in spans(out)] == [0, 4, 8, 14, 19]


def test_units_of_many_calls_run_together_and_none_waits_for_a_full_batch() -> None:
    names = [f"s{i}" for i in range(6)]
    stage, runner = small(*names)
    stage.receive(said("one", 0, 0, session="s0"))
    assert codes(only_frames(stage.step()), "s0")
    for name in names[1:]:
        stage.receive(said("two", 0, 0, session=name))
    for _ in range(CODES - 1):
        made = only_frames(stage.step())
        assert Counter(message.fence.session for message in made) == dict.fromkeys(names, 1)
    assert len(runner.held) == len(names)


def test_an_interruption_drops_what_was_not_said_with_its_kv_and_stale_text() -> None:
    stage, runner = small("a")
    first, second, third = pieces_of(["one two ", "three ", "four"])
    stage.receive(first)
    stage.receive(second)
    stage.step()
    stage.receive(Interrupt("a", epoch=1, turn=0, heard="one"))
    assert runner.held == {}
    assert not stage.ready
    before = stale("stale")
    stage.receive(third)
    assert stale("stale") == before + 1
    stage.receive(replace(said("sorry", 0, 0, last=True, turn=1), fence=Fence("a", 1, 1, 0)))
    after = run(stage)
    assert {(message.fence.epoch, message.fence.turn) for message in after} == {(1, 1)}
    assert after[-1].last
    stage.receive(replace(said("more", 0, 0, turn=2), fence=Fence("a", 1, 2, 0)))
    stage.step()
    stage.receive(Close("a"))
    assert runner.held == {}
    assert not stage.ready


def test_a_session_opened_again_begins_afresh_and_the_next_reply_waits_for_the_first() -> None:
    stage, _ = small("a")
    stage.receive(said("one two ", 0, 0))
    stage.step()
    stage.receive(Open("a", epoch=2, next_turn=0, next_unit=0))
    assert not stage.ready
    stage.receive(replace(said("of ", 8, 0), fence=Fence("a", 2, 0, 0)))
    stage.receive(replace(said("next", 0, 0, turn=1, last=True), fence=Fence("a", 2, 1, 0)))
    assert {message.fence.turn for message in run(stage)} == {0}
    stage.receive(replace(said("it", 11, 1, last=True), fence=Fence("a", 2, 0, 1)))
    frames = run(stage)
    assert [message.fence.turn for message in frames] == sorted(message.fence.turn for message in frames)
    assert {message.fence.turn for message in frames} == {0, 1}


def test_a_session_that_its_runner_cannot_go_on_with_fails_alone() -> None:
    stage, runner = small("a", "b")
    for session in ("a", "b"):
        stage.receive(said("one", 0, 0, session=session, last=True))
    stage.step()
    runner.failing.add("a")
    outputs: list[StageOutput] = []
    while stage.ready:
        outputs += stage.step()
    assert [output.session for output in outputs if isinstance(output, SessionFailed)] == ["a"]
    assert any(isinstance(output, CodecFrames) and output.last for output in outputs)
    stage.receive(said("two", 3, 1, session="a"))
    assert not stage.ready


def test_a_reply_longer_than_the_context_slides_and_keeps_what_was_said_last() -> None:
    """The fake runner asserts that no session grows past 64 positions; 40 units are 300."""
    stage, runner = small("a", limits=capacity(max_length=64, vocabulary=talker_layout.vocabulary(SMALL.codec)))
    texts = [f"w{i} " for i in range(40)]
    for message in pieces_of([*texts, "end"]):
        stage.receive(message)
    frames = run(stage)
    assert len(codes(frames)) >= 40 * CODES
    assert [span.start for span in spans(frames)] == [int(n) for n in np.cumsum([0, *map(len, texts)])]
    assert runner.prefilled < 41 * (64 + CODES)


def test_more_calls_than_the_runner_has_slots_take_turns() -> None:
    names = [f"s{i}" for i in range(7)]
    stage, runner = small(*names, limits=capacity(max_sessions=2, vocabulary=talker_layout.vocabulary(SMALL.codec)))
    for name in names:
        for message in pieces_of(["one ", "two"], name):
            stage.receive(message)
    frames = run(stage)
    assert {message.fence.session for message in frames if message.last} == set(names)
    assert runner.held == {}


# --- the real runner and configs --------------------------------------------------------------------------------


TINY = {"load_format": "random", "size": "tiny", "seed": 3, "voice": {"temperature": 0, "repetition_penalty": 1}}


def pipeline(connector: str = "shm") -> PipelineConfig:
    processes = ("one", "one") if connector == "local" else ("one", "two")
    return PipelineConfig.model_validate({
        "name": "duplex", "unit_ms": 1000, "output_rate": 24_000,
        "stages": [{"name": role, "role": role, "model": "none", "process": process}
                   for role, process in zip(("thinker", "talker"), processes, strict=True)],
        "edges": [{"source": "thinker", "target": "talker", "connector": connector}]})


def tiny(*sessions: str) -> Talker:
    stage = talker.create(TINY, pipeline())
    for session in sessions:
        stage.receive(Open(session, epoch=0, next_turn=0, next_unit=0))
    return stage


def test_codes_are_those_of_stock_qwen3_over_the_condition_the_unit_has() -> None:
    """transformers' Qwen3, and the condition written out: emb_text[token] + h / |h| for each token, then audio_bos."""
    texts = ["well then ", "let us see"]
    stage = tiny("a")
    messages = pieces_of(texts, hidden=128)
    for message in messages:
        stage.receive(message)
    got = codes(run(stage))

    made = random.shape("tiny")
    tensors = {name: tensor.float() for name, tensor in
               random.tensors("talker", made, seed=3, device=torch.device("cpu"))}
    emb_text, projector = tensors.pop("emb_text.weight"), tensors.pop("projector.weight")
    config = Qwen3Config(**made.talker.model_dump(exclude={"model_type", "rope_theta"}),
                         rope_parameters={"rope_type": "default", "rope_theta": made.talker.rope_theta})
    model = Qwen3ForCausalLM(config)
    model.load_state_dict(tensors)
    embed = model.get_input_embeddings()
    cache, wanted = DynamicCache(), list[int]()
    bos = embed(torch.tensor([255]))
    fed = torch.empty(0, made.talker.hidden_size)
    with torch.inference_mode():
        for message in messages:
            assert message.conditioning is not None
            states = torch.from_numpy(message.conditioning.rows) @ projector.T
            fed = torch.cat([fed, emb_text[torch.from_numpy(message.conditioning.tokens).long()]
                             + states / states.norm(dim=-1, keepdim=True), bos])
            for _ in range(100 if message.last else 25):
                logits = model(inputs_embeds=fed[None], past_key_values=cache).logits[0, -1]
                logits[255] = -torch.inf
                if not message.last:
                    logits[254] = -torch.inf
                code = int(logits.argmax())
                if code == 254:
                    break
                wanted.append(code)
                fed = embed(torch.tensor([code]))
    assert got == wanted
    stage.close()


def test_a_pause_changes_nothing_in_what_is_said() -> None:
    whole, paused = tiny("a"), tiny("a")
    for message in pieces_of(["well then ", "let us see"], hidden=128):
        whole.receive(message)
        paused.receive(message)
    out: list[CodecFrames] = []
    for _ in range(12):
        out += only_frames(paused.step())
        paused.receive(Hold("a", held=True))
        assert codes(run(paused)) == []
        paused.receive(Hold("a", held=False))
    assert codes(out + run(paused)) == codes(run(whole))
    whole.close()
    paused.close()


def test_it_says_how_much_kv_it_holds() -> None:
    stage = talker.create({**TINY, "torch": {"positions": 2048, "max_length": 512, "max_sessions": 3}}, pipeline())
    budget = stage.kv_budget
    assert (budget.positions, budget.session_positions, budget.sessions) == (2048, 512, 3)
    assert stage.wake_fd is None
    stage.close()


@pytest.mark.parametrize(("options", "connector", "says"), [
    ({}, "socket", "make it 'shm', or 'local'"),
    ({"beta": 1}, "shm", "beta"),
    ({"voice": {"top_p": 2}}, "local", "voice.top_p"),
    ({"torch": {"max_length": 128}}, "shm", "raise its runner's max_length"),
    ({"torch": {"device": "tpu"}}, "shm", "must be cpu, cuda or cuda:N"),
])
def test_a_config_that_cannot_work_is_refused(options: dict[str, Any], connector: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        talker.create({**TINY, **options}, pipeline(connector))


def test_random_and_stored_checkpoints_speak_alike(tmp_path: Any) -> None:
    random.write(tmp_path / "model", "tiny", seed=3)
    assert load(CheckpointOptions(checkpoint=tmp_path / "model")).folder is not None
    stored = talker.create({"checkpoint": str(tmp_path / "model"), "voice": TINY["voice"]}, pipeline())
    stored.receive(Open("a", epoch=0, next_turn=0, next_unit=0))
    made = tiny("a")
    message = pieces_of(["hello ", "x"], hidden=128)[0]
    stored.receive(message)
    made.receive(message)
    assert codes(run(stored)) == codes(run(made))
    stored.close()
    made.close()
