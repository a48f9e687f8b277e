"""History of each device's collectives, and the first at which the histories of two devices differ."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xbuild.checking.model.describe import fact, payload
from xbuild.checking.structure.collective_matching import same_reducer
from xbuild.core.graph import Instruction
from xbuild.properties.device_groups import group_of, groups_of, pairs_of
from xbuild.properties.effects import TRANSFERS, base_of, collective_in, communicates_itself, spelling

from ..compiler.requests import Request

if TYPE_CHECKING:
    from .grid import Grid

LONGEST = 100_000


def log() -> deque[Request]:
    """An empty log of a device's collectives, in order; in a long run the log keeps only the last requests."""
    return deque(maxlen=LONGEST)


def parting(grid: Grid, waits: Mapping[int, tuple[str, tuple[int, ...]]]) -> tuple[str, ...]:
    """The lines on where a device that waits in a collective and a missing member part; empty where none is missing."""
    for device, (_, missing) in waits.items():
        request = grid.devices[device].waiting
        asked = None if request is None else request.instruction
        if missing and asked is not None and communicates_itself(asked) and not _is_transfer(asked):
            return _parting(grid, device, missing[0])
    return ()


def _is_transfer(instruction: Instruction) -> bool:
    return instruction.opcode in TRANSFERS or instruction.opcode in TRANSFERS.values()


def _parting(grid: Grid, device: int, other: int) -> tuple[str, ...]:
    """The lines on where two devices part: the collective that each reaches after the last one that both share."""
    if max(len(grid.logs[device]), len(grid.logs[other])) == LONGEST:
        return ()
    mine, theirs = [*_with(grid, device, other)], [*_with(grid, other, device)]
    pairs = enumerate(zip(mine, theirs, strict=False))
    count = next((n for n, (a, b) in pairs if _differ(grid, device, a, other, b)), min(len(mine), len(theirs)))
    if count == len(mine) == len(theirs):
        return ()
    after = f"after {_name(mine[count - 1])} (collective {count} of both)" if count else "at their first collective"
    sides = ((device, mine), (other, theirs))
    return f"devices {device} and {other} part {after}", *(_side(d, requests, count) for d, requests in sides)


def _with(grid: Grid, device: int, other: int) -> Iterator[Request]:
    """The logged collectives of a device whose groups contain the other device."""
    for request in grid.logs[device]:
        assert request.collective is not None
        if other in group_of(request.collective, device, *grid.extent):
            yield request


def _differ(grid: Grid, device: int, a: Request, other: int, b: Request) -> bool:
    keys = (grid.rendezvous_keys.of(grid.devices[d].module, request) for d, request in ((device, a), (other, b)))
    return len({*keys}) > 1 or difference(grid, a.instruction, b.instruction) is not None


def _name(request: Request) -> str:
    return request.path[-1].instruction.name


def _side(device: int, requests: Sequence[Request], count: int) -> str:
    if count == len(requests):
        return f"  device {device}  comes to no other collective with it"
    instruction = requests[count].instruction
    source = f"   {instruction.source}" if instruction.source else ""
    return f"  device {device}  comes to {instruction.name} ({collective_text(instruction)}){source}"


def collective_text(instruction: Instruction) -> str:
    """The text of a collective: `all-reduce of add, f32[4], groups {0,1}, channel 1`."""
    collective = collective_in(instruction)
    assert collective is not None
    reducer = getattr(collective.attributes, "to_apply", None)
    by = "" if reducer is None else f" of {spelling(reducer.root.opcode)}"
    return f"{spelling(base_of(collective))}{by}, {fact(collective)}"


def difference(grid: Grid, a: Instruction, b: Instruction) -> str | None:
    """The property in which two sides of one collective differ (kinds, groups, shapes, reducers), or None."""
    if a is b:
        return None
    first, second = collective_in(a), collective_in(b)
    assert first is not None
    assert second is not None
    facts: dict[str, tuple[Any, Any]] = {
        "kinds": (base_of(first), base_of(second)),
        "groups": (_meeting(grid, first), _meeting(grid, second)),
        "shapes": ([payload(first).plain()], [payload(second).plain()]),
    }
    for what, (one, two) in facts.items():
        if one != two:
            return what
    reducers = (getattr(each.attributes, "to_apply", None) for each in (first, second))
    return None if same_reducer(*reducers) else "reducers"


def _meeting(grid: Grid, collective: Instruction) -> Any:
    if hasattr(collective.attributes, "source_target_pairs"):
        return frozenset(pairs_of(collective, *grid.extent))
    return frozenset(groups_of(collective, *grid.extent))


class Mismatch(Exception):
    """Two devices reached one collective with different kinds, groups, shapes or reducers."""

    def __init__(self, what: str, first: tuple[int, Request], second: tuple[int, Request]) -> None:
        sides = [f"{request.path[-1].instruction.name} of device {d}" for d, request in (first, second)]
        super().__init__(f"{' and '.join(sides)} meet as one collective, and their {what} differ")
        self.sides = "two sides of one collective", *(_side(d, [request], 0) for d, request in (first, second))


def compare(grid: Grid, device: int, request: Request, other: int, first: Request) -> None:
    """Raise Mismatch where two sides of a collective differ."""
    what = difference(grid, first.instruction, request.instruction)
    if what is not None:
        raise Mismatch(what, (other, first), (device, request))
