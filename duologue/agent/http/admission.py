"""Who may call: the same for every door that callers reach by HTTP.

The ``Authorization`` header is accepted and not checked: who may reach the port may call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from aiohttp import web

from duologue.agent.http.errors import ApiError
from duologue.agent.http.host import DRAIN
from duologue.engine import Refused
from duologue.metrics import REFUSALS

RETRY_MOST_S = 5
"""Longest ``Retry-After``, however long the queue: a ticket dies when it is not shown for 10 s."""

TICKET_HEADER = "X-Duologue-Ticket"


def check_open(request: web.Request) -> None:
    """Raise ``ApiError`` (503) when the server is on its way out."""
    if request.app[DRAIN].draining:
        REFUSALS.labels(reason="draining").inc()
        raise ApiError(503, "draining", "the server is going down and takes no new calls",
                       headers={"Retry-After": str(RETRY_MOST_S)})


def check_model(name: object, param: str, served: Sequence[str]) -> None:
    """Raise ``ApiError`` (404) for a model that is not served; None is any."""
    if name is not None and (not isinstance(name, str) or name not in served):
        raise ApiError(404, "model_not_found",
                       f"the model {name!r} is not served here; served: {', '.join(served)}", param=param)


def ticket_of(request: web.Request) -> str | None:
    """A caller's place in the queue, from an earlier refusal."""
    return request.headers.get(TICKET_HEADER) or request.query.get("ticket")


def say_refused(refused: Refused) -> ApiError:
    """The engine's refusal as an HTTP answer: 503, and when to ask again."""
    wait = RETRY_MOST_S if refused.eta_s is None else min(max(math.ceil(refused.eta_s), 1), RETRY_MOST_S)
    queue = {"ticket": refused.ticket, "position": refused.position, "eta_s": refused.eta_s}
    return ApiError(503, refused.reason, refused.message, headers={"Retry-After": str(wait)},
                    more={"queue": queue} if refused.ticket is not None else None)
