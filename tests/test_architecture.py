"""The structure that docs/architecture.md promises."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import duologue
import duologue.engine
from duologue.agent.diagram import embed

PACKAGE = Path(duologue.__file__).parent
REPOSITORY = PACKAGE.parent


def imports(package: str) -> Iterator[tuple[Path, str]]:
    """Give every module name that files of ``package`` import, however they spell it."""
    for file in sorted((PACKAGE / package).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((file, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{file}: relative imports hide what is imported"
                yield file, node.module or ""
                yield from ((file, f"{node.module}.{alias.name}") for alias in node.names)


def test_the_engine_knows_nothing_of_the_agent() -> None:
    found = [(file, name) for file, name in imports("engine") if re.match(r"duologue\.(agent|config|cli)\b", name)]
    assert found == []


def test_the_agent_knows_only_the_engines_public_names() -> None:
    public = {"duologue.engine", *(f"duologue.engine.{name}" for name in duologue.engine.__all__)}
    found = [(file, name) for file, name in imports("agent")
             if name.startswith("duologue.engine") and name not in public]
    assert found == []


def test_the_wire_events_know_nothing_of_the_engine() -> None:
    assert [name for _, name in imports("agent/realtime") if name.startswith("duologue.engine")] == []


def test_the_plugins_are_clients() -> None:
    found = [(file, name) for file, name in imports("plugins")
             if name.startswith("duologue.") and not name.startswith("duologue.plugins")]
    assert found == []


def test_the_conversation_does_no_input_or_output() -> None:
    names = {name for file, name in imports("agent") if file.name == "conversation.py"}
    assert not names & {"asyncio", "time", "threading", "socket", "logging"}


def test_the_diagram_in_the_docs_is_made_from_the_table() -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert "stateDiagram-v2" in page
    assert embed(page) == page, "run `make docs`"


@pytest.mark.parametrize("file", ["requirements/base.txt", "requirements/dev.txt", "package-lock.json"])
def test_a_lock_holds_no_address(file: str) -> None:
    text = (REPOSITORY / file).read_text(encoding="utf-8")
    assert not re.search(r'--(extra-)?index-url|@ *https?://|"resolved": *"http', text)


def test_the_base_install_has_no_torch() -> None:
    text = (REPOSITORY / "requirements" / "base.txt").read_text(encoding="utf-8")
    assert not re.search(r"^(torch|nvidia|triton)", text, re.MULTILINE)
