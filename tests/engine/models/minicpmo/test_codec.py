from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from duologue.engine.chunking import ChunkPlanner
from duologue.engine.config import ChunkingConfig, ConfigError, PipelineConfig
from duologue.engine.messages import Close, CodecFrames, Fence, Interrupt, Open, Pcm, ReplyAudio, TextSpan
from duologue.engine.models.codec_stage import Chunk, CodecStage
from duologue.engine.models.minicpmo import random
from duologue.engine.models.minicpmo.codec import Stream, Token2wavDecoder, create
from duologue.engine.models.minicpmo.token2wav.config import TINY
from duologue.engine.models.minicpmo.token2wav.convert import convert
from duologue.metrics import DROPS
from tests.engine.models.minicpmo.token2wav import onnx_files, released_folder, small
from tests.engine.models.minicpmo.token2wav.speech import like_speech, write_wav
from tests.engine.playback import play

CODE = TINY.code_samples
RANDOM = {"load_format": "random", "n_timesteps": 2}


def pipeline(initial: int = 6, chunk: int = 25, **more: Any) -> PipelineConfig:
    stage = {"name": "codec", "role": "thinker", "model": "minicpmo.codec", "process": "voice"}
    return PipelineConfig.model_validate({
        "name": "p", "unit_ms": 1000, "output_rate": 24_000, "stages": [stage],
        "chunking": {"initial_codec_chunk_frames": initial, "codec_chunk_frames": chunk, "codec_chunk_ramp": False},
        **more})


def codes(name: str, count: int) -> NDArray[np.int32]:
    return np.array(small.codes(name, count), np.int32).reshape(-1, 1)


def say(stage: CodecStage[Stream], session: str, name: str, count: int, turn: int = 0, *, last: bool = True,
        spans: tuple[TextSpan, ...] = ()) -> None:
    stage.receive(CodecFrames(Fence(session, 0, turn, 0), codes(name, count), spans, last))


def audio(stage: CodecStage[Stream]) -> dict[str, list[ReplyAudio]]:
    out: dict[str, list[ReplyAudio]] = {}
    while stage.ready:
        for chunk in stage.step():
            assert isinstance(chunk, ReplyAudio)
            out.setdefault(chunk.fence.session, []).append(chunk)
    return out


def opened(stage: CodecStage[Stream], *sessions: str, voice: str = "") -> CodecStage[Stream]:
    for session in sessions:
        stage.receive(Open(session, epoch=0, next_turn=0, next_unit=0, voice=voice))
    return stage


def pcm(chunks: Sequence[ReplyAudio]) -> Pcm:
    return np.concatenate([chunk.pcm for chunk in chunks])


@pytest.fixture(scope="module")
def stage() -> CodecStage[Stream]:
    return create(RANDOM, pipeline())


