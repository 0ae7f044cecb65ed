"""The files that deploy it: each is read by what will read it, as far as that can be had without a container engine."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf.json_format import ParseDict
from livekit.api import CreateSIPDispatchRuleRequest, CreateSIPInboundTrunkRequest
from pydantic import ConfigDict

from duologue.agent.transports.livekit.door import session_of
from duologue.cli import _parser
from duologue.config import load
from duologue.strict import Strict
from tests.harness.go_tool import go_tool
from tests.harness.livekit import LiveKitProcess, free_udp_port
from tests.harness.server import free_port

REPOSITORY = Path(__file__).parents[1]
COMPOSE = REPOSITORY / "docker-compose.yml"
DEPLOY = REPOSITORY / "deploy"


def compose(file: Path) -> subprocess.CompletedProcess[str]:
    """Have the Compose specification's own loader read a file, with its schema."""
    return subprocess.run([go_tool("compose-spec"), "--format", "json", str(file)], cwd=file.parent, text=True,
                          capture_output=True, check=False)


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    loaded = compose(COMPOSE)
    assert loaded.returncode == 0, loaded.stderr
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]
    return found


@pytest.mark.component
def test_the_compose_file_conforms_to_the_specification() -> None:
    loaded = compose(COMPOSE)
    assert loaded.returncode == 0, loaded.stderr
    services = json.loads(loaded.stdout)["services"]
    assert set(services) == {"redis", "livekit", "livekit-sip", "server", "rooms", "server-gpu", "rooms-gpu"}
    assert all(set(service.get("depends_on", {})) <= set(services) for service in services.values())


@pytest.mark.component
@pytest.mark.parametrize(("right", "wrong"), [
    ("network_mode: host", "network_mode: 5"), ("restart: unless-stopped", "restrat: unless-stopped"),
])
def test_a_compose_file_that_does_not_conform_is_found_out(tmp_path: Path, right: str, wrong: str) -> None:
    text = COMPOSE.read_text()
    assert right in text
    file = tmp_path / "docker-compose.yml"
    file.write_text(text.replace(right, wrong, 1))
    assert compose(file).returncode != 0


@pytest.mark.component
def test_each_profile_has_the_server_and_a_worker(services: dict[str, Any]) -> None:
    for profile in ("cpu", "gpu"):
        mine = [service for service in services.values() if service.get("profiles") == [profile]]
        assert sorted(service["command"][0] for service in mine) == ["livekit", "serve"]
        assert all(service["build"]["args"]["REQUIREMENTS"] in ("livekit", "gpu") for service in mine)
    asks = [name for name, service in services.items() if "deploy" in service]
    assert asks == ["server-gpu", "rooms-gpu"]


@pytest.mark.component
def test_the_commands_in_the_compose_file_are_commands(services: dict[str, Any]) -> None:
    for name in ("server", "rooms", "server-gpu", "rooms-gpu"):
        words = [re.sub(r"\$\{\w+:-(.*?)\}", r"\1", word) for word in services[name]["command"]]
        given = vars(_parser().parse_args(words))
        assert given["drain_timeout_s"] == 600
        load(given["config"])


@pytest.mark.component
def test_every_mounted_file_is_there_and_every_image_has_a_version(services: dict[str, Any]) -> None:
    for service in services.values():
        for volume in service.get("volumes", []):
            assert (REPOSITORY / volume.split(":")[0]).is_file(), volume
        if "build" not in service:
            assert re.search(r":v?\d", service["image"]), service["image"]


class SipFile(Strict):
    """What is used of livekit-sip's configuration; its own reader passes over what it does not know."""

    model_config = ConfigDict(extra="forbid", strict=True)

    api_key: str
    api_secret: str
    ws_url: str
    redis: dict[str, str]
    sip_port: int
    rtp_port: str
    health_port: int
    use_external_ip: bool
    logging: dict[str, str | bool]


@pytest.mark.component
def test_all_files_have_the_same_keys(services: dict[str, Any]) -> None:
    sip = SipFile.model_validate(yaml.safe_load((DEPLOY / "sip.yaml").read_text()))
    server = yaml.safe_load((DEPLOY / "livekit.yaml").read_text())
    assert server["keys"] == {sip.api_key: sip.api_secret}
    assert sip.redis["address"] == server["redis"]["address"]
    assert sip.ws_url == f"ws://127.0.0.1:{server['port']}"
    for name in ("rooms", "rooms-gpu"):
        given = vars(_parser().parse_args(re.sub(r"\$\{\w+:-(.*?)\}", r"\1", word)
                                          for word in services[name]["command"]))
        assert (given["livekit.api_key"], given["livekit.api_secret"]) == (sip.api_key, sip.api_secret)
        assert given["livekit.url"] == sip.ws_url


def livekit_file(folder: Path, *, redis: str | None) -> tuple[Path, int]:
    """The shipped file on free ports of loopback; with ``redis`` somewhere else, or nowhere."""
    config = yaml.safe_load((DEPLOY / "livekit.yaml").read_text())
    port = config["port"] = free_port()
    config["rtc"]["udp_port"], config["rtc"]["tcp_port"] = free_udp_port(), free_port()
    config["bind_addresses"] = ["127.0.0.1"]
    if redis is None:
        del config["redis"]
    else:
        config["redis"]["address"] = redis
    file = folder / "livekit.yaml"
    file.write_text(yaml.safe_dump(config))
    return file, port


@pytest.mark.component
async def test_the_livekit_server_starts_with_its_file(tmp_path: Path) -> None:
    file, port = livekit_file(tmp_path, redis=None)
    server = LiveKitProcess(tmp_path, file, port)
    await server.start()
    await server.kill()


@pytest.mark.component
async def test_the_livekit_server_reads_the_redis_section_too(tmp_path: Path) -> None:
    file, _ = livekit_file(tmp_path, redis=f"127.0.0.1:{free_port()}")
    process = await asyncio.create_subprocess_exec(
        go_tool("livekit-server"), "--config", str(file), stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT)
    said, _ = await asyncio.wait_for(process.communicate(), 30)
    assert b"unable to connect to redis" in said, said.decode()


def test_the_trunk_and_the_dispatch_rule_are_what_the_api_takes(services: dict[str, Any]) -> None:
    trunk = ParseDict(json.loads((DEPLOY / "sip-trunk.json").read_text()), CreateSIPInboundTrunkRequest())
    assert trunk.trunk.numbers
    rule = ParseDict(json.loads((DEPLOY / "sip-dispatch-rule.json").read_text()), CreateSIPDispatchRuleRequest())
    agent, = rule.dispatch_rule.room_config.agents
    assert session_of(agent.metadata)["instructions"]
    command = services["rooms"]["command"]
    assert agent.agent_name == command[command.index("--agent-name") + 1]


def test_the_image_runs_as_nobody_in_particular_and_is_built_of_locked_requirements() -> None:
    lines = (REPOSITORY / "Dockerfile").read_text().splitlines()
    assert [line for line in lines if line.startswith("USER ")] == ["USER 10001"]
    assert lines.index("USER 10001") < next(i for i, line in enumerate(lines) if line.startswith("ENTRYPOINT"))
    assert all("slim" in line for line in lines if line.startswith("FROM "))
    for name in ("livekit", "gpu"):
        text = (REPOSITORY / "requirements" / f"{name}.txt").read_text()
        assert re.search(r"^livekit-agents==", text, re.MULTILINE)
        assert not re.search(r"://", text)
        assert bool(re.search(r"^torch==", text, re.MULTILINE)) is (name == "gpu")
