"""The program of whatever a user has: a text, bytes, a path, or what JAX returns for a function.

`module_in` of `xbuild/core/graph.py` calls `program_in` for every function that takes a program. It imports the reader
that an object needs, and nothing for an object that is none of these.
"""

from __future__ import annotations

import os
import sys
from typing import Any

_STAGES = ("Traced", "Lowered", "Compiled", "Exported")


def program_in(thing: Any, *, is_global: bool = False, **counts: Any) -> Any:
    """The program of a text, bytes, a path (a str or os.PathLike) or an object of JAX; any other object unchanged.

    `counts` are the arguments of `parse`, for texts. Raises what `parse` and `from_jax` raise, TargetError for a path
    that names something else, and NeedsArgumentsError for a jitted function that takes arguments.
    """
    if isinstance(thing, str | bytes | bytearray):
        from ..stablehlo.reading.either import is_path, parse
    is_bytes = isinstance(thing, bytes | bytearray)
    if is_bytes or (isinstance(thing, str) and not is_path(thing)):
        if not is_bytes and not any(mark in thing for mark in "\n{"):
            return thing  # neither a program nor a path
        return parse(thing if isinstance(thing, str) else bytes(thing), **{"origins": not is_global, **counts})
    if isinstance(thing, str | os.PathLike):
        from .targets import load_file

        return load_file(os.fspath(thing), **counts)
    if is_of_jax(thing) and not counts:
        from .jax_functions import program_of_jax

        return program_of_jax(thing, is_global=is_global)
    return thing


def is_of_jax(thing: Any) -> bool:
    """Whether an object is a jitted function, or what JAX traces, lowers, compiles or exports it to."""
    if "jax" not in sys.modules:
        return False
    kind = type(thing)
    if kind.__module__.partition(".")[0] in ("jax", "jaxlib") and kind.__name__ in _STAGES:
        return True
    return callable(thing) and hasattr(thing, "lower") and hasattr(thing, "trace")
