"""A descriptor that becomes readable at a time, for a stage that has to work then though no message comes."""

from __future__ import annotations

import os
import threading
import time


class Alarm:
    """Times are those of ``time.monotonic``. Its thread sleeps, and starts with the first time that is set."""

    def __init__(self) -> None:
        self.fd, self._write_fd = os.pipe()
        self._changed = threading.Condition()
        self._at: float | None = None
        self._wakes_at = float("inf")
        """When the thread looks again by itself."""
        self._thread: threading.Thread | None = None
        self._rings = False
        """Whether there is a byte to be read."""
        self._closed = False

    def set(self, at: float | None) -> None:
        """Go off at ``at``, or never; this replaces what was set before, and what has gone off."""
        with self._changed:
            self._quiet()
            self._at = at
            if at is None or self._closed:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="alarm", daemon=True)
                self._thread.start()
            # A thread that wakes too early just sleeps on: waking it now would cost more.
            if at < self._wakes_at:
                self._changed.notify()

    def clear(self) -> None:
        """Make the descriptor unreadable again."""
        with self._changed:
            self._quiet()

    def _quiet(self) -> None:
        if self._rings and not self._closed:
            self._rings = False
            os.read(self.fd, 1)

    def close(self) -> None:
        """End the thread and close the descriptor; idempotent."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        os.close(self.fd)
        os.close(self._write_fd)

    def _run(self) -> None:
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                if self._at is not None and self._at <= now:
                    self._at = None
                    self._rings = True
                    os.write(self._write_fd, b"\0")
                self._wakes_at = float("inf") if self._at is None else self._at
                self._changed.wait(None if self._at is None else self._at - now)