@pytest.mark.parametrize(("initial", "counts"), [(6, (1, 6, 30, 31, 56)), (2, (1, 2, 3, 27)), (25, (25, 50))])
def test_each_chunk_is_as_long_as_its_codes_and_the_last_has_280_ms_more(initial: int, counts: tuple[int, ...]) -> None:
    """So playback runs as long as codes come in time, and what looking ahead kept back is heard at the end."""
    stage = opened(create(RANDOM, pipeline(initial)), "a")
    for turn, count in enumerate(counts):
        say(stage, "a", "reply", count, turn)
        chunks = audio(stage)["a"]
        sizes = [len(chunk.pcm) for chunk in chunks]
        assert sum(sizes) == 3840 + (3 + count) * CODE
        if len(chunks) > 1:
            assert sizes[0] == initial * CODE
            assert all(size == 25 * CODE for size in sizes[1:-1])
            assert sizes[-1] == (count - initial) % 25 * CODE + 6720
        assert [chunk.last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
        whole = pcm(chunks)
        assert not whole[:3840].any()
        assert np.abs(whole[3840:]).max() > 100
    stage.close()


def test_a_reply_without_codes_makes_no_sound(stage: CodecStage[Stream]) -> None:
    opened(stage, "a")
    say(stage, "a", "reply", 0)
    chunk, = audio(stage)["a"]
    assert (len(chunk.pcm), chunk.last) == (0, True)


def test_spans_of_text_are_where_their_codes_sound(stage: CodecStage[Stream]) -> None:
    opened(stage, "a")
    say(stage, "a", "reply", 20, spans=(TextSpan(0, 4, 0, 10 * CODE), TextSpan(5, 9, 10 * CODE, 20 * CODE)))
    chunks = audio(stage)["a"]
    spans = [span for chunk in chunks for span in chunk.spans]
    assert spans == [TextSpan(0, 4, 7 * CODE, 17 * CODE), TextSpan(5, 9, 17 * CODE, 27 * CODE)]
    assert spans[-1].end_sample == len(pcm(chunks))


def test_a_reply_begins_anew_whatever_was_said_or_broken_off_before(stage: CodecStage[Stream]) -> None:
    opened(stage, "a")
    say(stage, "a", "reply", 40, turn=0)
    first = pcm(audio(stage)["a"])
    say(stage, "a", "other", 40, turn=1, last=False)
    stage.step()
    stage.receive(Interrupt("a", epoch=1))
    stage.receive(CodecFrames(Fence("a", 1, 2, 0), codes("reply", 40), last=True))
    assert np.array_equal(pcm(audio(stage)["a"]), first)


def test_sessions_decoded_together_say_what_each_says_alone(stage: CodecStage[Stream]) -> None:
    """They begin at different times, end at different codes, and are in one call where they agree."""
    lengths = {"a": 70, "b": 70, "c": 44, "d": 9, "e": 83}
    alone = {}
    for name, count in lengths.items():
        opened(stage, name)
        say(stage, name, name, count)
        alone[name] = pcm(audio(stage)[name])
        stage.receive(Close(name))
    together: dict[str, list[ReplyAudio]] = {}
    for name, count in lengths.items():
        opened(stage, name)
        say(stage, name, name, count)
        if name in "be":
            for chunk in stage.step():
                assert isinstance(chunk, ReplyAudio)
                together.setdefault(chunk.fence.session, []).append(chunk)
    for name, chunks in audio(stage).items():
        together.setdefault(name, []).extend(chunks)
    for name, expected in alone.items():
        assert np.abs(pcm(together[name]).astype(int) - expected).max() <= 1


def test_streams_that_are_equally_far_go_through_the_networks_together(monkeypatch: pytest.MonkeyPatch) -> None:
    flow, vocoder = small.flow(), small.vocoder()
    voice = small.voice(flow)
    decoder = Token2wavDecoder(TINY, flow, vocoder, lambda asked: voice, most_chunks=8, tail_codes=None)
    streams = [decoder.begin(Fence("", 0, 0, 0), "") for _ in range(4)]
    decoder.decode([Chunk(codes("begun", 25), 0, streams[0])])
    passes: list[int] = []
    for network in (flow, vocoder):
        step = network.step

        def counted(given: Any, states: Any, *rest: Any, step: Any = step, **more: Any) -> Any:
            passes.append(len(states))
            return step(given, states, *rest, **more)

        monkeypatch.setattr(network, "step", counted)
    decoder.decode([Chunk(codes(str(i), 25), 0, stream) for i, stream in enumerate(streams)])
    assert passes == [1, 3, 1, 3]


@pytest.mark.parametrize("initial", [8, 25])
def test_units_of_codes_that_come_once_a_second_are_played_without_a_gap(initial: int) -> None:
    """The talker writes a unit's 25 codes in 0.2 s; decoding takes 60 ms, whatever is decoded."""
    arrivals = [unit + 0.008 * (i + 1) for unit in range(8) for i in range(25)]
    chunking = ChunkingConfig(initial_codec_chunk_frames=initial, codec_chunk_frames=25)
    played = play(ChunkPlanner(chunking, CODE / 24_000), arrivals, CODE / 24_000, lambda window: 0.06)
    assert played.stalls == ()


@settings(deadline=None, max_examples=10)
@given(st.lists(st.tuples(st.integers(1, 30), st.booleans()), min_size=1, max_size=6))
def test_tails_that_are_padded_to_one_shape_are_trimmed_exactly(replies: list[tuple[int, bool]]) -> None:
    flow = small.flow()
    voice = small.voice(flow)
    plain, padded = (Token2wavDecoder(TINY, flow, small.vocoder(), lambda asked: voice, most_chunks=8, tail_codes=tail)
                     for tail in (None, 24 + 3))
    sounds = []
    for decoder in (plain, padded):
        chunks = []
        for i, (count, begun) in enumerate(replies):
            stream = decoder.begin(Fence("", 0, 0, 0), "")
            if begun:
                decoder.decode([Chunk(codes("begun", 25), 0, stream)])
            chunks.append(Chunk(codes(str(i), min(count, 24)), 0, stream, last=True))
        sounds.append(decoder.decode(chunks))
    for ours, theirs in zip(*sounds, strict=True):
        assert ours.shape == theirs.shape
        assert np.abs(ours.astype(int) - theirs).max() <= 1


def test_how_codes_are_cut_changes_the_sound_little() -> None:
    """The flow attends both ways within a chunk: not the same samples, but the same speech."""
    flow = small.flow()
    voice = small.voice(flow)
    mels = []
    for cuts in ((25, 25), (10, 40)):
        state, at, parts = voice.state, 0, []
        row = torch.tensor([[TINY.silence_code] * 3 + small.codes("cut", 50)])
        for cut in cuts:
            mel, (state,) = flow.step(row[:, at:at + cut + 3], [state], [voice], last=False)
            parts.append(mel)
            at += cut
        mels.append(torch.cat(parts, 2))
    assert 0 < (mels[0] - mels[1]).abs().mean() < 0.2 * mels[0].abs().mean()


def test_sound_that_overflowed_is_silent_and_counted() -> None:
    flow, vocoder = small.flow(), small.vocoder()
    voice = small.voice(flow)
    broken = replace(voice, speaker=torch.full_like(voice.speaker, torch.inf))
    decoder = Token2wavDecoder(TINY, flow, vocoder, lambda asked: broken, most_chunks=1, tail_codes=None)
    counter = DROPS.labels(what="samples", reason="not_finite")
    before = counter._value.get()
    sound, = decoder.decode([Chunk(codes("lost", 20), 0, decoder.begin(Fence("", 0, 0, 0), ""), last=True)])
    assert len(sound) == 27 * CODE
    assert not sound.any()
    assert counter._value.get() - before == 23 * CODE


@pytest.mark.parametrize("frames", [np.zeros((2, 1), np.float32), np.zeros((2, 2), np.int32),
                                    np.full((1, 1), 6561, np.int32), np.full((1, 1), -1, np.int32)])
def test_frames_that_are_no_codes_are_refused(frames: NDArray[Any]) -> None:
    flow = small.flow()
    voice = small.voice(flow)
    decoder = Token2wavDecoder(TINY, flow, small.vocoder(), lambda asked: voice, most_chunks=1, tail_codes=None)
    with pytest.raises(ValueError, match=r"token2wav reads int32|not all in the codebook of 6561"):
        decoder.check(frames)


@pytest.mark.parametrize(("options", "changes", "message"), [
    ({}, {"output_rate": 16_000}, "set output_rate to 24000"),
    ({}, {"chunking": {"codec_left_context_frames": 3}}, "set chunking.codec_left_context_frames to 0"),
    ({"device": "cuda:7"}, {}, "device is 'cuda:7', but 0 GPUs can be used here"),
    ({"n_timesteps": 0}, {}, "options of the MiniCPM-o codec: .*n_timesteps"),
    ({"steps": 4}, {}, "options of the MiniCPM-o codec: .*steps"),
    ({"default_voice": "alto"}, {}, "'alto' is not one of the voices"),
])
def test_options_that_cannot_be_had_are_refused_with_what_to_do(
        options: dict[str, Any], changes: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        create({**RANDOM, **options}, pipeline(**changes))


# --- stored checkpoints ------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny checkpoint, whose token2wav was converted from a folder as the release has it; without a reference."""
    folder = tmp_path_factory.mktemp("checkpoint")
    random.write(folder, "tiny")
    release = released_folder.write(folder / "assets" / "token2wav", speaker_size=onnx_files.SPEAKER_SIZE)
    convert(release, folder / "token2wav")
    return folder


def test_sessions_speak_in_the_voices_they_ask_for(checkpoint: Path, tmp_path: Path) -> None:
    t = np.arange(48_000) / 24_000
    voices = {"alto": write_wav(tmp_path / "alto.wav", like_speech(24_000, 2.0), 24_000),
              "bass": write_wav(tmp_path / "bass.wav", np.sin(700 * t * t).astype(np.float32), 24_000)}
    stage = create({"voices": voices, "default_voice": "bass", "n_timesteps": 2}, pipeline(model=checkpoint))
    heard = {}
    for session, voice in (("a", "alto"), ("b", "bass"), ("m", "marin")):
        opened(stage, session, voice=voice)
        say(stage, session, "reply", 20)
        heard[session] = pcm(audio(stage)[session])
    assert np.array_equal(heard["b"], heard["m"])
    assert not np.array_equal(heard["a"], heard["b"])
    stage.close()


def test_a_checkpoint_without_a_reference_asks_for_one(checkpoint: Path) -> None:
    with pytest.raises(ConfigError, match=r"comes with no reference recording"):
        create({"n_timesteps": 2}, pipeline(model=checkpoint))


def test_a_checkpoint_whose_token2wav_is_still_pickles_names_the_command(tmp_path: Path) -> None:
    random.write(tmp_path, "tiny")
    (tmp_path / "token2wav" / "config.json").unlink()
    with pytest.raises(ConfigError, match=r"python -m duologue\.engine\.models\.minicpmo\.token2wav\.convert"):
        create({}, pipeline(model=tmp_path))
