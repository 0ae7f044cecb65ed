"""The agent knows its own voice when it comes back from the caller's loudspeaker."""

from __future__ import annotations

import pytest

from duologue.engine.models.embedded.lexicon import PHONES, FittedLexicon
from duologue.engine.models.embedded.options import Options
from duologue.engine.models.embedded.overlap import is_echo


@pytest.mark.parametrize(("heard", "echo"), [
    ("hello this used while law and why", True),
    ("hello this is while law and what trim i'd", True),
    ("what is seven plus five", False),
])
def test_the_echo_of_a_greeting_is_known_although_no_dictionary_has_the_agents_name(heard: str, echo: bool) -> None:
    assert is_echo(heard.split(), Options.model_fields["greeting"].default, FittedLexicon()) is echo


def test_any_name_in_a_reply_has_the_sounds_that_the_agent_says_for_it() -> None:
    known = FittedLexicon()
    assert " ".join(known.phones(["thermostats"])) == "TH ER M AH S T AE T S"
    assert set(known.phones(["siobhan", "o'keeffe"])) <= set(PHONES)
    assert known.phones(["ph-aa", "12"]) == ()


@pytest.mark.parametrize(("heard", "echo"), [("welcome to accident home insurance", True), ("what time is it", False)])
def test_the_echo_of_a_firms_name_is_known(heard: str, echo: bool) -> None:
    assert is_echo(heard.split(), "Welcome to Aksident Home Insurance.", FittedLexicon()) is echo
