"""The analysis of replication as text: beside each value the devices that hold equal ones."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shape_inference.escaping import in_line

from ..core.graph import Instruction
from ..properties.sites import reached
from .model.program import device_ranges, devices_text

if TYPE_CHECKING:
    from .replicated_values import Replication

MOST_GROUPS = 8  # groups that are written out
Groups = tuple[tuple[int, ...], ...]


def replication_text(values: Replication) -> str:
    """A table for each computation, the entry first."""
    return "\n\n".join("\n".join(_lines(values, number)) for number in range(len(values.parts)))


def _lines(values: Replication, number: int) -> Iterator[str]:
    part = values.parts[number]
    yield f"replication of {part.module.name}, on {devices_text(part.devices)}"
    for computation in reversed(reached(part.module.entry)):
        known = [each for each in computation.instructions if each in part.found]
        if known:
            yield f"\n{'ENTRY ' * (computation is part.module.entry)}{in_line(computation.name)}"
            yield from _table(values, known)


def _table(values: Replication, known: Sequence[Instruction]) -> Iterator[str]:
    names, shapes = ([in_line(str(getattr(i, key))) for i in known] for key in ("name", "shape"))
    first, second = (min(max(map(len, column)), 40) for column in (names, shapes))
    for instruction, name, shape in zip(known, names, shapes, strict=True):
        yield f"  {name:{first}}  {shape:{second}}  {value_text(values, instruction)}"


def value_text(values: Replication, instruction: Instruction) -> str:
    """`equal on all`, or leaf by leaf where these differ."""
    leaves = [*_leaves(instruction.shape)]
    found = [groups_text(values.groups(instruction, leaf)) for leaf in leaves]
    if len({*found}) <= 1:
        return found[0] if found else "empty"
    return ", ".join(f"{{{','.join(map(str, leaf))}}} {text}" for leaf, text in zip(leaves, found, strict=True))


def _leaves(shape: object, at: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    elements = getattr(shape, "elements", None)
    if elements is None:
        yield at
    else:
        for n, each in enumerate(elements):
            yield from _leaves(each, (*at, n))


@functools.lru_cache(maxsize=256)
def groups_text(groups: Groups) -> str:
    """`equal on all`, `equal within {0,1} {2,3}`, `may differ`."""
    if len(groups) == 1:
        return "equal on all"
    several = [group for group in groups if len(group) > 1]
    if not several:
        return "may differ"
    shown = " ".join(f"{{{','.join(device_ranges(group))}}}" for group in several[:MOST_GROUPS])
    more = f" and {len(several) - MOST_GROUPS} more groups" if len(several) > MOST_GROUPS else ""
    return f"equal within {shown}{more}"
