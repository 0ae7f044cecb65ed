"""The runner on stock vLLM: a session is one resumable streaming-input request of ``AsyncLLM``."""

from duologue.engine.runners.vllm.options import VllmOptions
from duologue.engine.runners.vllm.runner import EngineDied, VllmRunner

__all__ = ["EngineDied", "VllmOptions", "VllmRunner"]
