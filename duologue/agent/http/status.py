"""Health and metrics."""

from __future__ import annotations

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from duologue.agent.http.host import DRAIN, HOST


async def healthz(request: web.Request) -> web.Response:
    """``GET /healthz``: 200, or 503 with the names of the parts that fail.

    A draining server answers 503 too, so that a load balancer sends new callers elsewhere.
    """
    parts = request.app[HOST].health()
    failing = sorted(name for name, part in parts.items() if not part.up)
    draining = request.app[DRAIN].draining
    body = {
        "status": "failing" if failing else "draining" if draining else "ok",
        "failing": failing,
        "draining": draining,
        "parts": {name: {"up": part.up, "detail": part.detail} for name, part in parts.items()},
    }
    return web.json_response(body, status=503 if failing or draining else 200,
                             headers={"Cache-Control": "no-store"})


async def metrics(request: web.Request) -> web.Response:
    """``GET /metrics`` in Prometheus' text format."""
    return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def add_routes(app: web.Application) -> None:
    """Add this module's routes."""
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/metrics", metrics)
