"""How a stage reads its options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from duologue.engine.config import ConfigError
from duologue.strict import Strict, faults

_Options = TypeVar("_Options", bound=Strict)


def read_options(kind: type[_Options], options: Mapping[str, Any], whose: str) -> _Options:
    """Give ``options`` their type; raises ``ConfigError`` that says whose they are and what is wrong with each."""
    try:
        return kind.model_validate(dict(options))
    except ValidationError as error:
        raise ConfigError(f"options of the {whose}: {faults(error)}") from None
