"""The one config object, read once from YAML and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from duologue.agent.config import ConversationConfig, ServerConfig
from duologue.agent.transports.livekit.config import LiveKitConfig
from duologue.agent.transports.sip.config import SipConfig
from duologue.engine import ConfigError, PipelineConfig
from duologue.strict import Strict, faults

_SHIPPED = Path(__file__).parent
DEFAULT_CONFIG = "stage_configs/embedded.yaml"


class Config(Strict):
    """Everything a server is told."""

    pipeline: PipelineConfig
    conversation: ConversationConfig = ConversationConfig()
    server: ServerConfig = ServerConfig()
    livekit: LiveKitConfig | None = None
    """The LiveKit server whose rooms are served; none without it."""
    sip: SipConfig | None = None
    """The telephone endpoint; none without it."""


def load(path: str = DEFAULT_CONFIG, **given: Mapping[str, Any]) -> Config:
    """Read the YAML file ``path``; ``given`` overrides values of its sections, by name (the command line's words).

    A path that does not exist is looked up among the shipped configs too, so that the default works wherever
    the server is started. Raises ``ConfigError`` with a text that says what to change.
    """
    file = Path(path)
    if not file.is_file():
        file = _SHIPPED / path
    if not file.is_file():
        names = sorted(each.name for each in (_SHIPPED / "stage_configs").glob("*.yaml"))
        shipped = ", ".join(f"stage_configs/{name}" for name in names)
        raise ConfigError(f"There is no config file {path!r}. Give a path that exists, or one of: {shipped}.")
    try:
        raw = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from None
    if not isinstance(raw, dict):
        raise ConfigError(f"{path} must be a mapping with the key 'pipeline'.")
    for name, words in given.items():
        section = raw.get(name) or {}
        if isinstance(section, dict):
            raw[name] = {**section, **words}
    try:
        return Config.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(f"{path} cannot be used: {faults(error)}") from None
