"""The runner on stock vLLM: a session is one resumable streaming-input request of ``AsyncLLM``.

Its modules are imported one by one, since most of them import vLLM, which takes seconds.
"""
