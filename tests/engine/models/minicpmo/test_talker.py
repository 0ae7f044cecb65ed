"""The MiniCPM-o talker: over a runner that shows every position that is wrong, and against stock Llama."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.utils.parametrizations import weight_norm
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from duologue.engine.config import ConfigError, PipelineConfig
from duologue.engine.messages import CodecFrames, Conditioning, Fence, Hold, Open, ReplyText, TextSpan
from duologue.engine.models.duplex.talker import Talker
from duologue.engine.models.minicpmo import random, talker
from duologue.engine.models.minicpmo.conditioning import TENSORS, TtsConditioner
from duologue.engine.models.minicpmo.guard import GuardOptions
from duologue.engine.models.minicpmo.voice import TtsSpeech, VoiceOptions
from duologue.engine.runners.base import Capacity
from duologue.metrics import DERAILED
from tests.engine.runners.fake_runner import FakeRunner, capacity

MADE = random.shape("tiny")
HIDDEN = MADE.config.llm.hidden_size
EOS, UNIT, LAST, FRAME = 9, 5, 20, 4
"""Of the small voice: its codes are few, so that its end comes up."""


def conditioner() -> TtsConditioner:
    tensors = {name: tensor for name, tensor in random.tensors("talker", MADE, 0, torch.device("cpu"))
               if name in TENSORS}
    return TtsConditioner(tensors, random.tokenizer(MADE), MADE.config.tts.audio_bos_token_id)


def small(limits: Capacity | None = None, sessions: Sequence[str] = ("a",), **voice: Any) -> tuple[Talker, FakeRunner]:
    runner = FakeRunner(limits or capacity(vocabulary=EOS + 1))
    options = VoiceOptions.model_validate({"temperature": 0, "guard": None, **voice})
    stage = Talker(runner, conditioner(), TtsSpeech(
        options, eos=EOS, unit_codes=UNIT, frame_samples=FRAME, silence_code=0))
    for session in sessions:
        stage.receive(Open(session, epoch=0, next_turn=0, next_unit=0))
    return stage, runner


def said(text: str, start: int, seq: int, *, tokens: int = 2, last: bool = False, session: str = "a",
         turn: int = 0) -> ReplyText:
    """A unit's text with so many tokens, of which a last one is the turn's end and has no characters."""
    dice = np.random.default_rng([turn, start, seq])
    ends = np.linspace(0, len(text), tokens + 1)[1:].astype(np.int32) + start
    return ReplyText(Fence(session, 0, turn, seq), start, text, last, conditioning=Conditioning(
        dice.integers(200, size=tokens).astype(np.int32), dice.standard_normal((tokens, HIDDEN)).astype(np.float32),
        ends))


def run(stage: Talker) -> list[CodecFrames]:
    out: list[CodecFrames] = []
    while stage.ready:
        for made in stage.step():
            assert isinstance(made, CodecFrames)
            out.append(made)
    return out


def codes(frames: Sequence[CodecFrames], session: str = "a") -> list[int]:
    return [int(code) for message in frames if message.fence.session == session for code in message.frames[:, 0]]


def spans(frames: Sequence[CodecFrames]) -> list[TextSpan]:
    return [span for message in frames for span in message.spans]


# --- what the released code computes ----------------------------------------------------------------------------


def written_out(messages: Sequence[ReplyText], tts_seed: int) -> list[list[int]]:
    """Each unit's codes by transformers' Llama, torch's weight_norm, and the released rules as they are written."""
    config = MADE.config.tts
    made = dict(random.tensors("talker", MADE, tts_seed, torch.device("cpu")))
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=config.num_audio_tokens, hidden_size=config.hidden_size, intermediate_size=config.intermediate_size,
        num_hidden_layers=config.num_hidden_layers, num_attention_heads=config.num_attention_heads,
        max_position_embeddings=config.max_position_embeddings)).eval()
    head = weight_norm(torch.nn.Linear(config.hidden_size, config.num_audio_tokens, bias=False))
    head.load_state_dict({name.removeprefix("head_code.0."): tensor for name, tensor in made.items()
                          if name.startswith("head_code.0.")})
    model.load_state_dict({"lm_head.weight": head.weight.detach(),
                           "model.embed_tokens.weight": made["emb_code.0.weight"],
                           **{name: tensor for name, tensor in made.items() if name.startswith("model.")}})

    def layer(i: int, x: torch.Tensor) -> torch.Tensor:
        return x @ made[f"projector_semantic.linear{i}.weight"].T + made[f"projector_semantic.linear{i}.bias"]

    cache, units = DynamicCache(), list[list[int]]()
    for message in messages:
        assert message.conditioning is not None
        h = layer(2, layer(1, torch.from_numpy(message.conditioning.rows)).clamp(min=0))
        fed = torch.cat([made["emb_text.weight"][torch.from_numpy(message.conditioning.tokens).long()]
                         + h / h.norm(dim=-1, keepdim=True),
                         made["emb_text.weight"][config.audio_bos_token_id][None]])
        unit: list[int] = []
        with torch.inference_mode():
            for _ in range(100 if message.last else 25):
                logits = model(inputs_embeds=fed[None], past_key_values=cache).logits[0, -1]
                for code, often in Counter(unit[-16:]).items():
                    logits[code] = logits[code] * 1.05**often if logits[code] < 0 else logits[code] / 1.05**often
                if not message.last:
                    logits[config.eos] = -torch.inf
                if (code := int(logits.argmax())) == config.eos:
                    break
                unit.append(code)
                fed = model.get_input_embeddings()(torch.tensor([code]))
            else:
                # A unit's last code is fed with the next unit's condition.
                model(inputs_embeds=fed[None], past_key_values=cache)
        units.append(unit)
    return units


