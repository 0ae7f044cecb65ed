import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine.models.embedded.agreement import distance, distance_within, understand
from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.dialogue.policy import Trust
from duologue.engine.models.embedded.endpoint import Patience
from duologue.engine.models.embedded.lexicon import PHONES, Lexicon
from duologue.engine.models.embedded.overlap import Verdict, is_echo, judge
from duologue.engine.models.embedded.recogniser import Heard, Hypothesis

ROWS = st.lists(st.sampled_from(PHONES), max_size=12)


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return Lexicon(grammar().words, 2000)


def heard(text: str, score: float = -1.0) -> Hypothesis:
    """Every word takes twenty frames."""
    words = tuple(Heard(word, 20 * i, 20 * i + 20) for i, word in enumerate(text.split()))
    return Hypothesis(words, score, 20 * len(words))


@given(ROWS, ROWS)
def test_distance_is_that_of_edits(a: list[str], b: list[str]) -> None:
    assert distance(a, a) == 0
    assert distance(a, b) == distance(b, a)
    assert abs(len(a) - len(b)) <= distance(a, b) <= max(len(a), len(b))


@given(ROWS, ROWS, ROWS)
def test_a_part_is_found_whatever_is_around_it(before: list[str], part: list[str], after: list[str]) -> None:
    assert distance_within(part, before + part + after) == 0
    assert distance_within(part, before) <= distance(part, before)


def test_what_both_hear_is_trusted(lexicon: Lexicon) -> None:
    result = understand(heard("please come to thirty"), [heard("please count to thirty")], 80, lexicon)
    assert result.trusted
    assert result.sentence.words == "please count to thirty"
    assert result.parse is not None
    assert result.parse.intent == "count"


def test_what_a_grammar_forces_on_other_speech_is_not_trusted(lexicon: Lexicon) -> None:
    result = understand(heard("turn on the lights in the kitchen"), [heard("ten minus nine", -30.0)], 140, lexicon)
    assert result.sentence.trust is Trust.NONE
    assert result.sentence.words == "turn on the lights in the kitchen"


def test_a_better_fit_allows_more_distance(lexicon: Lexicon) -> None:
    free = heard("flip the korean", -10.0)
    # One thousandth per frame and 60 frames: the grammar's words fit far better, far worse.
    assert understand(free, [heard("flip a coin", -9.9)], 60, lexicon).trusted
    assert not understand(free, [heard("flip a coin", -10.1)], 60, lexicon).trusted


def test_a_word_made_out_of_silence_is_dropped(lexicon: Lexicon) -> None:
    result = understand(heard("what is seven times to"), [heard("what is seven times two")], 80, lexicon)
    assert result.sentence.words == "what is seven times"
    assert result.reading.incomplete


def test_the_version_nearer_to_the_free_words_is_taken(lexicon: Lexicon) -> None:
    versions = [heard("count to thirty eight"), heard("count to thirty")]
    assert understand(heard("come to thirty"), versions, 100, lexicon).sentence.words == "count to thirty"


def test_free_words_that_are_a_sentence_of_the_dialogue_are_trusted(lexicon: Lexicon) -> None:
    result = understand(heard("what was the last thing you said"), [heard("hello hello", -50.0)], 140, lexicon)
    assert result.trusted
    assert result.parse is not None
    assert result.parse.intent == "last_said"


def test_free_speech_in_a_sentence_is_taken_from_the_free_words(lexicon: Lexicon) -> None:
    free = Hypothesis(tuple(Heard(word, 20 * i, 20 * i + 20)
                            for i, word in enumerate(("repeat", "after", "me", "good", "weather"))), -1.0, 100)
    ruled = Hypothesis((Heard("repeat", 0, 20), Heard("after", 20, 40), Heard("me", 40, 60),
                        *(Heard("ph-g", 60 + 4 * i, 64 + 4 * i) for i in range(10))), -1.0, 100)
    result = understand(free, [ruled], 100, lexicon)
    assert result.sentence.words == "repeat after me good weather"
    assert result.loose


