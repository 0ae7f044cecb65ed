"""The own runner: a Qwen3-shaped decoder in PyTorch, with paged KV that is really cut."""

from duologue.engine.runners.torch.runner import TorchOptions, TorchRunner

__all__ = ["TorchOptions", "TorchRunner"]