def test_codes_are_those_of_stock_llama_over_the_condition_the_release_makes() -> None:
    stage = talker.create({"load_format": "random", "seed": 4, "voice": {"temperature": 0}}, pipeline())
    stage.receive(Open("a", epoch=0, next_turn=0, next_unit=0))
    messages = [said("well then ", 0, 0, tokens=3), said("", 11, 1, tokens=0), said("see", 11, 2, tokens=2, last=True)]
    for message in messages:
        stage.receive(message)
    wanted = written_out(messages, 4)
    assert [len(unit) for unit in wanted[:2]] == [25, 25]
    assert codes(run(stage)) == [code for unit in wanted for code in unit]
    stage.close()


def test_a_condition_has_a_row_for_each_token_and_audio_bos_alone_where_there_is_none() -> None:
    made = conditioner()
    full, empty = (made.pieces(said("ab", 0, 0, tokens=tokens).conditioning)[0].rows  # type: ignore[arg-type]
                   for tokens in (3, 0))
    assert full.shape == (4, MADE.config.tts.hidden_size)
    assert empty.shape == (1, MADE.config.tts.hidden_size)
    np.testing.assert_array_equal(full[-1:], empty)


def test_words_without_states_are_conditioned_on_by_their_own_embedding_alone() -> None:
    made = conditioner()
    emb_text = next(tensor for name, tensor in random.tensors("talker", MADE, 0, torch.device("cpu"))
                    if name == "emb_text.weight")
    alone = made.by_words("hi", 5)
    rows = made.pieces(alone)[0].rows
    np.testing.assert_array_equal(rows[:-1], emb_text[torch.from_numpy(alone.tokens).long()].numpy())
    assert alone.ends.tolist() == [6, 7]


# --- units ------------------------------------------------------------------------------------------------------


def test_the_end_is_held_back_until_the_last_unit_which_runs_to_it_so_that_the_last_word_is_whole() -> None:
    ends = set[int]()
    for turn in range(30):
        stage, runner = small()
        for i in range(3):
            stage.receive(said("word ", 5 * i, i, turn=turn))
        assert len(codes(run(stage))) == 3 * UNIT
        stage.receive(said("", 15, 3, tokens=1, turn=turn, last=True))
        end = run(stage)
        assert end[-1].last
        assert EOS not in codes(end)
        ends.add(len(codes(end)))
        assert runner.held == {}
    assert max(ends) > UNIT, "more than the second after which the release cuts"
    assert max(ends) <= LAST


