"""``duologue livekit``: what it is told, and what it says when that does not do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import pytest
import yaml

from duologue.agent.switchboard import Switchboard
from duologue.cli import _open_livekit, main
from duologue.config import DEFAULT_CONFIG, load
from duologue.engine import ConfigError, Engine

GIVEN = {"url": "wss://rooms.example.org", "api_key": "k", "api_secret": "s"}


def config_with(folder: Path, livekit: dict[str, object]) -> str:
    config = yaml.safe_load((Path(sys.modules["duologue"].__file__ or "").parent / DEFAULT_CONFIG).read_text())
    file = folder / "rooms.yaml"
    file.write_text(yaml.safe_dump({**config, "livekit": livekit}))
    return str(file)


def test_without_a_server_it_says_how_to_name_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["livekit"]) == 2
    assert "--url" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "said"), [
    (["--url", "rooms.example.org", "--api-key", "k", "--api-secret", "s"], "livekit.url"),
    (["--url", "ws://x", "--api-key", "k"], "livekit.api_secret: Field required"),
])
def test_a_word_that_does_not_do_is_named(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["livekit", *words]) == 2
    assert said in capsys.readouterr().err


def test_the_command_line_goes_before_the_config(tmp_path: Path) -> None:
    path = config_with(tmp_path, {**GIVEN, "agent_name": "a"})
    config = load(path, livekit={"agent_name": "b"}).livekit
    assert config is not None
    assert (config.url, config.agent_name) == (GIVEN["url"], "b")


def test_the_secret_is_not_shown(tmp_path: Path) -> None:
    config = load(config_with(tmp_path, {**GIVEN, "api_secret": "hush-hush"}))
    assert "hush-hush" not in repr(config)


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duologue.agent.transports.livekit.door", None)
    config = load(config_with(tmp_path, dict(GIVEN))).livekit
    assert config is not None
    with pytest.raises(ConfigError, match=r"duologue\[livekit\]"):
        _open_livekit(config, cast(Switchboard, None), cast(Engine, None))
