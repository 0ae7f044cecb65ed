"""A session that only says texts: all of what makes a reply, and nothing of a caller."""

from __future__ import annotations

import numpy as np
import pytest

from duologue.config import load
from duologue.engine import (
    CallerText,
    Engine,
    Health,
    Refused,
    ReplyAudio,
    ReplyText,
    SpeechSession,
    TurnEnd,
    TurnStatus,
)
from duologue.engine.wire import ToStage
from tests.engine.house import Guest, House
from tests.engine.scripted import WORD_SAMPLES, Order, pipeline, unit
from tests.engine.test_rules_lifetime import left_behind, placed


def ends(guest: Guest) -> list[tuple[int, TurnStatus, str]]:
    return [(event.turn, event.status, event.text) for event in guest.events if isinstance(event, TurnEnd)]


def audio(guest: Guest) -> list[int]:
    """The numbers of the words that were said, in order."""
    sound = np.concatenate([event.pcm for event in guest.events if isinstance(event, ReplyAudio)])
    assert len(sound) % WORD_SAMPLES == 0
    return [int(number) for number in sound[::WORD_SAMPLES]]


def opened(house: House) -> tuple[SpeechSession, Guest]:
    session = house.engine.open_speech()
    return session, Guest(session)


@placed
async def test_texts_are_said_one_after_the_other(placement: tuple[str, ...]) -> None:
    house = House(pipeline(*placement))
    session, guest = opened(house)
    session.say("w0 w1 w2")
    house.work()
    guest.read()
    session.say("w3 w4")
    house.work()
    guest.read()
    assert ends(guest) == [(0, TurnStatus.DONE, "w0 w1 w2"), (1, TurnStatus.DONE, "w3 w4")]
    assert audio(guest) == [0, 1, 2, 3, 4]


@placed
async def test_whatever_was_said_a_closed_session_leaves_nothing_behind(placement: tuple[str, ...]) -> None:
    house = House(pipeline(*placement))
    before = left_behind(house)
    for texts, works in ((0, 0), (1, 0), (1, 1), (1, 2), (2, 9)):
        session, guest = opened(house)
        for _ in range(texts):
            session.say("w0 w1 w2 w3")
            for process in house.processes.values():
                for _ in range(works):
                    process.work()
            if works == 9:
                house.work()
        await session.close()
        house.work()
        assert left_behind(house) == before
        assert len([event for event in guest.read() if isinstance(event, TurnEnd)]) == texts


@placed
@pytest.mark.parametrize("rate", [0.5, 2.0])
async def test_the_talker_is_told_how_fast_to_say_it(placement: tuple[str, ...], rate: float) -> None:
    house = House(pipeline(*placement))
    session, _ = opened(house)
    session.say("w0", rate)
    house.work()
    given = [crossed.message.message.rate for crossed in house.crossed
             if isinstance(crossed.message, ToStage) and isinstance(crossed.message.message, ReplyText)]
    assert set(given) == {rate}


async def test_a_text_goes_on_at_its_word_when_the_voice_died() -> None:
    house = House(pipeline("mind", "voice", "voice"))
    session, guest = opened(house)
    session.say("w0 w1 w2 w3 w4 w5")
    house.processes["voice"].work()
    house.processes["voice"].work()
    house.processes["voice"].die()
    house.processes["voice"].begin()
    house.work()
    guest.read()
    assert [event.up for event in guest.events if isinstance(event, Health)] == [False, False, True, True]
    assert ends(guest) == [(0, TurnStatus.DONE, "w0 w1 w2 w3 w4 w5")]
    assert audio(guest) == [0, 1, 2, 3, 4, 5]


async def test_a_text_goes_on_when_the_thinker_died() -> None:
    house = House(pipeline("mind", "voice", "voice"))
    session, guest = opened(house)
    session.say("w0 w1 w2 w3")
    house.processes["voice"].work()
    house.processes["mind"].die()
    house.processes["mind"].begin()
    house.work()
    guest.read()
    assert ends(guest) == [(0, TurnStatus.DONE, "w0 w1 w2 w3")]
    assert audio(guest) == [0, 1, 2, 3]


async def test_a_text_that_cannot_be_said_fails_once_and_nothing_else_with_it() -> None:
    house = House(pipeline("mind", "voice", "voice"))
    (session, guest), (other, caller) = opened(house), opened(house)
    session.say("w0 fail w1")
    other.say("w0 w1")
    house.work()
    guest.read()
    caller.read()
    assert [(turn, status) for turn, status, _ in ends(guest)] == [(0, TurnStatus.FAILED)]
    assert ends(caller) == [(0, TurnStatus.DONE, "w0 w1")]


async def test_it_takes_a_place_as_a_call_does() -> None:
    house = House(pipeline("all", "all", "all"))
    session, _ = opened(house)
    assert house.engine.load().sessions == 1
    await session.close()
    house.engine._draining = True
    with pytest.raises(Refused) as refused:
        house.engine.open_speech()
    assert refused.value.reason == "draining"


async def test_it_hears_nothing_and_says_one_text_at_a_time() -> None:
    house = House(pipeline("all", "all", "all"))
    session, guest = opened(house)
    with pytest.raises(ValueError, match=r"only says texts.*Engine\.open"):
        session.append(unit(0, Order.SPEAK))
    with pytest.raises(ValueError, match="only says texts"):
        session.inject(CallerText("hello"))
    with pytest.raises(ValueError, match="only says texts"):
        session.respond()
    session.say("w0")
    with pytest.raises(ValueError, match="when it is over"):
        session.say("w1")
    house.work()
    guest.read()
    assert audio(guest) == [0]
    await session.close()
    session.say("w2")
    house.work()
    assert guest.read() == []


async def test_a_pipeline_without_a_voice_says_so_and_gives_no_place_away() -> None:
    whole = pipeline("mind", "voice", "voice")
    house = House(whole.model_copy(update={"stages": whole.stages[:1], "edges": ()}))
    with pytest.raises(ValueError, match="'scripted' has no talker"):
        house.engine.open_speech()
    assert house.engine.load().sessions == 0


@pytest.mark.component
async def test_a_talker_that_has_the_thinkers_states_says_a_text_by_its_words() -> None:
    """Its text comes over shared memory, from the process of a thinker that was never asked."""
    engine = await Engine.start(load("stage_configs/duplex-random.yaml").pipeline)
    try:
        session = engine.open_speech()
        session.say("A text of some words that nobody thought of.")
        samples, end = 0, None
        async for event in session.outputs():
            if isinstance(event, ReplyAudio):
                samples += len(event.pcm)
            if isinstance(event, TurnEnd):
                end = event.status
                break
        assert end is TurnStatus.DONE
        assert samples > engine.config.output_rate
        await session.close()
    finally:
        await engine.close()
