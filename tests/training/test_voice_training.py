"""The whole training, in seconds: what comes of it is useless as a voice, but loads and speaks as one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from duologue.engine.messages import CodecFrames
from duologue.engine.models.embedded.voice import weights
from duologue.engine.models.embedded.voice.network import DIGITS, LEVELS
from duologue.engine.models.embedded.voice.talker import TrainedTalker
from duologue.engine.models.embedded.voice_format import FRAME_VECTORS, VECTOR_WIDTH
from tests.engine.models.embedded.voice import delta, opened
from training.voice import codec, corpus, letters, lexicon, talker
from training.voice.codec import FEATURES, Codec
from training.voice.edits import distance
from training.voice.export import export


def test_digits_stay_within_their_levels_and_let_gradients_through() -> None:
    features = (torch.randn(2, 40, FEATURES) * 30).requires_grad_()
    digits = Codec().digits(features)
    assert digits.shape == (2, 40 // FRAME_VECTORS, DIGITS)
    assert torch.equal(digits.detach().round().clamp(0, LEVELS - 1), digits.detach().round())
    digits.sum().backward()  # type: ignore[no-untyped-call]
    assert features.grad is not None
    assert features.grad.abs().sum() > 0


def test_the_decoder_never_looks_ahead() -> None:
    made = Codec().eval()
    digits = torch.randint(0, LEVELS, (1, 12, DIGITS)).float()
    other = digits.clone()
    other[:, 7:] = 0
    with torch.inference_mode():
        first, second = made.decode(digits), made.decode(other)
    assert torch.equal(first[:, :7 * FRAME_VECTORS], second[:, :7 * FRAME_VECTORS])
    assert not torch.equal(first[:, 7 * FRAME_VECTORS:], second[:, 7 * FRAME_VECTORS:])


@pytest.mark.parametrize(("got", "wanted", "apart"), [
    ("", "", 0), ("abc", "abc", 0), ("", "ab", 2), ("ab", "", 2), ("kitten", "sitting", 3), ("abc", "bc", 1)])
def test_the_edit_distance_is_levenshteins(got: str, wanted: str, apart: int) -> None:
    assert distance(got, wanted) == apart


@pytest.mark.component
def test_flite_tells_where_each_sound_of_a_sentence_is() -> None:
    said = corpus.Speaker().say("The apple, isn't it?")
    assert [word.phones for word in said.words] == [
        ("dh", "iy0"), ("ae1", "p", "ax0", "l"), ("ih1", "s", "n", "t"), ("ih1", "t")]
    assert [word.mark for word in said.words] == ["", ",", "", "."]
    ends = [end for word in said.words for end in (*word.ends, word.pause_end)]
    assert ends == sorted(ends)
    assert said.vectors.shape[1] == VECTOR_WIDTH
    assert ends[-1] == pytest.approx(len(said.vectors) * 0.005, abs=0.06)


@pytest.mark.component
def test_a_voice_is_trained_stopped_taken_up_again_and_exported(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    threads = torch.get_num_threads()
    try:
        corpus.write(tmp_path, codec.VALIDATION + 8)
        spoken = corpus.read(tmp_path)
        for minutes in (0.01, 0.02):
            codec.train(tmp_path, minutes)
        for minutes in (0.02, 0.04):
            talker.train(tmp_path, minutes)
        for minutes in (0.02, 0.04):
            letters.train(tmp_path, minutes)
    finally:
        torch.set_num_threads(threads)
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("end:")]
    assert len(told) == 6
    for file in ("codec.pt", "talker.pt", "letters.pt"):
        saved = torch.load(tmp_path / file, weights_only=True)
        assert saved["step"] > 1
        assert saved["spent_s"] >= 60 * 0.02
    assert all(np.isfinite(said.vectors).all() for said in spoken)
    lexicon.write(tmp_path)
    assert export(tmp_path, tmp_path / "made") > 4e6
    assert sum(file.stat().st_size for file in (tmp_path / "made").iterdir()) < 12e6
    assert "encoder_in.weight" not in weights.load(tmp_path / "made", "codec")
    stage = TrainedTalker.load(tmp_path / "made")
    stage.receive(opened("a"))
    stage.receive(delta("Hello there.", last=True))
    said = [made for _ in range(2) for made in stage.step() if isinstance(made, CodecFrames)]
    assert all(len(made.frames) for made in said)
    assert said[-1].last
