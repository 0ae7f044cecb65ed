"""What the encoder is trained on, and the whole training in seconds."""

from __future__ import annotations

import re
import subprocess
import wave
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from duologue.engine.models.embedded.flite import rms_voice
from duologue.engine.models.embedded.hearing.features import FRAME, FRAME_WIDTH
from duologue.engine.models.embedded.hearing.opening import Listeners
from duologue.engine.models.embedded.hearing.pieces import Pieces
from duologue.engine.models.embedded.hearing.shape import BLANK, DELAY
from duologue.engine.models.embedded.thinking.model import FOLDER
from duologue.engine.models.embedded.thinking.vocabulary import Vocabulary
from training.hearing import corpus, rows, train
from training.hearing.corpus import Sentence
from training.hearing.evaluate import heard
from training.hearing.export import export
from training.hearing.flite import VOICES, Speaker, Speech

SAID = ("count to twenty", "what is seven times six", "stop", "spell zygote", "tell me a story", "don't say that again")
VOCABULARY = Vocabulary.read(FOLDER / "tokenizer.json")
PIECES = Pieces.of(VOCABULARY)


@cache
def speaker(voice: str) -> Speaker:
    return Speaker(voice)


def sentence(voice: str, text: str) -> Sentence:
    words = tuple(text.split())
    return Sentence(words, speaker(voice).say(words))


def program(voice: str, text: str, path: Path) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    subprocess.run(["flite", "-voice", voice, "-t", text, str(path)], check=True)
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), np.int16)


def loudness(pcm: np.ndarray[tuple[int], np.dtype[np.int16]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Root mean square of each 10 ms."""
    parts = pcm[:len(pcm) // 160 * 160].reshape(-1, 160).astype(np.float64)
    return np.asarray(np.sqrt((parts ** 2).mean(1)))


@pytest.mark.parametrize("voice", VOICES)
def test_what_is_said_is_what_flites_own_program_says(voice: str, tmp_path: Path) -> None:
    for text in ("count to twenty", "what is seven times six"):
        said = speaker(voice).say(text.split(), stretch=1.1 if voice == "kal16" else 1.0)
        theirs = program(voice, text, tmp_path / "said.wav")
        assert said.pcm.shape == theirs.shape
        # All but kal16 have noise in them, drawn anew each time.
        assert np.corrcoef(loudness(said.pcm), loudness(theirs))[0, 1] > 0.99


@pytest.mark.parametrize("voice", VOICES)
def test_a_word_ends_where_its_last_phone_does(voice: str) -> None:
    said = sentence(voice, "what is seven").speech
    ends = [end for _, end in said.phones]
    names = [name for name, _ in said.phones]
    assert ends == sorted(ends)
    assert names[0] == names[-1] == "pau"
    # w ah t, ih z, s eh v ax n
    assert said.words == (ends[3], ends[5], ends[10])
    assert set(names) <= set(rows.PHONES)


def test_pitch_and_speed_are_as_asked_for() -> None:
    for voice in VOICES:
        plain, slow, high = (speaker(voice).say(["seven"], *how) for how in ((1.0, 1.0), (1.3, 1.0), (1.0, 1.3)))
        assert 1.2 < len(slow.pcm) / len(plain.pcm) < 1.4
        assert not np.array_equal(high.pcm, plain.pcm)
        assert 0.95 < len(high.pcm) / len(plain.pcm) < 1.05


def marked(words: tuple[str, ...], ends: tuple[int, ...], at: int) -> list[str]:
    """The pieces that are wanted, frame by frame; blank is empty."""
    said = Sentence(words, Speech(np.zeros(ends[-1] + FRAME, np.int16), ends, (("pau", ends[-1] + FRAME),)))
    classes, phones = np.zeros(30, np.int64), np.zeros(30, np.int64)
    rows.mark(classes, phones, said, at, PIECES)
    return [PIECES.names[number - 1] if number != BLANK else "" for number in classes]


def test_a_words_pieces_are_wanted_up_to_a_delay_behind_its_end() -> None:
    wanted = marked(("tell", "zygote"), (5 * FRAME + 3, 15 * FRAME), at=2 * FRAME)
    pieces = [PIECES.names[number - 1] for number in PIECES.classes("zygote")]
    assert len(pieces) > 1
    assert wanted[7 + DELAY] == "tell"
    last = 17 + DELAY
    assert wanted[last + 1 - len(pieces):last + 1] == pieces
    assert sum(name != "" for name in wanted) == 1 + len(pieces)


def test_pieces_for_which_there_is_no_room_come_later() -> None:
    pieces = [PIECES.names[number - 1] for number in PIECES.classes("zygote")]
    wanted = marked(("a", "zygote"), (FRAME, 2 * FRAME), at=0)
    first = wanted.index("a")
    assert first == 1 + DELAY
    assert wanted[first + 1:first + 1 + len(pieces)] == pieces


def test_a_row_is_as_long_as_it_is_and_has_its_sentences_pieces() -> None:
    said = [sentence("slt", text) for text in SAID[:3]]
    made = rows.row(said, PIECES, np.random.default_rng(0))
    assert made.frames.shape == (rows.LENGTH, FRAME_WIDTH)
    wanted = [number for text in SAID[:3] for word in text.split() for number in PIECES.classes(word)]
    assert made.classes[made.classes != BLANK].tolist() == wanted
    assert (made.phones > 0).sum() > 40


def test_a_shard_reads_back_as_it_was_written(tmp_path: Path) -> None:
    said = [sentence(voice, text) for voice, text in zip(VOICES, SAID, strict=False)]
    corpus.write(tmp_path / "speech-000.npz", said)
    back = corpus.read(tmp_path / "speech-000.npz")
    assert [one.words for one in back] == [one.words for one in said]
    for one, other in zip(back, said, strict=True):
        np.testing.assert_array_equal(one.speech.pcm, other.speech.pcm)
        assert replace(one.speech, pcm=other.speech.pcm).words == other.speech.words
        assert one.speech.phones == other.speech.phones


def test_a_folder_without_speech_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"has no speech: run python -m training\.hearing\.corpus"):
        train.Speech(tmp_path)


@pytest.mark.component
def test_an_encoder_is_trained_stopped_taken_up_again_exported_and_heard_with(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus.write(tmp_path / "speech-000.npz", [sentence("slt", text) for text in SAID])
    threads = torch.get_num_threads()
    try:
        for minutes in (0.03, 0.2):
            train.train(tmp_path, minutes)
    finally:
        torch.set_num_threads(threads)
    first, second = re.findall(r"end: \S+ min, step (\d+): pieces (\S+), phones (\S+)", capsys.readouterr().out)
    assert int(second[0]) > int(first[0]) > 0
    assert float(second[1]) < float(first[1])
    count = export(tmp_path, tmp_path / "hearing.safetensors")
    assert count < 3e6
    listener = Listeners(VOCABULARY, FOLDER, tmp_path / "hearing.safetensors")()
    # It hears what it was told a hundred times, or nearly.
    words = heard(listener, speaker("slt").say(SAID[0].split()).pcm)
    assert set(words) & set(SAID[0].split()), words


def test_the_run_times_voice_in_the_same_process_silences_no_speaker() -> None:
    speaker("rms")
    rms_voice.__wrapped__()
    assert speaker("rms").say(("hello",)).pcm.any()
