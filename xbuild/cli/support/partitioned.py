"""What partitioning a program inserts, and what several shardings of one program cost, as lines and as plain data."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import xbuild
from shape_inference.escaping import in_line

from ...core.graph import Module
from ...costs.table import columns, short
from ...sharding.partition import Communication, Partitioned, partition
from ...sharding.propagation import propagate
from ...sharding.propagation.propagating import StrategyName


def by_axis(found: Partitioned) -> Counter[str]:
    """The bytes that a device sends over each set of axes, which joins their names by commas."""
    sums = Counter[str]()
    for each in found.communications:
        sums[_axes(each)] += each.bytes
    return sums


def _axes(communication: Communication) -> str:
    return ",".join(dict.fromkeys(axis.name for axis in communication.axes))


def lines(found: Partitioned) -> Iterator[str]:
    """Each communication of a partitioned program with its reason, the sums by axis, and the verdict of the check."""
    total = f"{short(sum(by_axis(found).values()), 'B')} sent by a device"
    count = len(found.communications)
    yield f"partitioned: {count} collective{'s' * (count != 1)} inserted, {total}"
    if found.communications:
        for each in found.communications:
            yield from _told(each)
        sums = (f"{axes} {short(size, 'B')}" for axes, size in sorted(by_axis(found).items()))
        yield f"bytes by axis: {'; '.join(sums)}"
    yield str(xbuild.check(found.module)).splitlines()[0]


def _told(communication: Communication) -> Iterator[str]:
    """A line that names a collective, and its reason below, which is a sentence that no column holds."""
    where = "" if communication.source is None else f"  {in_line(str(communication.source))}"
    yield f"  {in_line(communication.name)}  over {_axes(communication)}  {short(communication.bytes, 'B')}{where}"
    yield from textwrap.wrap(in_line(communication.reason), 112, initial_indent=" " * 6, subsequent_indent=" " * 6)


def as_dict(found: Partitioned) -> dict[str, Any]:
    """The same as plain data."""
    return {
        "communications": [each.to_dict() for each in found.communications],
        "bytes_by_axis": dict(sorted(by_axis(found).items())),
        "verdict": xbuild.check(found.module).kind,
    }


def costs(module: Module, strategy: StrategyName, machine: str) -> dict[str, Any]:
    """What a device of a partitioned program sends, holds and computes, and the time a machine is exposed to."""
    propagated = propagate(module, strategy=strategy)
    found = partition(propagated.module, propagate=False, mesh=propagated.mesh)
    laid = xbuild.timeline(found.module, machine, mesh=found.mesh)
    return {
        "mesh": dict(found.mesh.sizes),
        "collectives": len(found.communications),
        "bytes_by_axis": dict(sorted(by_axis(found).items())),
        "exposed_seconds": laid.exposed,
        "peak_memory": laid.cost.peak_memory,
        "flops": laid.cost.flops,
        "verdict": xbuild.check(found.module).kind,
    }


def table(names: Sequence[str], rows: Sequence[dict[str, Any]], machine: str) -> Iterator[str]:
    """A column for each sharding, a line for each cost."""
    axes = sorted({each for row in rows for each in row["bytes_by_axis"]})
    yield from columns(("of a device", *names), [
        ("mesh", *(" x ".join(f"{axis}={size}" for axis, size in row["mesh"].items()) for row in rows)),
        ("collectives", *(str(row["collectives"]) for row in rows)),
        *((f"bytes over {each}", *(short(row["bytes_by_axis"].get(each, 0), "B") for row in rows)) for each in axes),
        (f"exposed on {machine}", *(short(row["exposed_seconds"] * 1e6, "us") for row in rows)),
        ("peak memory", *(short(row["peak_memory"], "B") for row in rows)),
        ("FLOPs", *(short(row["flops"]) for row in rows)),
        ("check", *(row["verdict"] for row in rows)),
    ])  # fmt: skip
