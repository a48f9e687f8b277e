"""The options of derivatives and their argnums, refused where they are of a wrong type or name nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from numbers import Integral
from typing import Any

from shape_inference import refuse

from ...core.graph import Computation
from ..context import reached

_RECOMPUTED = ("while", "scan", "call", "conditional", "fusion", "map")


def check_options(options: Mapping[str, Any]) -> None:
    """Raises invalid_attribute for a checkpoint or a max_trips that is none."""
    checkpoint, trips = options.get("checkpoint", False), options.get("max_trips")
    if isinstance(checkpoint, str):
        refuse("invalid_attribute", f"checkpoint={checkpoint!r} is one name", f"checkpoint=[{checkpoint!r}]")
    if not hasattr(checkpoint, "__contains__") and not isinstance(checkpoint, bool):
        refuse("invalid_attribute", f"checkpoint={checkpoint!r}: True, False or names of loops and calls are wanted")
    if trips is not None and (not isinstance(trips, int) or isinstance(trips, bool) or trips < 0):
        refuse("invalid_attribute", f"max_trips={trips!r}: a number of trips is wanted, 0 or more")


def check_names(options: Mapping[str, Any], entries: Iterable[Computation]) -> None:
    """Raises invalid_attribute where checkpoint names no loop, call or conditional of the programs."""
    names = options.get("checkpoint", False)
    if isinstance(names, bool) or not isinstance(names, Collection):
        return
    known = [i.name for each in reached(entries) for i in each.instructions if i.opcode in _RECOMPUTED]
    for name in names:
        if name not in known:
            there_are = f"there are {', '.join(known)}" if known else "there is none"
            refuse(
                "invalid_attribute", f"checkpoint names {name!r}, which is no loop, call or conditional; {there_are}"
            )


def check_argnums(argnums: Any) -> None:
    """Raises invalid_attribute where argnums is no number and no sequence of numbers."""
    numbers = argnums if isinstance(argnums, Iterable) and not isinstance(argnums, str) else [argnums]
    kind = Integral if numbers is argnums else int
    if not all(isinstance(each, kind) and not isinstance(each, bool) for each in numbers):
        refuse("invalid_attribute", f"argnums={argnums!r}: the number of a parameter is wanted, or several in a tuple")
