"""Reads the release's ``flow.yaml`` and ``config.yaml``, which describe objects to be made, as data; makes none.

An object is the mapping of its arguments, and its class a name in it. A reference to a top-level key is its value.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from duologue.engine.config import ConfigError

CLASS = "!class"
"""Key of an object's class: its name without the modules it is in."""

_REFERENCE = re.compile(r"<(\w+)>")


class _Reference(str):
    """An expression over top-level keys, as written."""


class _Loader(yaml.SafeLoader):
    """Plain data, and objects as mappings."""


def _construct(loader: _Loader, suffix: str, node: yaml.Node) -> Any:
    if suffix == "ref":
        return _Reference(loader.construct_scalar(node)) if isinstance(node, yaml.ScalarNode) else None
    value: dict[Any, Any] = {CLASS: suffix.partition(":")[2].rpartition(".")[2]}
    if isinstance(node, yaml.MappingNode):
        value |= loader.construct_mapping(node, deep=True)
    return value


_Loader.add_multi_constructor("!", _construct)


def read(file: Path, *keys: str) -> dict[str, Any]:
    """What ``file`` has under those of the top-level ``keys`` that are there; raises ``ConfigError`` that names it."""
    try:
        with file.open(encoding="utf-8") as source:
            value = yaml.load(source, _Loader)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}); the release has one") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: not YAML: {error}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{file}: must hold a mapping")
    return {key: _resolve(value[key], value, file) for key in keys if key in value}


def member(value: dict[str, Any], key: str, kind: str, file: Path) -> dict[str, Any]:
    """The object of class ``kind`` under ``key``; raises ``ConfigError`` when there is none."""
    found = value.get(key)
    if not isinstance(found, dict) or CLASS not in found:
        raise ConfigError(f"{file}: has no object {key!r}; a {kind} was expected")
    if found[CLASS] != kind:
        raise ConfigError(f"{file}: {key} is a {found[CLASS]}; only a {kind} can be converted")
    return found


def _resolve(value: Any, top: dict[str, Any], file: Path, depth: int = 0) -> Any:
    if isinstance(value, dict):
        return {key: _resolve(each, top, file, depth) for key, each in value.items()}
    if isinstance(value, list):
        return [_resolve(each, top, file, depth) for each in value]
    if not isinstance(value, _Reference):
        return value
    match = _REFERENCE.fullmatch(value.strip())
    if match is None or match[1] not in top or depth > len(top):
        raise ConfigError(f"{file}: cannot follow the reference {str(value)!r}; write the value in its place")
    return _resolve(top[match[1]], top, file, depth + 1)
