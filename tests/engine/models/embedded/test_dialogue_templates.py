import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.models.embedded.automaton import compile_grammar
from duologue.engine.models.embedded.dialogue.intents import INTENTS, grammar
from duologue.engine.models.embedded.dialogue.policy import HANDLERS
from duologue.engine.models.embedded.dialogue.templates import Alt, Grammar, Node, Ref, Seq, TemplateError, Word, read

FREE = ("x", "y")
WORDS = sorted(grammar().words)


AUTOMATON = compile_grammar(grammar(), FREE)


def sentence(node: Node, choice: random.Random) -> list[str]:
    """A random sentence of ``node``."""
    match node:
        case Word(text):
            return [text]
        case Ref("any", _):
            return choice.choices(FREE, k=choice.randint(1, 3))
        case Ref(rule, _):
            return sentence(grammar().rules[rule], choice)
        case Seq(parts):
            return [word for part in parts for word in sentence(part, choice)]
        case Alt(choices, optional):
            if optional and choice.random() < 0.5:
                return []
            return sentence(choice.choice(choices), choice)


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_the_decoders_automaton_and_the_parser_accept_every_sentence(seed: int) -> None:
    words = sentence(grammar().sentence, random.Random(seed))
    assert grammar().read(words).parse is not None
    assert AUTOMATON.accepts(words)


@settings(deadline=None)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
def test_the_automaton_accepts_nothing_the_parser_does_not(words: list[str]) -> None:
    # "any" takes any word in the parser, and only words of free speech in the AUTOMATON.
    if AUTOMATON.accepts(words):
        assert grammar().read(words).parse is not None


@settings(deadline=None)
@given(st.integers(0, 2**32), st.data())
def test_every_beginning_of_a_sentence_is_open_or_whole(seed: int, data: st.DataObject) -> None:
    match grammar().sentence:
        case Alt((Seq((lead, intents, _tail)), *_)):
            words = sentence(Seq((lead, intents)), random.Random(seed))
        case other:
            raise AssertionError(other)
    cut = data.draw(st.integers(0, len(words) - 1))
    reading = grammar().read(words[:cut])
    assert reading.open or reading.parse is not None  # free words are whole after each of them


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=8), max_size=12))
def test_any_words_can_be_read(words: list[str]) -> None:
    grammar().read(words)


def test_the_automaton_is_small_enough_to_be_searched() -> None:
    assert AUTOMATON.states < 1500
    assert len(AUTOMATON.arcs) < 25_000


def test_no_two_arcs_of_a_state_have_the_same_word() -> None:
    assert len({(source, word) for source, _, word in AUTOMATON.arcs}) == len(AUTOMATON.arcs)


def test_every_intent_has_an_answer() -> None:
    assert set(HANDLERS) == set(INTENTS) - {"fragment"}


@pytest.mark.parametrize(("words", "slots"), [
    ("remind me to call mother in ten seconds", {"task": "call mother", "number": "ten", "span": "seconds"}),
    ("remind me in two minutes to open a window", {"task": "open a window", "number": "two", "span": "minutes"}),
    ("can you please count from five to fifteen", {"start": "five", "stop": "fifteen"}),
    ("repeat after me this is a test", {"text": "this is a test"}),
])
def test_slots_are_captured(words: str, slots: dict[str, str]) -> None:
    parse = grammar().read(words.split()).parse
    assert parse is not None
    assert dict(parse.slots) == slots


@pytest.mark.parametrize(("words", "incomplete"), [
    ("remind me to", True), ("what is seven times", True), ("count to", True), ("remind me to call mum", True),
    ("count to twenty", False), ("what time is it", False), ("pizza with mushrooms", False),
])
def test_a_sentence_is_known_to_be_incomplete(words: str, incomplete: bool) -> None:
    assert grammar().read(words.split()).incomplete is incomplete


@pytest.mark.parametrize("template", ["[a", "a]", "(a | b", "a |", "", "( )", "a <b"])
def test_a_template_that_cannot_be_read_is_refused(template: str) -> None:
    with pytest.raises(TemplateError):
        read(template)


def test_a_rule_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TemplateError, match="nothing"):
        Grammar({}, {"a": ["say <nothing>"]}, ["please"], ["please"], bare=())


def test_free_words_give_way_to_what_follows_them() -> None:
    small = Grammar({}, {"tell": ["tell <any:whom> about <any:what>"]}, ["please"], ["please"], bare=())
    parse = small.read(["tell", "my", "old", "friend", "about", "his", "dog"]).parse
    assert parse is not None
    assert dict(parse.slots) == {"whom": "my old friend", "what": "his dog"}
