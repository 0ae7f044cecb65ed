"""The first call's conversation with the dialogue policy: the same page, the same caller, the same outcome."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.interrupted_count import check, cut_at, spoken
from tests.e2e.test_conversations import talk
from tests.harness.server import running_server

pytestmark = pytest.mark.e2e


async def test_an_agent_of_rules_that_is_interrupted_knows_what_was_heard(tmp_path: Path) -> None:
    microphone = spoken()
    async with running_server(tmp_path, "stage_configs/embedded-rules.yaml") as server:
        recording = await talk(server, microphone)
        assert await server.metric_reaches("duologue_calls_live", 0)
    assert check(recording, microphone) == cut_at(recording, microphone)