def test_the_first_unit_may_be_short_where_that_is_asked_for_and_its_end_is_not_fed() -> None:
    short = 0
    for turn in range(30):
        stage, runner = small(short_first_unit=True)
        stage.receive(said("hi ", 0, 0, turn=turn))
        first = run(stage)
        assert not any(message.last for message in first)
        assert [(span.start, span.end) for span in spans(first)] == [(0, 2)]
        short += len(codes(first)) < UNIT
        stage.receive(said("there ", 3, 1, turn=turn))
        assert len(codes(run(stage))) == UNIT
        # Two conditions of three rows, and every code but the last, which waits for what follows.
        assert len(runner.held["a"].kv) == 6 + len(codes(first)) + UNIT - 1
    assert short


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_text_that_comes_in_the_middle_of_a_unit_waits_and_none_is_lost_or_said_twice(
        units: list[tuple[int, bool]], dice: Any) -> None:
    texts = [f"w{i} " if tokens else "" for i, (tokens, _) in enumerate(units)]
    starts = np.cumsum([0, *map(len, texts)])
    messages = [said(text, int(start), i, tokens=tokens, last=i == len(units) - 1)
                for i, (text, start, (tokens, _)) in enumerate(zip(texts, starts, units, strict=False))]
    at_once, _ = small()
    for message in messages:
        at_once.receive(message)
    whole = run(at_once)
    stage, _ = small()
    out: list[CodecFrames] = []
    waiting = list(messages)
    while waiting or stage.ready:
        if waiting and dice.random() < 0.3:
            stage.receive(waiting.pop(0))
        elif stage.ready:
            for made in stage.step():
                assert isinstance(made, CodecFrames)
                out.append(made)
    assert codes(out) == codes(whole)
    assert "".join("".join(texts)[span.start:span.end] for span in spans(out)) == "".join("".join(texts).split())


def test_a_pause_does_not_change_which_codes_count_as_repeated() -> None:
    options = {"load_format": "random", "seed": 4, "voice": {"temperature": 0, "repetition_penalty": 1.5}}
    whole, paused = talker.create(options, pipeline()), talker.create(options, pipeline())
    messages = [said("well then ", 0, 0), said("so ", 10, 1)]
    for stage in (whole, paused):
        stage.receive(Open("a", epoch=0, next_turn=0, next_unit=0))
        for message in messages:
            stage.receive(message)
    out: list[CodecFrames] = []
    while paused.ready:
        out += [made for made in paused.step() if isinstance(made, CodecFrames)]
        paused.receive(Hold("a", held=True))
        assert codes(run(paused)) == []
        paused.receive(Hold("a", held=False))
    assert codes(out) == codes(run(whole))


def test_text_that_comes_again_by_its_words_is_parted_as_a_voice_says_it() -> None:
    stage, _ = small()
    stage.receive(ReplyText(Fence("a", 0, 0, 0), 0, "eight by"))
    assert len(codes(run(stage))) == 2 * UNIT, "eight tokens, four to a unit"


def test_a_reply_that_outgrows_the_talker_goes_on_from_the_unit_before() -> None:
    """The fake runner asserts that no session grows past its length."""
    stage, runner = small(capacity(max_length=100, vocabulary=EOS + 1), last_units=1)
    texts = [f"w{i} " for i in range(60)]
    starts = np.cumsum([0, *map(len, texts)])
    longest = 0
    for i, text in enumerate(texts):
        stage.receive(said(text, int(starts[i]), i, last=i == 59))
        before = runner.prefilled
        frames = run(stage)
        assert [(span.start, span.end) for span in spans(frames)] == [(starts[i], starts[i] + len(text) - 1)]
        longest = max(longest, runner.prefilled - before)
    # A condition of three rows, one code put back; and after a slide the units before it.
    speech = TtsSpeech(VoiceOptions(last_units=1), eos=EOS, unit_codes=UNIT, frame_samples=FRAME, silence_code=0)
    assert 3 + UNIT < longest <= speech.window_room


def test_a_talker_too_short_for_a_unit_and_the_end_after_it_is_refused() -> None:
    with pytest.raises(ConfigError, match="raise its runner's max_length"):
        small(capacity(max_length=60, vocabulary=EOS + 1))


# --- a talker that loses its thread -----------------------------------------------------------------------------


class After:
    """A guard that finds a loop in the code of that number."""

    def __init__(self, number: int) -> None:
        self.left = number

    def watch(self, codes: Sequence[int], *, words: bool) -> str | None:
        self.left -= len(codes)
        return "loop" if self.left == 0 and codes else None


