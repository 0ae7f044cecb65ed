"""What is said when a stage's options cannot be used, and where its checkpoint comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from duologue.config import load
from duologue.engine.config import ConfigError, PipelineConfig
from duologue.engine.models.options import read_options
from duologue.engine.models.stored import SourceOptions, sourced
from duologue.engine.pipeline import load_stage

SHIPPED = Path(__file__).parents[3] / "duologue" / "stage_configs"


def pipeline(model: Path | None) -> PipelineConfig:
    return load("stage_configs/duplex-random.yaml", pipeline={"model": model}).pipeline


def test_a_stage_reads_the_checkpoint_that_is_named_for_all() -> None:
    assert sourced({}, pipeline(Path("all"))) == {"checkpoint": Path("all")}


def test_a_stages_own_checkpoint_goes_before_it() -> None:
    assert sourced({"checkpoint": "own"}, pipeline(Path("all"))) == {"checkpoint": "own"}


def test_a_checkpoint_that_no_stage_would_read_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"makes random weights .* leave out model \(all\)"):
        sourced({"load_format": "random"}, pipeline(Path("all")))


@pytest.mark.parametrize(("options", "said"), [
    ({}, "options of the talker: give a checkpoint's folder .*--model DIR"),
    ({"load_format": "random", "seed": -1}, "options of the talker: seed: Input should be greater"),
    ({"load_format": "random", "size": "huge"}, "options of the talker: size: Extra inputs are not permitted"),
])
def test_what_is_wrong_is_said_in_one_line_without_the_librarys_words(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        read_options(SourceOptions, options, "talker")
    assert "\n" not in str(caught.value)
    assert "pydantic" not in str(caught.value)


@pytest.mark.parametrize("name", sorted(file.name for file in SHIPPED.glob("*.yaml")))
def test_every_shipped_config_can_be_read_from_anywhere(name: str) -> None:
    assert load(f"stage_configs/{name}").pipeline.stages


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_a_folder_that_is_no_checkpoint_is_named(stage: int, tmp_path: Path) -> None:
    config = load("stage_configs/minicpmo45.yaml", pipeline={"model": tmp_path}).pipeline
    with pytest.raises(ConfigError, match=rf"{tmp_path}/config.json: cannot be read .* MiniCPM-o 4.5"):
        load_stage(config.stages[stage], config)
