"""Everything between a unit and a chunk of PCM. These names are its whole public face."""

from duologue.engine.config import ConfigError, PipelineConfig, ProcessConfig
from duologue.engine.engine import Engine, Load, ProcessHealth
from duologue.engine.inline import InlineSession
from duologue.engine.messages import (
    INPUT_RATE,
    AgentSaid,
    CallerSaid,
    CallerText,
    CallerWords,
    Choice,
    Decision,
    EngineEvent,
    Fence,
    Health,
    HistoryItem,
    Pcm,
    ReplyAudio,
    ReplyText,
    TextSpan,
    TurnEnd,
    TurnStatus,
    Unit,
)
from duologue.engine.session import EngineSession, Overrun, Refused

__all__ = [
    "INPUT_RATE",
    "AgentSaid",
    "CallerSaid",
    "CallerText",
    "CallerWords",
    "Choice",
    "ConfigError",
    "Decision",
    "Engine",
    "EngineEvent",
    "EngineSession",
    "Fence",
    "Health",
    "HistoryItem",
    "InlineSession",
    "Load",
    "Overrun",
    "Pcm",
    "PipelineConfig",
    "ProcessConfig",
    "ProcessHealth",
    "Refused",
    "ReplyAudio",
    "ReplyText",
    "TextSpan",
    "TurnEnd",
    "TurnStatus",
    "Unit",
]
