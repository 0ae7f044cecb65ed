"""What holds for all tests."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# Time is for benchmarks: a busy machine is no fault of the code's.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# `make test` looks at the same examples each time; `make check` searches for new ones.
settings.register_profile("repeatable", settings.get_profile("search"), derandomize=True)
settings.load_profile("search")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give a real call two more tries: it lives in real time, which a busy machine can take from it.

    A rule that is broken fails each time.
    """
    for item in items:
        if item.get_closest_marker("e2e") is not None:
            item.add_marker(pytest.mark.flaky(reruns=2))
