"""The trained voice's two stages: text in pieces to codes, codes in pieces to sound."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.config import ConfigError
from duologue.engine.messages import CodecFrames, Fence, Hold, Interrupt, Pcm, StageInput
from duologue.engine.models.codec_stage import Chunk
from duologue.engine.models.embedded import codec, talker
from duologue.engine.models.embedded.codec import VocoderDecoder
from duologue.engine.models.embedded.flite import FliteVoice
from duologue.engine.models.embedded.voice import weights
from duologue.engine.models.embedded.voice.codec import TrainedDecoder
from duologue.engine.models.embedded.voice.decoder import CodeDecoder
from duologue.engine.models.embedded.voice.talker import TrainedTalker
from duologue.engine.models.embedded.voice.utterance import CODEBOOKS, CODES
from duologue.engine.models.embedded.voice_format import FRAME_SAMPLES, FRAME_WIDTH
from tests.engine.models.embedded.trained.conftest import Modules
from tests.engine.models.embedded.voice import delta, deltas, opened, pipeline

TEXT = "It's 10:30, the owl — said nothing. Did it?"


@pytest.fixture(scope="module")
def loaded(modules: Modules) -> TrainedTalker:
    return TrainedTalker.load(modules.folder)


@pytest.fixture(scope="module")
def decoder(modules: Modules) -> TrainedDecoder:
    return TrainedDecoder(CodeDecoder(weights.load(modules.folder, "codec")), VocoderDecoder())


def frames_of(stage: TrainedTalker, *inputs: StageInput) -> list[CodecFrames]:
    """What is said after each of ``inputs``."""
    out: list[CodecFrames] = []
    for message in inputs:
        stage.receive(message)
        while stage.ready:
            for made in stage.step():
                assert isinstance(made, CodecFrames)
                out.append(made)
    return out


def codes_of(messages: list[CodecFrames]) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    codes: np.ndarray[tuple[int, ...], np.dtype[np.int32]] = np.concatenate([message.frames for message in messages])
    return codes


@pytest.mark.parametrize("size", [1, 3, 7])
def test_a_reply_is_the_same_to_the_last_code_however_its_text_comes(loaded: TrainedTalker, size: int) -> None:
    whole = frames_of(loaded, opened("a"), *deltas(TEXT, 1000))
    pieces = frames_of(loaded, opened("a"), *deltas(TEXT, size))
    assert np.array_equal(codes_of(whole), codes_of(pieces))
    assert [span for message in whole for span in message.spans] == [span for m in pieces for span in m.spans]


def test_every_word_has_its_place_in_text_and_sound(loaded: TrainedTalker) -> None:
    messages = frames_of(loaded, opened("a"), *deltas(TEXT, 5))
    spans = [span for message in messages for span in message.spans]
    words = [TEXT[span.start:span.end] for span in spans]
    assert words == ["It's", "10:30", "the", "owl", "said", "nothing", "Did", "it"]
    for before, after in pairwise(spans):
        assert before.first_sample < before.end_sample <= after.first_sample
    assert spans[-1].end_sample <= len(codes_of(messages)) * FRAME_SAMPLES
    assert [message.last for message in messages] == [False] * (len(messages) - 1) + [True]
    assert [message.fence.seq for message in messages] == list(range(len(messages)))
    assert all(message.frames.dtype == np.int32 and message.frames.shape[1] == CODEBOOKS for message in messages)


@pytest.mark.parametrize("text", ["", "  ", "☃☃", "...", "— “”", "'", "\x00\x07", "*" * 100])
def test_a_reply_that_cannot_be_said_still_ends(loaded: TrainedTalker, text: str) -> None:
    [only] = frames_of(loaded, opened("a"), delta(text, last=True))
    assert only.last
    assert not len(only.frames)


def test_an_interruption_drops_what_was_not_said_and_the_next_reply_begins_afresh(loaded: TrainedTalker) -> None:
    alone = frames_of(loaded, opened("a"), delta("Did it?", last=True))
    loaded.receive(opened("a"))
    loaded.receive(delta(TEXT, last=True))
    loaded.step()
    after = frames_of(loaded, Interrupt("a", 1), delta(TEXT, last=True), delta("Did it?", last=True, epoch=1, turn=1))
    assert {message.fence.turn for message in after} == {1}
    assert np.array_equal(codes_of(after), codes_of(alone))


def test_sessions_take_turns_and_a_held_one_waits(loaded: TrainedTalker) -> None:
    alone = frames_of(loaded, opened("a"), delta(TEXT, last=True))
    for message in (opened("a"), opened("b"), delta(TEXT, last=True), delta(TEXT, last=True, session="b")):
        loaded.receive(message)
    begun = [output for _ in range(2) for output in loaded.step() if isinstance(output, CodecFrames)]
    assert [output.fence.session for output in begun] == ["a", "b"]
    loaded.receive(Hold("a", held=True))
    rest = frames_of(loaded, Hold("b", held=False))
    assert {message.fence.session for message in rest} == {"b"}
    rest += frames_of(loaded, Hold("a", held=False))
    for session in "ab":
        spoken = [message for message in rest if message.fence.session == session]
        assert np.array_equal(codes_of(spoken), codes_of(alone[1:]))


def test_a_slower_reply_is_longer_and_has_every_frame_and_a_faster_one_is_shorter(loaded: TrainedTalker) -> None:
    def spoken(rate: float) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
        return codes_of(frames_of(loaded, opened("a"), delta(TEXT, last=True, rate=rate)))

    own, slow, fast = spoken(1.0), spoken(0.75), spoken(1.33)
    assert len(slow) > 1.1 * len(own)
    assert len(fast) < 0.95 * len(own)
    assert {tuple(row) for row in own.tolist()} <= {tuple(row) for row in slow.tolist()}


@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_sound_is_the_same_to_the_last_bit_however_codes_are_cut_and_whoever_else_speaks(
        decoder: TrainedDecoder, sizes: list[int]) -> None:
    codes = np.random.default_rng(1).integers(0, CODES, (sum(sizes), CODEBOOKS), dtype=np.int32)
    other = codes[::-1].copy()
    fence = Fence("a", 0, 3, 0)
    whole = decoder.decode([Chunk(codes, 0, decoder.begin(fence, ""), last=True)])[0]
    state, beside = decoder.begin(fence, ""), decoder.begin(fence, "")
    parts: list[Pcm] = []
    for first, size in zip(np.cumsum([0, *sizes]), sizes, strict=False):
        behind = first + size
        sound, _ = decoder.decode([Chunk(codes[first:behind], 0, state), Chunk(other[first:behind], 0, beside)])
        parts.append(sound)
    assert len(whole) == len(codes) * FRAME_SAMPLES
    assert np.array_equal(np.concatenate(parts), whole)


def test_frames_that_are_none_of_the_voices_are_refused(decoder: TrainedDecoder) -> None:
    with pytest.raises(ValueError, match="same voice"):
        decoder.check(np.zeros((2, FRAME_WIDTH), np.float32))
    with pytest.raises(ValueError, match="0 to 511"):
        decoder.check(np.full((1, CODEBOOKS), CODES, np.int32))
    with pytest.raises(ValueError, match="0 to 511"):
        decoder.check(np.full((1, CODEBOOKS), -1, np.int32))


def test_the_pitch_moves_and_nothing_else(modules: Modules) -> None:
    codes = np.random.default_rng(1).integers(0, CODES, (12, CODEBOOKS), dtype=np.int32)

    class Kept(VocoderDecoder):
        """Keeps what it is given."""

        def decode(self, chunks: object) -> list[Pcm]:
            assert isinstance(chunks, list)
            self.frames = chunks[0].frames.reshape(-1, FRAME_WIDTH // 8)
            return [np.empty(0, np.int16)]

    heard = []
    for pitch in (1.0, 0.5):
        vocoder = Kept()
        made = TrainedDecoder(CodeDecoder(weights.load(modules.folder, "codec")), vocoder, pitch)
        made.decode([Chunk(codes, 0, made.begin(Fence("a", 0, 0, 0), ""), last=True)])
        heard.append(vocoder.frames)
    assert np.array_equal(heard[1][:, 0], heard[0][:, 0] / 2)
    assert heard[0][:, 0].any()
    assert np.array_equal(heard[1][:, 1:], heard[0][:, 1:])


def test_a_config_that_cannot_work_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="voice"):
        talker.create({"voice": "alto"}, pipeline())
    with pytest.raises(ConfigError, match="16000"):
        talker.create({}, pipeline(output_rate=24_000))
    with pytest.raises(ConfigError, match="pitch"):
        codec.create({"voice": "rms", "pitch": 1.2}, pipeline())
    with pytest.raises(ConfigError, match="pitch"):
        codec.create({"voice": "trained", "pitch": 9}, pipeline())
    with pytest.raises(ConfigError, match=r"training\.voice"):
        TrainedTalker.load(tmp_path)


def test_flite_is_loaded_for_its_own_voice_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> FliteVoice:
        raise ConfigError("install the system package libflite1")

    monkeypatch.setattr(talker, "rms_voice", missing)
    assert isinstance(talker.create({}, pipeline()), TrainedTalker)
    with pytest.raises(ConfigError, match="libflite1"):
        talker.create({"voice": "rms"}, pipeline())
