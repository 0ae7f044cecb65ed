"""Duologue as the model of a LiveKit agent: ``AgentSession(llm=RealtimeModel("http://127.0.0.1:8080"))``."""

from duologue.plugins.livekit.model import RealtimeModel

__all__ = ["RealtimeModel"]