def test_a_run_of_the_same_words_is_half_understood(lexicon: Lexicon) -> None:
    result = understand(heard("how many kilometers are option", -1.0),
                        [heard("how many kilometers are in", -90.0)], 100, lexicon)
    assert result.sentence.trust in (Trust.HALF, Trust.WHOLE)
    apart = understand(heard("how many kilometers a week hospital", -1.0),
                       [heard("how many kilometers fifty hours", -90.0)], 120, lexicon)
    assert apart.sentence.trust is Trust.HALF
    assert apart.sentence.caught == "how many kilometers"


def test_silence_is_understood_as_nothing(lexicon: Lexicon) -> None:
    assert understand(Hypothesis(), [Hypothesis()], 100, lexicon).words == ()


def test_the_more_complete_a_sentence_the_less_silence_ends_it(lexicon: Lexicon) -> None:
    patience = Patience()

    def needed(text: str, ruled: str) -> int:
        return patience.needed_ms(understand(heard(text), [heard(ruled)], 1000, lexicon))
    order = [needed("what time is it", "what time is it"), needed("count to twenty", "count to twenty"),
             needed("turn on the lights", "ten minus nine"), needed("remind me to", "remind me to")]
    assert order == sorted(order)
    assert len(set(order)) == 4
    assert order[1] <= 320
    assert order[3] == 1200


# --- over a reply -------------------------------------------------------------------------------------------

STORY = "Once there was a lighthouse keeper called Edda, who had a clock that was always late."


@pytest.mark.parametrize(("words", "echo"), [
    ("a clock that was always late", True), ("keeper called", True), ("a cloth that was always late", True),
    ("what time is it", False), ("stop", False), ("wait", False), ("late", True), ("clock stop", False),
])
def test_the_agents_own_words_are_an_echo(words: str, echo: bool, lexicon: Lexicon) -> None:
    assert is_echo(words.split(), STORY, lexicon) is echo


def verdict(text: str, ruled: str, lexicon: Lexicon, *, spoken_ms: int = 400, over: bool = False,
            settled: bool = True) -> Verdict:
    understanding = understand(heard(text), [heard(ruled, -90.0 if text != ruled else -1.0)], 1000, lexicon)
    return judge(understanding, spoken_ms, over=over, settled=settled)


def test_a_backchannel_keeps_the_floor_however_long(lexicon: Lexicon) -> None:
    for text in ("yeah", "okay", "mm-hm", "right", "i see"):
        assert verdict(text, text, lexicon, spoken_ms=1500) is Verdict.UNDECIDED
        assert verdict(text, text, lexicon, spoken_ms=1500, over=True) is Verdict.KEEPS


def test_stop_takes_the_floor_at_its_first_sight(lexicon: Lexicon) -> None:
    assert verdict("stop", "stop", lexicon, settled=False) is Verdict.TAKES
    assert verdict("wait", "wait", lexicon, settled=False) is Verdict.TAKES


def test_a_request_takes_the_floor_before_it_ends(lexicon: Lexicon) -> None:
    assert verdict("what time is", "what time is", lexicon, settled=False) is Verdict.TAKES
    assert verdict("count to", "count to", lexicon, settled=False) is Verdict.UNDECIDED
    assert verdict("count to", "count to", lexicon) is Verdict.TAKES


def test_speech_that_is_not_understood_takes_the_floor_when_it_goes_on(lexicon: Lexicon) -> None:
    assert verdict("my sister works", "six hundred", lexicon, spoken_ms=400) is Verdict.UNDECIDED
    assert verdict("my sister works", "six hundred", lexicon, spoken_ms=720) is Verdict.TAKES


def test_a_cough_keeps_the_floor(lexicon: Lexicon) -> None:
    assert verdict("the", "hello", lexicon, spoken_ms=240, over=True) is Verdict.KEEPS
    assert judge(understand(Hypothesis(), [], 10, lexicon), 240, over=True, settled=True) is Verdict.KEEPS
