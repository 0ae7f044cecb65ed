"""The turn-taking machine, driven on a virtual clock: 16 samples are a millisecond."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duologue.agent.config import BargeInConfig
from duologue.agent.conversation import TRANSITIONS, Conversation
from duologue.agent.media.activity import Hint, Offset, Onset
from duologue.agent.turn_events import (
    Announce,
    CancelAsked,
    Cause,
    Duck,
    Effect,
    End,
    Event,
    HungUp,
    Interrupt,
    Pause,
    PlayFinished,
    PlayStarted,
    RanLong,
    ReplyClosed,
    ReplyOpened,
    Resume,
    Ruled,
    State,
    Tick,
    Unduck,
)

MS = 16


class Stage:
    """A conversation and its clock."""

    def __init__(self, **config: int) -> None:
        self.conversation = Conversation(BargeInConfig(**config))
        self.now = 0
        self.effects: list[Effect] = []

    def run(self, ms: int, heard: bool = False) -> list[Effect]:
        """Let time pass in frames of 20 ms; gives the effects of it."""
        before = len(self.effects)
        for _ in range(ms // 20):
            self.now += 20 * MS
            self.give(Tick(self.now, 20 * MS if heard else 0))
        return self.effects[before:]

    def give(self, event: Event) -> list[Effect]:
        effects = list(self.conversation.handle(event))
        self.effects += effects
        return effects

    def speak(self, turn: int = 1) -> None:
        """Bring a reply to where it is being played, past the echo guard."""
        self.give(ReplyOpened(turn))
        self.give(PlayStarted(turn))
        self.run(4000, heard=True)

    @property
    def state(self) -> State:
        return self.conversation.state


def test_a_reply_goes_from_thinking_to_speaking_to_listening() -> None:
    stage = Stage()
    assert stage.give(ReplyOpened(1)) == [Announce(State.THINKING)]
    assert stage.give(PlayStarted(1)) == [Announce(State.SPEAKING)]
    assert stage.give(ReplyClosed(1, silent=False)) == []
    assert stage.give(PlayFinished(1)) == [Announce(State.LISTENING)]


def test_an_onset_over_a_reply_pauses_it_at_once() -> None:
    stage = Stage()
    stage.speak()
    assert stage.give(Onset(stage.now - 40 * MS)) == [Pause(stage.now - 40 * MS), Announce(State.PAUSED)]


def test_an_onset_before_the_first_sample_holds_the_reply() -> None:
    stage = Stage()
    stage.give(ReplyOpened(1))
    stage.give(Onset(0))
    assert stage.state is State.PAUSED
    stage.give(Offset(0))
    stage.give(Ruled(0))
    assert stage.run(400) == [Resume(), Announce(State.THINKING)]


def test_a_hint_ducks_and_is_forgotten_when_no_onset_follows() -> None:
    stage = Stage()
    stage.speak()
    assert stage.give(Hint(stage.now)) == [Duck(), Announce(State.DUCKED)]
    assert stage.run(200) == []
    assert stage.run(60) == [Unduck(), Announce(State.SPEAKING)]


def test_a_yield_of_the_thinker_confirms_an_interruption() -> None:
    stage = Stage()
    stage.speak()
    stage.give(Onset(stage.now))
    assert stage.give(Ruled(stage.now, yields=True)) == [Interrupt(1, Cause.SPEECH), Announce(State.LISTENING)]


def test_speech_longer_than_a_backchannel_confirms_an_interruption_without_the_thinker() -> None:
    stage = Stage()
    stage.speak()
    stage.give(Onset(stage.now))
    assert stage.run(1380) == []
    assert stage.run(40) == [Interrupt(1, Cause.SPEECH), Announce(State.LISTENING)]


def test_a_false_alarm_resumes_the_reply_once_the_thinker_has_ruled() -> None:
    stage = Stage()
    stage.speak()
    stage.give(Onset(stage.now))
    stage.run(400)
    stage.give(Offset(stage.now))
    ends = stage.now
    assert stage.run(600) == []
    stage.give(Ruled(ends))
    assert stage.run(20) == [Resume(), Announce(State.SPEAKING)]


def test_a_thinker_that_never_rules_does_not_hold_a_reply_for_ever() -> None:
    stage = Stage()
    stage.speak()
    stage.give(Onset(stage.now))
    stage.give(Offset(stage.now))
    assert stage.run(780) == []
    assert stage.run(40) == [Resume(), Announce(State.SPEAKING)]


def test_speech_that_goes_on_after_a_breath_is_one_interruption() -> None:
    stage = Stage()
    stage.speak()
    stage.give(Onset(stage.now))
    stage.run(300)
    stage.give(Offset(stage.now))
    stage.run(200)
    stage.give(Onset(stage.now))
    assert stage.run(300) == []
    assert stage.state is State.PAUSED


def test_the_echo_of_the_greeting_interrupts_nothing() -> None:
    stage = Stage()
    stage.give(ReplyOpened(1))
    stage.give(PlayStarted(1))
    stage.run(500, heard=True)
    assert stage.give(Onset(stage.now)) == [Duck(), Announce(State.DUCKED)]
    assert not any(isinstance(effect, Pause | Interrupt) for effect in stage.run(2000, heard=True))
    stage.give(Offset(stage.now))
    assert stage.run(300) == [Unduck(), Announce(State.SPEAKING)]


def test_the_thinker_can_be_interrupted_during_the_echo_guard() -> None:
    stage = Stage()
    stage.give(ReplyOpened(1))
    stage.give(PlayStarted(1))
    stage.give(Onset(0))
    assert Interrupt(1, Cause.SPEECH) in stage.give(Ruled(0, yields=True))


def test_a_client_may_stop_a_reply_at_any_time_and_twice_is_nothing() -> None:
    stage = Stage()
    stage.speak()
    assert stage.give(CancelAsked()) == [Interrupt(1, Cause.CLIENT), Announce(State.LISTENING)]


def test_a_reply_that_ran_too_long_is_cut_and_says_why() -> None:
    stage = Stage()
    stage.speak()
    assert stage.give(RanLong()) == [Interrupt(1, Cause.LENGTH), Announce(State.LISTENING)]
    assert stage.give(RanLong()) == []
    assert stage.give(CancelAsked()) == []


def test_the_reply_that_is_being_played_is_the_one_that_is_cut() -> None:
    stage = Stage()
    stage.speak(1)
    stage.give(ReplyOpened(2))
    assert Interrupt(1, Cause.SPEECH) in stage.give(Ruled(stage.now, yields=True))
    assert stage.give(PlayStarted(2)) == []


def test_a_second_reply_follows_the_first() -> None:
    stage = Stage()
    stage.speak(1)
    stage.give(ReplyOpened(2))
    assert stage.give(PlayFinished(1)) == [Announce(State.THINKING)]
    assert stage.give(PlayStarted(2)) == [Announce(State.SPEAKING)]


def test_a_reply_that_failed_before_its_first_sample_gives_the_floor_back() -> None:
    stage = Stage()
    stage.give(ReplyOpened(1))
    assert stage.give(ReplyClosed(1, silent=True)) == [Announce(State.LISTENING)]


def test_a_reply_that_ends_without_a_sample_gives_the_floor_back() -> None:
    stage = Stage()
    stage.give(ReplyOpened(1))
    assert stage.give(PlayFinished(1)) == [Announce(State.LISTENING)]
    assert stage.give(CancelAsked()) == []


def test_after_the_end_nothing_has_any_effect() -> None:
    stage = Stage()
    stage.speak()
    assert stage.give(HungUp("lost")) == [End("lost"), Announce(State.ENDED)]
    assert stage.give(Onset(stage.now)) == stage.give(HungUp("again")) == []


def test_an_event_without_a_row_changes_nothing() -> None:
    stage = Stage()
    for event in (PlayStarted(7), PlayFinished(7), CancelAsked(), Ruled(100, yields=True), ReplyClosed(7, silent=True)):
        assert stage.give(event) == []
        assert stage.state is State.LISTENING


turns = st.integers(1, 4)
events = st.one_of(
    st.just("tick"), st.just("heard"), st.just("hint"), st.just("onset"), st.just("offset"),
    st.builds(Ruled, st.integers(0, 4000 * MS), st.booleans()), st.builds(ReplyOpened, turns),
    st.builds(ReplyClosed, turns, st.booleans()), st.builds(PlayStarted, turns), st.builds(PlayFinished, turns),
    st.just(CancelAsked()))


@given(st.lists(events, max_size=120))
def test_any_order_of_events_keeps_the_floor_consistent(order: list[Event | str]) -> None:
    stage = Stage()
    held = ducked = False
    cut: set[int] = set()
    for each in order:
        match each:
            case "tick":
                effects = stage.run(100)
            case "heard":
                effects = stage.run(100, heard=True)
            case "hint":
                effects = stage.give(Hint(stage.now))
            case "onset":
                effects = stage.give(Onset(stage.now))
            case "offset":
                effects = stage.give(Offset(stage.now))
            case ReplyOpened(turn) if turn in cut:
                continue  # the engine's fence: a cut turn never comes back
            case PlayStarted() if held:
                continue  # a held playout starts nothing
            case str():
                raise AssertionError(each)
            case event:
                effects = stage.give(event)
        for effect in effects:
            match effect:
                case Pause():
                    assert not held
                    held = True
                case Resume():
                    assert held
                    held = False
                case Duck():
                    assert not ducked
                    ducked = True
                case Unduck():
                    assert ducked
                    ducked = False
                case Interrupt(turn):
                    assert turn not in cut
                    cut.add(turn)
                    held = ducked = False
                case Announce(state):
                    assert state is stage.state or stage.state is not State.ENDED
        if held:
            assert stage.state is State.PAUSED
            ducked = False  # a held reply comes back at full volume
        if stage.state in (State.LISTENING, State.THINKING):
            assert not held


def test_every_state_can_be_left_and_reached() -> None:
    for state in State:
        assert any(row.target is state for row in TRANSITIONS)
        assert state is State.ENDED or any(row.state is state for row in TRANSITIONS)
