"""The processor mode that flushes denormal numbers to zero, which a run sets as XLA does.

On platforms without the mode, `kernels.flushing` flushes by array operations.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias

import numpy as np
from attrs import frozen

Denormals: TypeAlias = Literal["flush", "keep"]

Environment: TypeAlias = Any
"""The words of a `fenv_t`, at most eight on the platforms below."""

_WORDS = ctypes.c_uint32 * 8


@frozen
class _Layout:
    """The word of `fenv_t` that has the control bits, and the bits that flush denormal operands and results to zero."""

    word: int
    bits: int


_LAYOUTS = {
    ("Linux", "x86_64"): _Layout(7, 0x8040),  # MXCSR: flush to zero, denormals are zeros
    ("Linux", "aarch64"): _Layout(0, 1 << 24),  # FPCR: FZ
    ("Darwin", "x86_64"): _Layout(1, 0x8040),
    ("Darwin", "arm64"): _Layout(2, 1 << 24),
}
"""The layouts of glibc and macOS, as declared in their <fenv.h>."""


def _library() -> str | None:
    """The name of the library with `fegetenv` and `fesetenv`; None if the library is not known."""
    if platform.system() == "Darwin":
        return "libSystem.B.dylib"
    try:
        version: str | None = os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, ValueError, OSError):
        return None
    return "libm.so.6" if (version or "").startswith("glibc") else None


def _functions() -> tuple[_Layout | None, Any, Any]:
    """The layout, `fegetenv` and `fesetenv`; calls hold the GIL, since the functions return at once.

    On other platforms `id` replaces both functions, and calls have no effect.
    """
    layout, name = _LAYOUTS.get((platform.system(), platform.machine())), _library()
    try:
        library = ctypes.PyDLL(name) if layout and name else None
        return (None, id, id) if library is None else (layout, library.fegetenv, library.fesetenv)
    except (OSError, AttributeError):
        return None, id, id


_LAYOUT, fegetenv, fesetenv = _functions()


def environment() -> Environment:
    """The floating-point environment of this thread, for `fesetenv`."""
    found = _WORDS()
    fegetenv(found)
    return found


CONTROL = 0 if _LAYOUT is None else _LAYOUT.word
"""The index of the word that holds the mode."""

FLAGS = 0x3F if CONTROL else 0
"""The exception flags in the control word, which every operation may set."""


def with_mode(own: Environment, flush: bool) -> Environment:
    """The environment `own` with denormal numbers flushed or kept.

    Set the result inside a `try` whose `finally` restores `own` by a bare call of `fesetenv`: between a `finally`
    and a call of a C function no signal handler runs.
    """
    wanted = _WORDS.from_buffer_copy(own)
    if _LAYOUT is not None:
        wanted[CONTROL] = own[CONTROL] | _LAYOUT.bits if flush else own[CONTROL] & ~_LAYOUT.bits
    return wanted


def _works() -> bool:
    """Whether NumPy's arithmetic on this thread follows the mode."""
    least = np.array([1], np.uint32).view(np.float32)
    own = environment()
    try:
        fesetenv(with_mode(own, flush=True))
        return not (least * np.float32(2**23)).view(np.uint32).any()
    finally:
        fesetenv(own)


for _dtype in (np.float16, np.float32, np.float64):
    np.finfo(_dtype)  # NumPy caches finfo at the first call; in flush mode the cached values would be wrong

HAS_MODE = _LAYOUT is not None and _works()
"""Whether this platform has the processor mode."""


def keeping(function: Callable[..., Any], *operands: Any) -> Any:
    """The function's result with denormal numbers kept, whatever the mode of the thread."""
    own = environment()
    if _LAYOUT is None or not own[CONTROL] & _LAYOUT.bits:
        return function(*operands)
    try:
        fesetenv(with_mode(own, flush=False))
        return function(*operands)
    finally:
        fesetenv(own)


def is_flush(denormals: str) -> bool:
    """Whether the option `denormals` is "flush"; ValueError if it is neither "flush" nor "keep"."""
    if denormals not in ("flush", "keep"):
        raise ValueError(f"expected denormals='flush' (as XLA does) or 'keep', got {denormals!r}")
    return denormals == "flush"


of_user: ContextVar[Environment | None] = ContextVar("xbuild_environment", default=None)
"""The environment that a run restores while the user's code runs; None if no run is in progress."""


@contextmanager
def as_user() -> Iterator[None]:
    """Restore the thread's environment from before the run inside the block, for the user's code."""
    own = of_user.get()
    if own is None:
        yield
        return
    of_run = environment()
    try:
        fesetenv(own)
        yield
    finally:
        fesetenv(of_run)
