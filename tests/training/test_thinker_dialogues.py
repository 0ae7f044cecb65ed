"""What the thinker learns from: every wanted answer can be said in the format, and is what the words ask for."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from duologue.engine.models.embedded.dialogue.policy import HANDLERS
from duologue.engine.models.embedded.dialogue.templates import Alt, TemplateError, read
from duologue.engine.models.embedded.thinking.doubt import ASK_BACK, REFUSALS
from duologue.engine.models.embedded.thinking.format import Format, Heard, texts
from duologue.engine.models.embedded.thinking.vocabulary import Vocabulary
from training.thinker import hearing, phrasings, pool, rows, vocabulary
from training.thinker.dialogues import Dialogues
from training.thinker.errors import STATISTICS, Came, Confusions
from training.thinker.evaluate import earlier
from training.thinker.matching import Matcher
from training.thinker.moments import KEEP, LISTEN, Moment
from training.thinker.phrasebook import Phrasebook, Said
from training.thinker.rows import ANSWER, NOTHING
from training.thinker.sampling import trees
from training.thinker.words import Words

SEEDS = st.integers(0, 10**6)
MADE = 300
"""Dialogues looked at."""


@pytest.fixture(scope="module")
def words() -> Words:
    return Words()


@pytest.fixture(scope="module")
def book(words: Words) -> Phrasebook:
    return Phrasebook(phrasings.load(), words, "train")


@pytest.fixture(scope="module")
def confusions(words: Words) -> Confusions:
    return Confusions.read(STATISTICS, words)


@pytest.fixture(scope="module")
def dialogues(book: Phrasebook, confusions: Confusions) -> list[list[Moment]]:
    return list(islice(Dialogues(book, confusions).endless(3), MADE))


@pytest.fixture(scope="module")
def form(tmp_path_factory: pytest.TempPathFactory, dialogues: list[list[Moment]], words: Words) -> Format:
    file = tmp_path_factory.mktemp("vocabulary") / vocabulary.FILE
    made = phrasings.load()
    says = [text for reply in made.replies.values() for text in reply.says]
    vocabulary.write(file, [*pool.texts(dialogues, words), *says], made)
    return Format(Vocabulary.read(file))


def test_every_wanted_answer_is_read_back_from_its_tokens(dialogues: list[list[Moment]], form: Format) -> None:
    for moment in (moment for dialogue in dialogues for moment in dialogue if moment.learnt):
        wanted = moment.wanted
        if wanted == LISTEN:
            tokens = form.listening()
        elif wanted == KEEP:
            tokens = form.keeping()
        elif wanted.call is not None:
            tokens = form.calling(wanted.call)
        else:
            tokens = form.told(None, wanted.text)
        read_back = form.read(tokens)
        assert (read_back.speaks, read_back.text, read_back.call) == (wanted.speaks, wanted.text, wanted.call)
        assert len(tokens) <= form.sampling(()).max_tokens


def test_slots_are_pieces_of_what_was_heard_last(dialogues: list[list[Moment]]) -> None:
    for dialogue in dialogues:
        for index, moment in enumerate(dialogue):
            if moment.learnt and moment.wanted.call is not None:
                said = [f" {' '.join(words)} " for words in texts([*earlier(dialogue, index), (moment.heard, None)])]
                for value in moment.wanted.call.slots.values():
                    assert any(f" {value} " in text for text in said)


def test_silence_after_part_of_a_sentence_is_listened_to(dialogues: list[list[Moment]]) -> None:
    kinds = {"partial", "early", "waits", "murmur", "yields"}
    moments = [moment for dialogue in dialogues for moment in dialogue]
    assert kinds <= {moment.kind for moment in moments}
    assert all(moment.wanted == LISTEN for moment in moments if moment.kind in kinds)
    assert all(moment.wanted == KEEP for moment in moments if moment.kind == "keeps")
    assert all(moment.heard is not None and moment.heard.over for moment in moments
               if moment.kind in ("keeps", "yields"))


def test_nobody_answers_before_the_patience_of_the_sentence(book: Phrasebook) -> None:
    random = Random(0)
    for intent, waits in (("time", 160), ("count", 240), ("repeat", 640)):
        said = book.sentence(intent, random)
        while said.slots and max(end for _, end in said.slots.values()) < len(said.words):
            said = book.sentence(intent, random)
        assert hearing.whole(said, "").patience_ms == waits


def test_the_same_seed_makes_the_same_dialogues(book: Phrasebook, confusions: Confusions) -> None:
    first, second = (list(islice(Dialogues(book, confusions).endless(5), 10)) for _ in range(2))
    assert first == second
    assert first != list(islice(Dialogues(book, confusions).endless(6), 10))


def test_what_is_out_of_domain_may_have_strange_words_and_is_refused(book: Phrasebook, confusions: Confusions) -> None:
    written = {word for text in book.phrasings.out_of_domain["train"] for seed in range(8)
               for word in book.draw(text, Random(seed))}
    unknown = dict[float, float]()
    for strange in (0.0, 1.0):
        made = islice(Dialogues(book, confusions, levels={0.0: 1.0}, strange=strange).endless(7), MADE)
        moments = [moment for dialogue in made for moment in dialogue if moment.kind == "out_of_domain"
                   and moment.heard is not None and moment.wanted.speaks]
        heard = [moment.heard.words for moment in moments if moment.heard is not None]
        assert all(moment.wanted.text in REFUSALS for moment in moments)
        assert not any(map(book.matcher.intents, heard))
        unknown[strange] = sum(bool(set(words) - written) for words in heard) / len(heard)
    assert unknown[0.0] < 0.5 < 0.9 < unknown[1.0]


def test_every_skill_and_every_reply_is_drawn(book: Phrasebook) -> None:
    assert set(book.calls) == set(HANDLERS) - {"backchannel"}
    assert set(book.replies) == set(phrasings.load().replies)
    random = Random(1)
    for intent in (*book.calls, *book.replies):
        said = book.sentence(intent, random)
        assert book.matcher.intents(said.words) == {intent}
        assert not book.matcher.intents(said.words[:1]) or len(said.words) == 1 or book.matcher.begins(said.words[:1])


def test_held_out_phrasings_are_in_no_training(words: Words, book: Phrasebook) -> None:
    held_out = Phrasebook(phrasings.load(), words, "held out")
    random = Random(2)
    unseen = [held_out.sentence("time", random).words for _ in range(60)]
    assert any(not book.matcher.intents(sentence) for sentence in unseen)


SAID = Said(("please", "set", "a", "timer", "for", "ten", "minutes"), {"number": (5, 6), "span": (6, 7)}, "remind")


def came(*changed: tuple[int, str]) -> list[Came]:
    by_place = dict(changed)
    return [Came(by_place.get(place, word), place, place not in by_place) for place, word in enumerate(SAID.words)]


def test_a_call_needs_its_slots(book: Phrasebook) -> None:
    heard = hearing.misheard(SAID, "", came((6, "mini")), book)
    assert heard is not None
    assert heard.wanted.text == ASK_BACK


def test_words_around_may_be_misheard(book: Phrasebook) -> None:
    heard = hearing.misheard(SAID, "", came((0, "peas"), (2, "the")), book)
    assert heard is not None
    assert heard.wanted.call is not None
    assert heard.wanted.call.slots == {"number": "ten", "span": "minutes"}


def test_a_number_is_what_was_heard(book: Phrasebook) -> None:
    heard = hearing.misheard(SAID, "", came((5, "seven")), book)
    assert heard is not None
    assert heard.wanted.call is not None
    assert heard.wanted.call.slots["number"] == "seven"


def test_what_is_wanted_must_be_left(book: Phrasebook) -> None:
    heard = hearing.misheard(SAID, "", came((1, "said"), (3, "dime"), (4, "four")), book)
    assert heard is not None
    assert heard.wanted.text == ASK_BACK


@settings(deadline=None)
@given(seed=SEEDS, level=st.sampled_from((0.5, 1.0, 3.0)))
def test_what_came_right_is_what_was_said(confusions: Confusions, seed: int, level: float) -> None:
    heard = confusions.hear(SAID.words, Random(seed), level)
    assert all(one.word == SAID.words[one.source] for one in heard if one.right and one.source is not None)
    sources = [one.source for one in heard if one.source is not None]
    assert sources == sorted(sources)


def test_rows_hold_trees_whose_branches_see_only_their_past(dialogues: list[list[Moment]], form: Format) -> None:
    made = [rows.parts(dialogue, form, 192) for dialogue in dialogues]
    (row, *_) = rows.packed(made[:6], 448)
    arrays = rows.arrays([row], 448, {})
    sees = (arrays["sees"][0][:, None] >> arrays["parts"][0][None, :]) & 1
    for place in range(len(row.tokens)):
        seen = np.flatnonzero(sees[place][:place + 1])
        # One sees all of one's own sequence, each position once, and oneself last.
        assert arrays["positions"][0][seen].tolist() == list(range(row.positions[place] + 1))
        assert seen[-1] == place


def test_what_is_learnt_are_the_wanted_answers(dialogues: list[list[Moment]], form: Format) -> None:
    for dialogue in dialogues[:40]:
        (begin, *made) = rows.parts(dialogue, form, 448)
        assert set(begin.learnt) == {NOTHING}
        for moment, part in zip(dialogue, made, strict=False):
            answer = tuple(id for id, learnt in zip(part.tokens, part.learnt, strict=True) if learnt == ANSWER)
            if moment.learnt:
                read_back = form.read(answer)
                assert (read_back.speaks, read_back.text, read_back.call) == (
                    moment.wanted.speaks, moment.wanted.text, moment.wanted.call)
            else:
                assert not answer


def test_a_history_is_what_the_run_time_would_have_in_its_sequence(form: Format) -> None:
    heard = Heard(("what", "time", "is", "it"), 160)
    dialogue = [Moment(None, heard, LISTEN, "waits"), Moment(0, heard, LISTEN, "early")]
    begin, first, second = rows.parts(dialogue, form, 192)
    assert begin.tokens == form.prefix[0].ids
    assert first.tokens == (*form.unit(heard).ids, *form.listening(), *form.grammar.tail)
    assert second.tokens == (*form.unit(heard).ids, *form.listening())
    assert second.first == len(begin.tokens) + len(first.tokens)


@settings(deadline=None)
@given(text=st.text(st.sampled_from("abcxyz' -.,?!QZ019é"), max_size=30))
def test_the_vocabulary_splits_as_the_tokenizers_library(form: Format, tmp_path_factory: pytest.TempPathFactory,
                                                         text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "same.json"
    if not file.exists():
        vocabulary.write(file, ["abc xyz", "what time is it", "Quiz, quiz!"] * 3, phrasings.load())
    assert list(Vocabulary.read(file).encode(text)) == Tokenizer.from_file(str(file)).encode(text).ids


def test_any_word_of_the_dictionary_has_pieces(form: Format, words: Words) -> None:
    assert all(form.vocabulary.decode(form.vocabulary.encode(word)) == word for word in words.all)


def test_over_a_reply_short_words_that_mean_nothing_leave_the_floor_where_it_is(
        dialogues: list[list[Moment]], book: Phrasebook) -> None:
    over = [moment for dialogue in dialogues for moment in dialogue
            if moment.learnt and moment.heard is not None and moment.heard.over and not moment.heard.silent_ms]
    senseless = [moment for moment in over if moment.heard is not None and not moment.heard.long
                 and not book.matcher.begins_plainly(moment.heard.words)]
    assert len(senseless) > 5
    assert all(moment.wanted == KEEP for moment in senseless)
    assert any(moment.wanted == LISTEN for moment in over)


def matcher(**templates: list[str]) -> Matcher:
    return Matcher(trees({"fruit": ["apple | pear"]}), trees(templates), read("please"), Alt((read("now"),)))


def test_an_automaton_reads_what_its_templates_say() -> None:
    made = matcher(eat=["eat [the] <fruit:what>", "have <any:what> for (lunch | tea)"], stop=["stop", "eat no <fruit>"])
    for text, intents in (("eat apple", {"eat"}), ("please eat the pear now", {"eat"}), ("eat no pear", {"stop"}),
                          ("have a big pie for tea", {"eat"}), ("have for tea", set()), ("eat", set()), ("", set()),
                          ("stop now", {"stop"}), ("now stop", set()), ("eat the the pear", set())):
        assert made.intents(text.split()) == intents, text
    assert made.begins(["please", "eat", "the"])
    assert not made.begins(["please", "the"])
    assert made.begins(["have", "a"])
    assert not made.begins_plainly(["have", "a"])
    assert made.begins_plainly(["have"])
    assert made.begins_plainly(["please", "eat", "the", "pear"])


def test_an_automaton_names_a_rule_that_is_missing() -> None:
    with pytest.raises(TemplateError, match="<nut>"):
        matcher(eat=["eat <nut>"])


def test_statistics_lie_beside_their_reader() -> None:
    assert STATISTICS.parent == Path(rows.__file__).parent
