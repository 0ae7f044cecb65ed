"""Signalling after OpenAI's Realtime convention: an SDP offer is posted, the answer comes back.

The ``Authorization`` header is accepted and not checked: who may reach the port may call.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from duologue.agent.http.admission import check_model, check_open, say_refused, ticket_of
from duologue.agent.http.body import BODY_TIMEOUT_S, read_json
from duologue.agent.http.errors import ApiError
from duologue.agent.http.host import HOST
from duologue.agent.realtime.session import BadSessionError
from duologue.agent.transports.base import Telephone, TransferFailed
from duologue.agent.transports.sdp import BadOffer
from duologue.agent.transports.webrtc import NoAddress
from duologue.engine import Refused

CALLS = "/v1/realtime/calls"

BODY_LIMIT = 64 * 1024
"""Bytes a request may have; a browser's offer has under 10 kB."""


async def create(request: web.Request) -> web.Response:
    """``POST /v1/realtime/calls``: 201 with the answer SDP and the call's place in ``Location``."""
    check_open(request)
    sdp, session = await _read(request)
    host = request.app[HOST]
    check_model(request.query.get("model"), "model", host.models)
    if session is not None:
        check_model(session.get("model"), "session.model", host.models)
    try:
        call_id, answer = await host.offer(sdp, session, ticket_of(request))
    except BadSessionError as bad:
        raise ApiError(400, "invalid_value", str(bad), param=bad.param) from bad
    except BadOffer as bad:
        raise ApiError(400, bad.code, bad.message, param="sdp") from bad
    except NoAddress as fault:
        raise ApiError(503, "media_down", str(fault)) from fault
    except Refused as refused:
        raise say_refused(refused) from refused
    return web.Response(status=201, body=answer.encode(), content_type="application/sdp",
                        headers={"Location": f"{CALLS}/{call_id}"})


async def hang_up(request: web.Request) -> web.Response:
    """``POST .../{id}/hangup`` (200) and ``DELETE .../{id}`` (204)."""
    call_id = request.match_info["id"]
    if not await request.app[HOST].hang_up(call_id):
        raise _no_call(call_id)
    return web.Response(status=204 if request.method == "DELETE" else 200)


async def refer(request: web.Request) -> web.Response:
    """``POST .../{id}/refer`` with ``{"target_uri": "tel:+15551234"}``: 200 once a telephone's caller is there."""
    target = await _word(request, "target_uri")
    try:
        await _telephone(request).transfer(target)
    except ValueError as bad:
        raise ApiError(400, "bad_target", str(bad), param="target_uri") from bad
    except TransferFailed as failed:
        raise ApiError(502, "transfer_failed", str(failed)) from failed
    return web.Response()


async def press(request: web.Request) -> web.Response:
    """``POST .../{id}/dtmf`` with ``{"keys": "12#"}``: 200 once they are on their way to a telephone."""
    keys = await _word(request, "keys")
    try:
        _telephone(request).press(keys)
    except ValueError as bad:
        raise ApiError(400, "bad_keys", str(bad), param="keys") from bad
    return web.Response()


async def models(request: web.Request) -> web.Response:
    """``GET /v1/models``."""
    names = request.app[HOST].models
    return web.json_response({"object": "list", "data": [
        {"id": name, "object": "model", "created": 0, "owned_by": "duologue"} for name in names]})


def add_routes(app: web.Application) -> None:
    """Add this module's routes."""
    app.router.add_post(CALLS, create)
    app.router.add_delete(CALLS + "/{id}", hang_up)
    app.router.add_post(CALLS + "/{id}/hangup", hang_up)
    app.router.add_post(CALLS + "/{id}/refer", refer)
    app.router.add_post(CALLS + "/{id}/dtmf", press)
    app.router.add_get("/v1/models", models)


def _no_call(call_id: str) -> ApiError:
    return ApiError(404, "call_not_found", f"there is no call {call_id}; it may have ended", param="id")


def _telephone(request: web.Request) -> Telephone:
    call_id = request.match_info["id"]
    try:
        telephone = request.app[HOST].telephone(call_id)
    except KeyError:
        raise _no_call(call_id) from None
    if telephone is None:
        raise ApiError(409, "not_a_telephone", f"{call_id} is not a telephone's call", param="id")
    return telephone


async def _word(request: web.Request, name: str) -> str:
    """Return the one string of a JSON body."""
    body = await read_json(request)
    value = body.get(name) if isinstance(body, dict) else None
    if not isinstance(value, str) or not value.strip():
        raise ApiError(400, "missing_field", f"the body lacks the text {name}", param=name)
    return value.strip()


async def _read(request: web.Request) -> tuple[str, Mapping[str, Any] | None]:
    """Return the request's SDP and its session object, if it has one."""
    kind = request.content_type
    if kind not in ("application/sdp", "multipart/form-data"):
        raise ApiError(415, "unsupported_media_type",
                       "send the offer as application/sdp, or as multipart/form-data with the parts "
                       f"sdp and session; got {kind}")
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            if kind == "application/sdp":
                return _text(await request.read(), "sdp"), None
            form = await request.post()
    except TimeoutError as late:
        raise ApiError(408, "request_timeout", f"the body did not arrive in {BODY_TIMEOUT_S:.0f} s") from late
    except (ValueError, AssertionError, LookupError) as bad:  # what aiohttp's multipart parser raises
        raise ApiError(400, "malformed_body", "the multipart body cannot be parsed") from bad
    if "sdp" not in form:
        raise ApiError(400, "missing_part", "the multipart body lacks the part sdp", param="sdp")
    return _part(form["sdp"], "sdp"), _session(form.get("session"))


def _session(part: object) -> Mapping[str, Any] | None:
    if part is None:
        return None
    try:
        session = json.loads(_part(part, "session"))
    except (ValueError, RecursionError) as bad:
        raise ApiError(400, "malformed_session", "the part session is not JSON", param="session") from bad
    if not isinstance(session, dict):
        raise ApiError(400, "malformed_session", "the part session must be a JSON object", param="session")
    return session


def _part(part: object, name: str) -> str:
    """Return a form part's text: aiohttp gives str, bytes or bytearray, or a file where it had a filename."""
    if isinstance(part, web.FileField):
        with part.file as file:
            return _text(file.read(), name)
    if isinstance(part, bytes | bytearray):
        return _text(bytes(part), name)
    return str(part)


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as bad:
        raise ApiError(400, "malformed_body", f"{name} is not UTF-8 text", param=name) from bad
