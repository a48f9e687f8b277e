"""Tracebacks of errors that xbuild raises: they end at the user's line, unless whole ones are asked for."""

from __future__ import annotations

import os
import sys
from types import TracebackType

from shape_inference.escaping import Harmless

from ..core import diagnostics

_INTERPRETER = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "interpreter", "")
_next_hook = sys.excepthook


def full_tracebacks(full: bool = True) -> None:
    """Choose whether tracebacks of refusals show the frames inside xbuild; otherwise they end at the user's line.

    The environment variable XBUILD_FULL_TRACEBACKS=1 has the same effect. The choice affects what Python prints for an
    error that ends a program, and what IPython and pytest show (they hide frames with `__tracebackhide__`).

    >>> import xbuild as xb
    >>> xb.full_tracebacks()
    >>> xb.full_tracebacks(False)

    Source: JAX, jax_traceback_filtering.
    """
    diagnostics.tracebacks.full = full


def trimmed(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames inside xbuild; unchanged where no frame would be left."""
    kept = []
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not diagnostics.is_ours(file) and not file.startswith(_INTERPRETER):
            kept.append(traceback)
        traceback = traceback.tb_next
    found: TracebackType | None = None
    for each in reversed(kept):
        found = TracebackType(found, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return found


def _hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if isinstance(error, Harmless) and not diagnostics.tracebacks.full:
        traceback = trimmed(traceback) or traceback
        error.__traceback__ = traceback
    _next_hook(kind, error, traceback)


def install() -> None:
    """Trim what Python prints of a refusal that nothing catches; what another hook does comes after."""
    global _next_hook
    if sys.excepthook is not _hook:
        _next_hook, sys.excepthook = sys.excepthook, _hook
