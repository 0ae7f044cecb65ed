"""The threads of numpy's BLAS."""

from __future__ import annotations

import ctypes
from importlib.util import find_spec


def one_thread() -> None:
    """Let this process's numpy compute products in the thread that asks for them.

    OpenBLAS, which numpy's wheels carry, parts every product among all cores and waits for the last: where other
    work has these too, a small model's token takes many times as long. Other libraries are left as they are.
    """
    spec = find_spec("numpy._core._multiarray_umath")
    assert spec is not None
    library = ctypes.CDLL(spec.origin)
    # The wheels' build has a prefix and a suffix of its own; a distribution's has neither.
    for name in ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads64_",
                 "openblas_set_num_threads"):
        if hasattr(library, name):
            getattr(library, name)(1)
