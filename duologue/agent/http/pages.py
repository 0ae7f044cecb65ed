"""The page's files, as they lie in the package."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

MIME = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
"""File types served. Named here because the system's own table may call JavaScript text/plain."""

HEADERS = {
    # Nothing but the server's own files; no inline script or style, no frame, no form.
    "Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
                               "frame-ancestors 'none'",
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    # Asked for again each time, answered 304 by ETag: an updated server must not meet an old page.
    "Cache-Control": "no-cache",
}


def add_routes(app: web.Application, folder: Path) -> None:
    """Add a route for every file under ``folder`` that is there now; ``/`` is its index.html.

    Each file has a route of its own, so no path a caller makes up ever reaches the file system.
    """
    for file in sorted(folder.rglob("*")):
        kind = MIME.get(file.suffix)
        if kind is None or not file.is_file():
            continue
        name = file.relative_to(folder).as_posix()
        handler = _sender(file, kind)
        app.router.add_get(f"/{name}", handler)
        if name == "index.html":
            app.router.add_get("/", handler)


def _sender(file: Path, kind: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def send(request: web.Request) -> web.StreamResponse:
        return web.FileResponse(file, headers={**HEADERS, "Content-Type": kind})

    return send
