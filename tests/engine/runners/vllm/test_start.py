"""What vLLM is started with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from vllm.platforms import current_platform

from duologue.engine.runners.vllm import start
from duologue.engine.runners.vllm.options import VllmOptions
from tests.engine.runners.torch_reference import small, tiny_weights


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is set in it is taken back."""
    for name in ("VLLM_USE_V2_MODEL_RUNNER", "VLLM_RPC_BASE_PATH", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "")


@pytest.mark.parametrize(("on_cpu", "devices"), [(False, [1]), (True, None)])
def test_a_stage_is_on_the_gpu_its_options_name(on_cpu: bool, devices: list[int] | None, tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current_platform, "is_cpu", lambda: on_cpu)
    made = start.engine_args(small()[0], tiny_weights, VllmOptions(device=1, gpu_memory_utilization=0.4),
                             str(tmp_path))
    assert made.device_ids == devices
    assert made.gpu_memory_utilization == 0.4


@pytest.mark.parametrize(("kind", "architecture"), [("qwen3", "DuologueQwen3ForCausalLM"),
                                                    ("llama", "DuologueLlamaForCausalLM")])
def test_vllm_reads_a_config_of_our_making_and_runs_no_code_of_a_checkpoint(kind: str, architecture: str,
                                                                            tmp_path: Path) -> None:
    config, _ = small(model_type=kind, rope_theta=1e4)
    made = start.engine_args(config, tiny_weights, VllmOptions(), str(tmp_path))
    written = json.loads((tmp_path / "config.json").read_text())
    assert written["architectures"] == [architecture]
    assert written["rope_parameters"]["rope_theta"] == 1e4
    assert made.model == str(tmp_path)
    assert made.trust_remote_code is False
