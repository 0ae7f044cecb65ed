from __future__ import annotations

import pytest

from duologue.engine import journal as journal_module
from duologue.engine.journal import Called, Cut, GivenUp, Heard, Journal, Returned, Said
from duologue.engine.messages import AgentSaid, CallerSaid, Decided, Open, ToolCalled
from tests.engine.scripted import unit


def indexes(journal: Journal) -> list[int]:
    return [unit.index for unit in journal.units]


def test_history_tells_who_said_what_in_order_and_how_much_was_heard() -> None:
    journal = Journal(10)
    journal.write(Heard("hello", 0))
    for record in (Said(0, "good ", False), Said(0, "morning", True), Heard("what", 7), Said(1, "I was sayi", False),
                   Cut(1, "I was ", 2), Cut(0, "good ", 2), Said(2, "as I said", False)):
        journal.write(record)
    assert journal.history() == (
        CallerSaid("hello"), AgentSaid(0, "good ", cut=2), CallerSaid("what", 7), AgentSaid(1, "I was ", cut=2),
        AgentSaid(2, "as I said", open=True))


def test_a_tools_result_stands_where_it_was_asked_for() -> None:
    journal = Journal(10)
    for record in (Heard("weather", 1), Called("a", "sky", "{}", 2), Called("b", "sea", "{}", 3), Heard("well?", 5),
                   Returned("a", "rain")):
        journal.write(record)
    assert journal.history() == (
        CallerSaid("weather", 1), ToolCalled("a", "sky", "{}", "rain", 2), ToolCalled("b", "sea", "{}", None, 3),
        CallerSaid("well?", 5))


def test_a_result_whose_call_was_among_the_oldest_records_is_no_part_of_the_history(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "MAX_RECORDS", 1)
    journal = Journal(10)
    journal.write(Called("a", "sky", "{}", 2))
    journal.write(Returned("a", "rain"))
    assert journal.history() == ()


def test_a_reply_that_failed_is_not_gone_on_with() -> None:
    journal = Journal(10)
    journal.write(Said(0, "so", False))
    journal.write(GivenUp(0))
    assert journal.history() == (AgentSaid(0, "so", open=False),)


def test_audio_is_kept_until_it_has_become_words() -> None:
    journal = Journal(10)
    for n in range(5):
        journal.keep(unit(n), decided=n)
    journal.understood(2, "hello", decided=5)
    assert indexes(journal) == [3, 4]


def test_a_unit_without_its_decision_is_kept_though_it_was_understood() -> None:
    journal = Journal(10)
    for n in range(5):
        journal.keep(unit(n), decided=0)
    journal.understood(4, "hello", decided=2)
    assert indexes(journal) == [2, 3, 4]
    journal.keep(unit(5), decided=5)
    assert indexes(journal) == [5]


def test_the_oldest_units_go_when_there_are_too_many() -> None:
    journal = Journal(3)
    assert [journal.keep(unit(n), decided=n) for n in range(5)] == [0, 0, 0, 1, 1]
    assert indexes(journal) == [2, 3, 4]


def test_the_oldest_records_go_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "MAX_RECORDS", 2)
    journal = Journal(3)
    assert [journal.write(Heard(str(n), 0)) for n in range(3)] == [0, 0, 1]
    assert journal.history() == (CallerSaid("1"), CallerSaid("2"))


def test_audio_stays_with_the_tokens_it_was_answered_with() -> None:
    journal = Journal(3)
    dropped = []
    for n in range(5):
        dropped.append(journal.keep(unit(n), decided=n))
        journal.answered(Decided(n, 0, (n,), epoch=1))
    journal.understood(4, "hello", decided=5)
    # It has become words, and yet the model is to hear it again.
    assert indexes(journal) == [2, 3, 4]
    assert dropped == [0, 0, 0, 1, 1]
    opening = journal.opening(Open("s", 1, 0, 5, decided=5))
    assert (opening.next_unit, opening.decided) == (2, 5)
    # Answers go further back than audio.
    assert [output.unit for output in opening.outputs] == [0, 1, 2, 3, 4]
    assert opening.history == (CallerSaid("hello", 5),)


def test_a_session_without_audio_begins_with_the_unit_that_comes_next() -> None:
    assert Journal(3).opening(Open("s", 0, 0, 7)).next_unit == 7


def test_the_oldest_answers_go_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "MAX_OUTPUTS", 2)
    journal = Journal(3)
    assert [journal.answered(Decided(n, 0, (n,))) for n in range(3)] == [0, 0, 1]
    assert [output.unit for output in journal.opening(Open("s", 0, 0, 3)).outputs] == [1, 2]
