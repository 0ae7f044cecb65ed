"""Structured logs: one JSON object a line, callers' words only where they were asked for.

Everything goes through the standard ``logging`` tree, so that lines of aiohttp and aiortc have the same form.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

_NOISY = ("aiohttp.access", "aioice", "aiortc", "asyncio")
"""Libraries that log each peer's progress at INFO; their warnings are kept."""


class JsonLines(logging.Formatter):
    """Formats a record as ``{"time", "level", "event", "logger", "call"?, ...fields, "words"?, "trace"?}``.

    ``words`` (what callers and agent said) is left out unless ``log_words``.
    """

    def __init__(self, *, log_words: bool) -> None:
        super().__init__()
        self._log_words = log_words

    def format(self, record: logging.LogRecord) -> str:
        """Return one line without a line break."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
        }
        call = getattr(record, "call", "")
        if call:
            line["call"] = call
        for key, value in getattr(record, "fields", {}).items():
            line.setdefault(key, value)
        words = getattr(record, "words", None)
        if self._log_words and words is not None:
            line["words"] = words
        if record.exc_info and record.exc_info[1] is not None:
            line["trace"] = "".join(traceback.format_exception(record.exc_info[1]))
        return json.dumps(line, ensure_ascii=False, default=str)


def configure_logs(*, log_words: bool = False, level: int = logging.INFO,
                   stream: TextIO | None = None) -> None:
    """Send every log of the process to ``stream`` (standard error if None) as JSON lines."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonLines(log_words=log_words))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _NOISY:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


class EventLog:
    """Logs events by name with fields, always about the same call (or about none)."""

    def __init__(self, name: str, call: str = "") -> None:
        self._logger = logging.getLogger(name)
        self._call = call

    def of(self, call: str) -> EventLog:
        """Return the same log for events of ``call``."""
        return EventLog(self._logger.name, call)

    def info(self, event: str, *, words: str | None = None, **fields: object) -> None:
        """Log something that happened. What was said goes into ``words`` and into no other field."""
        self._log(logging.INFO, event, words, fields)

    def warning(self, event: str, *, words: str | None = None, **fields: object) -> None:
        """Log something that went wrong and was dealt with."""
        self._log(logging.WARNING, event, words, fields)

    def error(self, event: str, *, fault: BaseException | None = None, **fields: object) -> None:
        """Log a fault, with its trace."""
        self._log(logging.ERROR, event, None, fields, fault)

    def _log(self, level: int, event: str, words: str | None, fields: dict[str, object],
             fault: BaseException | None = None) -> None:
        self._logger.log(level, event, exc_info=fault,
                         extra={"call": self._call, "fields": fields, "words": words})
