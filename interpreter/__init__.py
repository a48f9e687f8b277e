"""The interpreter: runs a program on all its devices, each a coroutine over plans of generated Python.

`trace` is imported at its first use, since a run that keeps no trace needs none of it.
"""

from typing import TYPE_CHECKING, Any

from . import ops as ops
from .compiler.plan import plan_source as plan_source
from .kernels.values import ArgumentError as ArgumentError
from .rules.limits import Limits as Limits
from .runtime.observers import Recorder as Recorder
from .runtime.report import Report as Report
from .runtime.report import Stopped as Stopped
from .runtime.run import Refused as Refused
from .runtime.run import choice_of as _choice_of
from .runtime.run import evaluate as evaluate
from .runtime.run import execute as execute
from .strict import Finding as Finding
from .strict import StrictFailure as StrictFailure
from .strict import StrictReport as StrictReport

if TYPE_CHECKING:
    from .tracing import trace as trace


@_choice_of.supply
def _choose(program: Any, engine: str) -> Any:
    """The choice of the engine `auto`, which is imported at its first use."""
    from .auto import choice_of

    return _choice_of.supply(choice_of)(program, engine)


__distribution__ = "xbuild-hlo"  # tells this package from another project's of the same name


def __getattr__(name: str) -> Any:
    """`trace`, imported now and kept."""
    if name != "trace":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .tracing import trace

    globals()["trace"] = trace
    return trace
