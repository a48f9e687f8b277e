"""BLAS's threads, which do not follow the denormal mode of the thread that asks for a matrix product."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable

_FORMS = ("scipy_openblas_get_{}64_", "scipy_openblas_get_{}", "openblas_get_{}64_", "openblas_get_{}")
"""How builds of OpenBLAS spell the names of their functions."""

_OWN_THREADS = (0, 1)
"""The answers of `openblas_get_parallel` of builds that compute alone, or with threads of their own. In builds with
OpenMP the number of threads is what OpenMP says at the next product."""


def _counter() -> Callable[[], int] | None:
    """The function of NumPy's OpenBLAS that counts threads; None for another BLAS, whose threads are not counted.

    The functions are found through the module of NumPy that is linked with them, and hold the GIL.
    """
    try:
        library = ctypes.PyDLL(str(importlib.import_module("numpy._core._multiarray_umath").__file__))
    except (ImportError, OSError, AttributeError):
        return None
    for form in _FORMS:
        threads, kind = (getattr(library, form.format(what), None) for what in ("num_threads", "parallel"))
        if threads is not None and kind is not None:
            return threads if kind() in _OWN_THREADS else None
    return None


_COUNT = _counter()


def is_single_threaded() -> bool:
    """Whether BLAS computes in the calling thread alone; False where that is not known."""
    return _COUNT is not None and _COUNT() == 1
