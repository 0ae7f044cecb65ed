from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from duologue.engine.config import AdmissionConfig
from duologue.engine.placement import Lane, NoRoom, Placement
from duologue.engine.stage import KvBudget

PERIOD = 0.08
HEARING, VOICE = Lane(("hearing",), 2), Lane(("talker", "codec"), 3)


def placement(*lanes: Lane, **config: float) -> Placement:
    return Placement(lanes, AdmissionConfig.model_validate(config), PERIOD)


def test_sessions_are_spread_over_the_replicas() -> None:
    places = placement(HEARING, VOICE)
    for n in range(6):
        places.take(f"s{n}")
    assert [len(places.on("hearing", n)) for n in range(2)] == [3, 3]
    assert [len(places.on("talker", n)) for n in range(3)] == [2, 2, 2]


def test_processes_joined_by_a_direct_edge_serve_a_session_on_the_same_replica() -> None:
    places = placement(HEARING, VOICE)
    for n in range(5):
        places.take(f"s{n}")
        assert places.replica(f"s{n}", "talker") == places.replica(f"s{n}", "codec")


@given(positions=st.integers(1, 1000), each=st.integers(1, 100), slots=st.integers(1, 20))
def test_no_more_sessions_are_admitted_than_have_kv_at_their_full_length(
        positions: int, each: int, slots: int) -> None:
    places = placement(Lane(("hearing",), 1))
    places.process_up("hearing", 0, {"thinker": KvBudget(positions, each, slots)})
    taken = 0
    while places.why_not() is None and taken < 50:
        places.take(f"s{taken}")
        taken += 1
    assert taken == min(positions // each, slots)
    assert taken * each <= positions
    assert places.why_not() is NoRoom.MEMORY
    with pytest.raises(ValueError, match="memory"):
        places.take("one more")


def test_overcommitted_kv_is_promised_more_than_once() -> None:
    places = placement(Lane(("hearing",), 1), kv_overcommit=1.5)
    places.process_up("hearing", 0, {"thinker": KvBudget(400, 100, 100)})
    for n in range(6):
        places.take(f"s{n}")
    assert places.why_not() is NoRoom.MEMORY


def test_a_busy_replica_takes_nobody_while_another_has_time() -> None:
    places = placement(HEARING)
    places.take("a")
    places.take("b")
    for _ in range(9):
        places.observe("a", PERIOD)
        places.observe("b", 0.001)
    places.take("c")
    assert places.replica("c", "hearing") == places.replica("b", "hearing")
    for _ in range(9):
        places.observe("b", PERIOD)
    assert places.why_not() is NoRoom.BUSY
    assert places.p99_s == PERIOD


def test_a_session_moves_off_a_process_that_died_with_all_of_its_lane() -> None:
    places = placement(HEARING, VOICE)
    places.take("a")
    before = places.replica("a", "talker")
    places.process_down("codec", before)
    places.move("a", "codec")
    assert places.replica("a", "talker") == places.replica("a", "codec") != before
    assert places.replica("a", "hearing") == 0


def test_a_session_stays_where_it_is_when_no_other_replica_works() -> None:
    places = placement(HEARING)
    places.take("a")
    places.process_down("hearing", 0)
    places.process_down("hearing", 1)
    assert not places.can_move("a", "hearing")
    places.process_given_up("hearing", 1)
    with pytest.raises(ValueError, match="no other replica"):
        places.move("a", "hearing")
    assert places.why_not() is None
    places.process_given_up("hearing", 0)
    assert places.why_not() is NoRoom.DOWN


def test_a_session_being_served_is_not_turned_away_for_want_of_time() -> None:
    places = placement(HEARING)
    places.take("a")
    places.take("b")
    places.observe("b", 9.0)
    places.observe("b", 9.0)
    places.process_down("hearing", places.replica("a", "hearing"))
    assert places.can_move("a", "hearing")


def test_new_sessions_go_to_a_replica_that_is_up() -> None:
    places = placement(HEARING)
    places.process_down("hearing", 0)
    for n in range(3):
        places.take(f"s{n}")
    assert places.on("hearing", 1) == ["s0", "s1", "s2"]
    places.process_up("hearing", 0, {})
    places.take("s3")
    assert places.on("hearing", 0) == ["s3"]


class Places(RuleBasedStateMachine):
    """Whatever happens, every session has one place a lane, within the KV, and leaves nothing behind."""

    def __init__(self) -> None:
        super().__init__()
        self.places = placement(HEARING, VOICE)
        for n in range(2):
            self.places.process_up("hearing", n, {"thinker": KvBudget(300, 100, 9)})
        self.open: list[str] = []
        self.count = 0

    @rule()
    def take(self) -> None:
        if self.places.why_not() is None:
            self.count += 1
            self.places.take(f"s{self.count}")
            self.open.append(f"s{self.count}")

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        self.places.release(self.open.pop(data.draw(st.integers(0, len(self.open) - 1))))

    @rule(process=st.sampled_from(["hearing", "talker", "codec"]), replica=st.integers(0, 1))
    def die(self, process: str, replica: int) -> None:
        self.places.process_down(process, replica)
        for session in self.places.on(process, replica):
            if self.places.can_move(session, process):
                self.places.move(session, process)

    @rule(process=st.sampled_from(["hearing", "talker", "codec"]), replica=st.integers(0, 1))
    def come_back(self, process: str, replica: int) -> None:
        self.places.process_up(process, replica, {})

    @invariant()
    def every_session_has_one_place_in_each_lane(self) -> None:
        for process, replicas in (("hearing", 2), ("talker", 3), ("codec", 3)):
            on = [session for n in range(replicas) for session in self.places.on(process, n)]
            assert sorted(on) == sorted(self.open)
        assert self.places.sessions == len(self.open)

    @invariant()
    def no_replica_holds_more_than_its_kv(self) -> None:
        assert all(len(self.places.on("hearing", n)) <= 3 for n in range(2))


TestPlaces = Places.TestCase
