"""The processor's mode in which denormal numbers are flushed to zero, set for the time of a run as XLA does.

Where the mode cannot be had, `flushing` does the same by array operations.
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
"""The words of a `fenv_t`, of which no platform below has more than eight."""

_WORDS = ctypes.c_uint32 * 8


@frozen
class _Layout:
    """Where the control bits stand in `fenv_t`, and which of them make zeros of denormal operands and results."""

    word: int
    bits: int


_LAYOUTS = {
    ("Linux", "x86_64"): _Layout(7, 0x8040),  # MXCSR: flush to zero, denormals are zeros
    ("Linux", "aarch64"): _Layout(0, 1 << 24),  # FPCR: FZ
    ("Darwin", "x86_64"): _Layout(1, 0x8040),
    ("Darwin", "arm64"): _Layout(2, 1 << 24),
}
"""By glibc and by macOS, as their <fenv.h> declares it."""


def _library() -> str | None:
    """What has the functions, by its name; None where it is not known."""
    if platform.system() == "Darwin":
        return "libSystem.B.dylib"
    try:
        version: str | None = os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, ValueError, OSError):
        return None
    return "libm.so.6" if (version or "").startswith("glibc") else None


def _functions() -> tuple[_Layout | None, Any, Any]:
    """The layout and both functions, which return so soon that no other thread needs to run meanwhile.

    Where there are none, `id` stands for them, which changes nothing.
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
"""Which word holds the mode."""

FLAGS = 0x3F if CONTROL else 0
"""The bits of this word that tell of exceptions, which every operation may set."""


def with_mode(own: Environment, flush: bool) -> Environment:
    """The same environment, but that denormal numbers are flushed, or kept.

    It is to be set inside a `try` whose `finally` sets the other with a bare call of `fesetenv`: between a `finally`
    and a call of C no signal comes.
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
    np.finfo(_dtype)  # NumPy measures it at the first call and keeps it; where denormal numbers are zeros it is wrong

HAS_MODE = _LAYOUT is not None and _works()
"""Whether this platform has the mode."""


def keeping(function: Callable[..., Any], *operands: Any) -> Any:
    """What the function gives where denormal numbers are kept, whatever the thread does with them otherwise."""
    own = environment()
    if _LAYOUT is None or not own[CONTROL] & _LAYOUT.bits:
        return function(*operands)
    try:
        fesetenv(with_mode(own, flush=False))
        return function(*operands)
    finally:
        fesetenv(own)


def is_flush(denormals: str) -> bool:
    """Whether they are flushed; ValueError where it is neither."""
    if denormals not in ("flush", "keep"):
        raise ValueError(f"denormals={denormals!r}: 'flush' (as XLA does) or 'keep' is wanted")
    return denormals == "flush"


of_user: ContextVar[Environment | None] = ContextVar("xbuild_environment", default=None)
"""What the run under way goes back to for code that is not its own; None where there is no run."""


@contextmanager
def as_user() -> Iterator[None]:
    """Inside, the thread computes as before the run: code of the user's has not asked for its mode."""
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