class Watched(TtsSpeech):
    number = 0

    def guard(self) -> Any:
        return After(self.number)


def watched(number: int) -> tuple[Talker, FakeRunner]:
    runner = FakeRunner(capacity(vocabulary=EOS + 1))
    speech = Watched(VoiceOptions(temperature=0), eos=EOS, unit_codes=UNIT, frame_samples=FRAME, silence_code=0)
    speech.number = number
    stage = Talker(runner, conditioner(), speech)
    stage.receive(Open("a", epoch=0, next_turn=0, next_unit=0))
    return stage, runner


def test_a_talker_that_lost_its_thread_begins_the_next_unit_without_its_past() -> None:
    before = DERAILED.labels(how="loop")._value.get()
    stage, runner = watched(UNIT + 2)
    for i in range(3):
        stage.receive(said("word ", 5 * i, i))
    assert len(codes(run(stage))) == 3 * UNIT
    assert len(runner.held["a"].kv) == 3 + UNIT - 1, "the third unit alone"
    assert DERAILED.labels(how="loop")._value.get() == before + 1


def test_a_last_unit_that_lost_its_thread_ends_there() -> None:
    stage, runner = watched(2)
    stage.receive(said("word", 0, 0, turn=1, last=True))
    out = run(stage)
    assert out[-1].last
    assert sum(message.last for message in out) == 1
    assert len(codes(out)) == 2
    assert [(span.start, span.end) for span in spans(out)] == [(0, 4)]
    assert runner.held == {}


def test_silence_at_the_end_of_a_reply_is_cut() -> None:
    """The vocabulary is the silent code and the end."""
    options = VoiceOptions(temperature=0, last_units=4, guard=GuardOptions(codes=6))
    runner = FakeRunner(capacity(vocabulary=2))
    stage = Talker(runner, conditioner(), TtsSpeech(options, eos=1, unit_codes=UNIT, frame_samples=FRAME,
                                                    silence_code=0))
    stage.receive(Open("a", epoch=0, next_turn=0, next_unit=0))
    stage.receive(said("word ", 0, 0))
    assert codes(run(stage)) == [0] * UNIT
    stage.receive(said("end", 5, 1, last=True))
    end = run(stage)
    assert end[-1].last
    assert len(codes(end)) <= 6


# --- configs ----------------------------------------------------------------------------------------------------


def pipeline(connector: str = "shm", **more: Any) -> PipelineConfig:
    processes = ("one", "one") if connector == "local" else ("one", "two")
    return PipelineConfig.model_validate({
        "name": "minicpmo", "unit_ms": 1000, "output_rate": 24_000, **more,
        "stages": [{"name": role, "role": role, "model": "none", "process": process}
                   for role, process in zip(("thinker", "talker"), processes, strict=True)],
        "edges": [{"source": "thinker", "target": "talker", "connector": connector}]})


@pytest.mark.parametrize(("options", "connector", "says"), [
    ({"load_format": "random"}, "socket", "make it 'shm', or 'local'"),
    ({"load_format": "random", "beta": 1}, "shm", "beta"),
    ({"load_format": "random", "voice": {"temperature": -1}}, "local", "voice.temperature"),
    ({"load_format": "random", "torch": {"max_length": 128}}, "shm", "raise its runner's max_length"),
    ({"load_format": "random", "vllm": {"device": -1}}, "shm", "vllm.device"),
    ({}, "shm", "or `load_format: random`, and not both"),
])
def test_a_config_that_cannot_work_is_refused(options: dict[str, Any], connector: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        talker.create(options, pipeline(connector))


def test_the_pipelines_checkpoint_is_read_where_the_options_name_none(tmp_path: Any) -> None:
    random.write(tmp_path, "tiny", seed=4)
    stored = talker.create({"voice": {"temperature": 0}}, pipeline(model=tmp_path))
    made = talker.create({"load_format": "random", "seed": 4, "voice": {"temperature": 0}}, pipeline())
    heard = []
    for stage in (stored, made):
        stage.receive(Open("a", epoch=0, next_turn=0, next_unit=0))
        stage.receive(said("hello ", 0, 0))
        heard.append(codes(run(stage)))
        stage.close()
    assert heard[0] == heard[1]
