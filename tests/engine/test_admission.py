from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from duologue.engine.admission import Admission, Admitted, QueueFull, Waiting
from duologue.engine.config import AdmissionConfig

PERIOD = 0.08


def admission(sessions: int = 0, measured: float | None = None, **config: float) -> Admission:
    made = Admission(AdmissionConfig.model_validate(config), PERIOD)
    made.sessions = sessions
    if measured is not None:
        made.observe(measured)
    return made


def waiting(answer: Admitted | Waiting | QueueFull) -> Waiting:
    assert isinstance(answer, Waiting)
    return answer


@given(st.floats(0, 10), st.floats(0.01, 1))
def test_the_first_session_is_always_taken(measured: float, target: float) -> None:
    assert isinstance(admission(0, measured, target_load=target).ask(0), Admitted)


@given(st.integers(1, 50), st.floats(0.0001, 0.2), st.floats(0.1, 1))
def test_a_session_is_taken_when_the_grown_p99_fits_the_period(
        sessions: int, measured: float, target: float) -> None:
    grown = measured * (sessions + 1) / sessions
    assume(abs(grown - target * PERIOD) > 1e-12)
    answer = admission(sessions, measured, target_load=target).ask(0)
    assert isinstance(answer, Admitted) == (grown <= target * PERIOD)


@given(st.integers(1, 200), st.floats(0.001, 0.02))
def test_a_crowd_is_not_let_in_on_what_one_session_cost(crowd: int, cost: float) -> None:
    door = admission(1, cost, max_waiting=0)
    admitted = sum(isinstance(door.ask(0), Admitted) for _ in range(crowd))
    assert (1 + admitted) * cost <= 0.8 * PERIOD or admitted == 0


def test_one_slow_unit_in_a_hundred_does_not_close_the_door_and_two_do() -> None:
    door = admission(1)
    for n in range(200):
        door.observe(1.0 if n < 2 else 0.001)
    assert door.has_room
    assert door.p99_s == 0.001
    door.observe(1.0)
    assert not door.has_room


def test_a_caller_who_speaks_now_and_then_leaves_room_for_another() -> None:
    # What one caller was measured to cost: 3.4 ms a unit on average, 40 ms while speaking.
    door = admission(1)
    for n in range(500):
        door.observe(0.040 if n % 12 == 0 else 0.0005)
    assert door.p99_s == 0.040
    assert isinstance(door.ask(0), Admitted)


def test_a_first_unit_that_is_slow_does_not_close_the_door() -> None:
    door = admission(1)
    for seconds in (0.95, 0.001, 0.001):
        door.observe(seconds)
    assert door.has_room


def test_old_measurements_are_forgotten() -> None:
    door = admission(1, 1.0, window_units=10)
    for _ in range(10):
        door.observe(0.001)
    assert door.has_room


def full(**config: float) -> Admission:
    return admission(1, 1.0, **config)


def test_callers_wait_in_the_order_they_came() -> None:
    door = full()
    tickets = [waiting(door.ask(0)) for _ in range(3)]
    assert [ticket.position for ticket in tickets] == [1, 2, 3]
    door.left(30.0)
    assert waiting(door.ask(1, tickets[1].ticket)).position == 2
    assert waiting(door.ask(1)).position == 4
    assert isinstance(door.ask(1, tickets[0].ticket), Admitted)
    assert waiting(door.ask(1, tickets[1].ticket)).position == 1


def test_a_full_queue_takes_nobody() -> None:
    door = full(max_waiting=1)
    ticket = waiting(door.ask(0)).ticket
    assert isinstance(door.ask(0), QueueFull)
    assert waiting(door.ask(0, ticket)).position == 1


def test_who_does_not_ask_again_loses_the_place() -> None:
    door = full(ticket_ttl_s=10)
    first, second = waiting(door.ask(0)).ticket, waiting(door.ask(0)).ticket
    assert waiting(door.ask(9.9, second)).position == 2
    assert waiting(door.ask(10, second)).position == 1
    again = waiting(door.ask(10, first))
    assert (again.position, again.ticket == first) == (2, False)


def test_the_wait_is_known_once_a_session_has_ended() -> None:
    door = admission(2, 1.0)
    ticket = waiting(door.ask(0))
    assert ticket.eta_s is None
    door.sessions += 1
    door.left(60.0)
    assert waiting(door.ask(1, ticket.ticket)).eta_s == 60.0 / 2


@given(st.lists(st.tuples(st.sampled_from(["ask", "again", "leave", "wait"]), st.integers(0, 9)), max_size=60))
def test_no_order_of_callers_lets_one_overtake_or_exceeds_the_queue(actions: list[tuple[str, int]]) -> None:
    door = full(max_waiting=4, ticket_ttl_s=5)
    now, queue = 0.0, list[tuple[str, float]]()
    for action, n in actions:
        if action == "wait":
            now += n
        elif action == "leave" and door.sessions:
            door.left(1.0)
        elif action in ("ask", "again"):
            ticket = queue[n % len(queue)][0] if action == "again" and queue else None
            queue = [(t, at) for t, at in queue if t == ticket or now - at < 5]
            answer = door.ask(now, ticket)
            place = next((i for i, (t, _) in enumerate(queue) if t == ticket), len(queue))
            if isinstance(answer, Admitted):
                assert (place, door.sessions) == (0, 1)
                del queue[:1]
            elif isinstance(answer, QueueFull):
                assert place == len(queue) == 4
            else:
                assert answer.position == place + 1
                queue[place:place + 1] = [(answer.ticket, now)]
            assert door.waiting == len(queue) <= 4
