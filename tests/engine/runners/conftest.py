"""The runners of our own, for what all of them promise."""

from __future__ import annotations

import pytest

from tests.engine.runners.kinds import KINDS, Kind


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    made: Kind = KINDS[request.param]
    return made
