"""A Duologue server as a LiveKit agent's model."""

from __future__ import annotations

import aiohttp
from livekit.agents.llm._realtime import openai
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, NOT_GIVEN, APIConnectOptions, NotGivenOr

from duologue.plugins.livekit.session import RealtimeSession


class RealtimeModel(openai.RealtimeModel):
    """The model behind a Duologue server: ``AgentSession(llm=RealtimeModel("http://127.0.0.1:8080"))``.

    Args:
        url: the server's address, ``http`` or ``https``.
        api_key: sent as ``Authorization: Bearer``, if the server asks for one.
        voice: one of the server's; left out, the one it has.
        turn_detection: left out, the model decides when to speak. None: it speaks when it is asked to, as it does for
            an ``AgentSession`` that takes turns by rules of its own.
        conn_options: LiveKit's, for the connection and its retries.
        http_session: the one to use; left out, LiveKit's own.
    """

    def __init__(self, url: str, *, api_key: str | None = None, voice: str | None = None,
                 turn_detection: NotGivenOr[None] = NOT_GIVEN,
                 conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
                 http_session: aiohttp.ClientSession | None = None) -> None:
        super().__init__(
            model="duologue", voice=voice or "", base_url=_address(url), api_key=api_key or "none",
            turn_detection=turn_detection, conn_options=conn_options, http_session=http_session,
            modalities=["audio"], max_session_duration=None)
        # Its constructor would take OPENAI_API_KEY, which is no business of our server's.
        self._opts.api_key = api_key
        self._provider_label = "Duologue"
        self._capabilities.per_response_tool_choice = False
        self._capabilities.auto_tool_reply_generation = self._capabilities.turn_detection

    def session(self, *, turn_detection_disabled: bool = False) -> RealtimeSession:
        """Open a session."""
        opened = RealtimeSession(self, turn_detection_disabled=turn_detection_disabled)
        self._sessions.add(opened)
        return opened


def _address(url: str) -> str:
    """Where the server's events are spoken, its own ones among them (docs/protocol.md)."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url!r} is no address of a server: give one such as http://127.0.0.1:8080")
    return f"ws{url.removeprefix('http').rstrip('/')}/v1/realtime?duplex=1"
