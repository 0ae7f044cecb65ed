from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator

import pytest

from duologue.engine.alarm import Alarm


@pytest.fixture
def alarm() -> Iterator[Alarm]:
    made = Alarm()
    yield made
    made.close()


def readable(alarm: Alarm, timeout_s: float) -> bool:
    return bool(select.select([alarm.fd], [], [], timeout_s)[0])


def test_it_goes_off_at_its_time_and_not_before(alarm: Alarm) -> None:
    at = time.monotonic() + 0.05
    alarm.set(at)
    assert readable(alarm, 10)
    assert time.monotonic() >= at
    alarm.clear()
    assert not readable(alarm, 0)


def test_a_time_that_has_passed_goes_off_at_once(alarm: Alarm) -> None:
    alarm.set(0.0)
    assert readable(alarm, 10)


def test_a_later_setting_replaces_an_earlier_one(alarm: Alarm) -> None:
    alarm.set(time.monotonic() + 0.02)
    alarm.set(time.monotonic() + 3600)
    assert not readable(alarm, 0.1)
    alarm.set(time.monotonic() + 0.01)
    assert readable(alarm, 10)
    alarm.clear()
    alarm.set(time.monotonic() + 0.02)
    alarm.set(None)
    assert not readable(alarm, 0.1)


def test_what_has_gone_off_is_replaced_too(alarm: Alarm) -> None:
    alarm.set(0.0)
    assert readable(alarm, 10)
    alarm.set(time.monotonic() + 3600)
    assert not readable(alarm, 0)
    alarm.set(0.0)
    assert readable(alarm, 10)
    alarm.set(None)
    assert not readable(alarm, 0)


def test_clearing_what_never_went_off_does_not_wait(alarm: Alarm) -> None:
    alarm.clear()


def test_closing_gives_back_the_descriptors_and_the_thread() -> None:
    alarm = Alarm()
    alarm.set(time.monotonic() + 3600)
    alarm.close()
    alarm.close()
    alarm.set(0.0)
    with pytest.raises(OSError):
        os.fstat(alarm.fd)
