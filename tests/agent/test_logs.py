from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from duologue.agent.logs import EventLog, configure_logs


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_json_line_with_its_call_and_fields() -> None:
    stream = io.StringIO()
    configure_logs(stream=stream)
    EventLog("duologue.test").of("rtc_1").info("interrupted", turn=3, heard="a\nb")
    [line] = lines(stream)
    assert line.pop("time").endswith("+00:00")
    assert line == {"level": "info", "event": "interrupted", "logger": "duologue.test", "call": "rtc_1",
                    "turn": 3, "heard": "a\nb"}


@pytest.mark.parametrize("log_words", [False, True])
def test_words_are_logged_only_where_asked_for(log_words: bool) -> None:
    stream = io.StringIO()
    configure_logs(log_words=log_words, stream=stream)
    EventLog("duologue.test").info("caller_words", words="my secret")
    assert ("my secret" in stream.getvalue()) is log_words


def test_a_fault_brings_its_trace_in_one_line() -> None:
    stream = io.StringIO()
    configure_logs(stream=stream)
    try:
        raise ValueError("broken")
    except ValueError as fault:
        EventLog("duologue.test").error("fault", fault=fault)
    [line] = lines(stream)
    assert "ValueError: broken" in line["trace"]
    assert line["level"] == "error"


def test_other_libraries_logs_have_the_same_form_and_no_chatter() -> None:
    stream = io.StringIO()
    configure_logs(stream=stream)
    logging.getLogger("aiortc.rtcpeerconnection").info("chatter")
    logging.getLogger("aiohttp.server").error("lost %s", "x")
    assert [line["event"] for line in lines(stream)] == ["lost x"]
