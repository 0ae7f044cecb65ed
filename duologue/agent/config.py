"""How calls are held: turn-taking, voice activity, the server around them."""

from __future__ import annotations

from pydantic import Field

from duologue.strict import Strict


class BargeInConfig(Strict):
    """What happens when the caller makes a sound over a reply; all times in milliseconds of media."""

    duck_ms: int = Field(default=240, ge=0)
    """A hint of speech lowers the reply for this long unless an onset follows."""
    confirm_ms: int = Field(default=1400, gt=0)
    """Speech over a paused reply that lasts this long is an interruption, whatever the thinker makes of it."""
    resume_ms: int = Field(default=320, gt=0)
    """Silence after which a paused reply goes on, once the thinker has ruled on the speech before it."""
    verdict_wait_ms: int = Field(default=800, gt=0)
    """Silence after which a paused reply goes on even if the thinker has not ruled yet."""
    echo_guard_ms: int = Field(default=3000, ge=0)
    """For so much of a call's first reply audio, an onset only ducks: browsers' echo cancellers need a while to
    adapt (3 s is what LiveKit Agents and unmute wait), so what is heard may be the agent itself."""


class VadConfig(Strict):
    """Voice activity detection."""

    onset_threshold: float = Field(default=0.5, gt=0, lt=1)
    """Speech probability at which an onset begins (silero's own default)."""
    offset_threshold: float = Field(default=0.35, gt=0, lt=1)
    """Speech probability below which speech may have ended (silero's default: onset - 0.15)."""
    offset_ms: int = Field(default=128, gt=0)
    """Silence after which speech has ended."""


class ConversationConfig(Strict):
    """Turn-taking of every call."""

    barge_in: BargeInConfig = BargeInConfig()
    vad: VadConfig = VadConfig()


class ServerConfig(Strict):
    """The server around the calls."""

    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    drain_timeout_s: float = Field(default=600.0, ge=0)
    """How long live calls may go on after SIGTERM."""
    log_words: bool = False
    """Whether logs may hold what callers and agent said."""
    record: str = ""
    """Folder into which every call is recorded, audio included; none without it."""
