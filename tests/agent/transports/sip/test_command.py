"""The telephone's part of the command line and of the config."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from duologue.agent.transports.sip.command import listen
from duologue.config import load
from duologue.engine import ConfigError


@pytest.mark.parametrize(("text", "values"), [
    ("udp", {"transport": "udp"}),
    ("tcp:192.0.2.1", {"transport": "tcp", "host": "192.0.2.1"}),
    ("udp:127.0.0.1:5070", {"transport": "udp", "host": "127.0.0.1", "port": 5070}),
    ("tls:[2001:db8::1]:5061", {"transport": "tls", "host": "2001:db8::1", "port": 5061}),
])
def test_an_address_is_read(text: str, values: dict[str, Any]) -> None:
    assert listen(text) == values


@pytest.mark.parametrize("text", ["", "5060", "sctp:127.0.0.1", "udp:127.0.0.1:5060:1", "stage_configs/embedded.yaml"])
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"udp:127\.0\.0\.1:5060"):
        listen(text)


def test_without_a_word_there_are_no_telephones() -> None:
    assert load().sip is None


def test_a_bare_word_asks_for_what_the_config_has(tmp_path: Path) -> None:
    assert load(sip={}).sip is not None
    pipeline = Path(load.__code__.co_filename).with_name("stage_configs") / "embedded.yaml"
    path = tmp_path / "own.yaml"
    path.write_text(pipeline.read_text() + "\nsip:\n  realm: house\n  media: {codecs: [pcma], srtp: require}\n")
    config = load(str(path), sip={"listen": [listen("udp:127.0.0.1:0")]}).sip
    assert config is not None
    assert (config.realm, config.media.codecs, config.media.srtp) == ("house", ("pcma",), "require")
    assert config.listen[0].bind_port == 0


@pytest.mark.parametrize(("media", "word"), [
    ({"ports": (5000, 5000)}, "even port"), ({"ports": (80, 90)}, "even port"), ({"codecs": ()}, "codecs"),
    ({"codecs": ("gsm",)}, "codecs"), ({"bind": "here"}, "bind"), ({"latency": 5}, "latency")])
def test_media_that_cannot_be_are_refused_by_name(media: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        load(sip={"media": media})
