"""Every error is JSON in OpenAI's shape, and readable from any origin where calls are made."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from duologue.agent.logs import EventLog

_log = EventLog(__name__)

CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Location, Retry-After",
}
"""A page of any origin may call: callers prove nothing by their origin, and no cookie is read."""

PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, DELETE, OPTIONS",
    # The asterisk does not cover Authorization (Fetch standard, section 3.3.3).
    "Access-Control-Allow-Headers": "authorization, content-type, x-openai-agents-sdk, x-duologue-ticket, *",
    "Access-Control-Max-Age": "600",
}

_CODES = {404: "not_found", 405: "method_not_allowed", 408: "request_timeout", 413: "body_too_large",
          415: "unsupported_media_type"}


class ApiError(Exception):
    """An answer of the form ``{"error": {"type", "code", "message", "param"}, ...more}``."""

    def __init__(self, status: int, code: str, message: str, *, param: str | None = None,
                 headers: Mapping[str, str] | None = None, more: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.headers = dict(headers or {})
        self.more = dict(more or {})

    def response(self) -> web.Response:
        """Return the HTTP answer."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        error = {"type": kind, "code": self.code, "message": self.message, "param": self.param}
        return web.json_response({"error": error, **self.more}, status=self.status, headers=self.headers)


@web.middleware
async def json_errors(request: web.Request,
                      handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.StreamResponse:
    """Turn whatever goes wrong into JSON; what is our own fault gets an id that the log has too.

    Under /v1, answers can be read from any origin, and its preflight (``OPTIONS``) is answered here.
    """
    public = request.path.startswith("/v1/")
    if public and request.method == "OPTIONS":
        return web.Response(status=204, headers={**CORS, **PREFLIGHT})
    try:
        response = await handler(request)
    except ApiError as error:
        response = error.response()
    except web.HTTPException as error:
        if error.status < 400:
            raise
        response = _plain(request, error).response()
    except Exception as fault:
        name = secrets.token_hex(4)
        _log.error("internal_error", fault=fault, id=name, method=request.method, path=request.path)
        response = ApiError(500, "internal_error",
                            f"something failed in the server; its log has it as {name}").response()
    if public:
        response.headers.update(CORS)
    return response


def _plain(request: web.Request, error: web.HTTPException) -> ApiError:
    """Say one of aiohttp's own errors."""
    headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
    messages = {404: f"there is nothing at {request.path}",
                405: f"{request.method} is not possible at {request.path}",
                413: f"the body is larger than {request.client_max_size} bytes"}
    return ApiError(error.status, _CODES.get(error.status, "bad_request"),
                    messages.get(error.status, error.reason), headers=headers)
