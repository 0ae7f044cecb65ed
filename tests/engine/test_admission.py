from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duologue.engine.admission import Admission, Admitted, QueueFull, Waiting
from duologue.engine.config import AdmissionConfig


class House:
    """An engine with ``places``, and the queue in front of it."""

    def __init__(self, places: int = 0, **config: float) -> None:
        self.places = places
        self.sessions = 0
        self.door = Admission(AdmissionConfig.model_validate(config), lambda: self.sessions < self.places)

    def ask(self, now: float, ticket: str | None = None) -> Admitted | Waiting | QueueFull:
        answer = self.door.ask(now, self.sessions, ticket)
        self.sessions += isinstance(answer, Admitted)
        return answer


def waiting(answer: Admitted | Waiting | QueueFull) -> Waiting:
    assert isinstance(answer, Waiting)
    return answer


def test_callers_wait_in_the_order_they_came() -> None:
    house = House()
    tickets = [waiting(house.ask(0)) for _ in range(3)]
    assert [ticket.position for ticket in tickets] == [1, 2, 3]
    house.places = 1
    assert waiting(house.ask(1, tickets[1].ticket)).position == 2
    assert waiting(house.ask(1)).position == 4
    assert isinstance(house.ask(1, tickets[0].ticket), Admitted)
    assert waiting(house.ask(1, tickets[1].ticket)).position == 1


def test_a_full_queue_takes_nobody() -> None:
    house = House(max_waiting=1)
    ticket = waiting(house.ask(0)).ticket
    assert isinstance(house.ask(0), QueueFull)
    assert waiting(house.ask(0, ticket)).position == 1


def test_who_does_not_ask_again_loses_the_place() -> None:
    house = House(ticket_ttl_s=10)
    first, second = waiting(house.ask(0)).ticket, waiting(house.ask(0)).ticket
    assert waiting(house.ask(9.9, second)).position == 2
    assert waiting(house.ask(10, second)).position == 1
    again = waiting(house.ask(10, first))
    assert (again.position, again.ticket == first) == (2, False)


def test_the_wait_is_known_once_a_session_has_ended() -> None:
    house = House()
    ticket = waiting(house.ask(0))
    assert ticket.eta_s is None
    house.sessions = 2
    house.door.left(60.0)
    assert waiting(house.ask(1, ticket.ticket)).eta_s == 60.0 / 2


@given(st.lists(st.tuples(st.sampled_from(["ask", "again", "leave", "wait"]), st.integers(0, 9)), max_size=60))
def test_no_order_of_callers_lets_one_overtake_or_exceeds_the_queue(actions: list[tuple[str, int]]) -> None:
    house = House(1, max_waiting=4, ticket_ttl_s=5)
    house.sessions = 1
    now, queue = 0.0, list[tuple[str, float]]()
    for action, n in actions:
        if action == "wait":
            now += n
        elif action == "leave" and house.sessions:
            house.sessions -= 1
            house.door.left(1.0)
        elif action in ("ask", "again"):
            ticket = queue[n % len(queue)][0] if action == "again" and queue else None
            queue = [(t, at) for t, at in queue if t == ticket or now - at < 5]
            answer = house.ask(now, ticket)
            place = next((i for i, (t, _) in enumerate(queue) if t == ticket), len(queue))
            if isinstance(answer, Admitted):
                assert (place, house.sessions) == (0, 1)
                del queue[:1]
            elif isinstance(answer, QueueFull):
                assert place == len(queue) == 4
            else:
                assert answer.position == place + 1
                queue[place:place + 1] = [(answer.ticket, now)]
            assert house.door.waiting == len(queue) <= 4
