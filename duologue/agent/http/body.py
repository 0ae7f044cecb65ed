"""A request's body as JSON."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import web

from duologue.agent.http.errors import ApiError

BODY_TIMEOUT_S = 10.0
"""How long a body may take to arrive."""


async def read_json(request: web.Request) -> Any:
    """Read it; raises ``ApiError`` for a body that is none, or that does not come in time."""
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            return json.loads(await request.text())
    except TimeoutError as late:
        raise ApiError(408, "request_timeout", f"the body did not arrive in {BODY_TIMEOUT_S:.0f} s") from late
    except (ValueError, LookupError, RecursionError) as bad:
        raise ApiError(400, "malformed_body", "the body is not JSON") from bad
