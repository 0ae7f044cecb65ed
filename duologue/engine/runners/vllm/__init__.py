"""The runner on stock vLLM: a session is one resumable streaming-input request of ``AsyncLLM``."""
