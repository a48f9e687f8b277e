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
from ...sharding.partition import Advice, Communication, CommunicationCost, Partitioned, advise, partition
from ...sharding.propagation import Propagated, propagate
from ...sharding.propagation.propagating import StrategyName


def by_axis(found: Partitioned) -> Counter[str]:
    """The bytes that a device sends over each set of axes, which joins their names by commas."""
    sums = Counter[str]()
    for each in found.communications:
        sums[_axes(each)] += each.bytes
    return sums


def _axes(communication: Communication) -> str:
    return ",".join(dict.fromkeys(axis.name for axis in communication.axes))


def lines(found: Partitioned, machine: str) -> Iterator[str]:
    """Each communication of a partitioned program with its cost and its reason, the sums by axis, and the verdict of
    the check.
    """
    total = f"{short(sum(by_axis(found).values()), 'B')} sent by a device"
    count = len(found.communications)
    yield f"partitioned: {count} collective{'s' * (count != 1)} inserted, {total}"
    if found.communications:
        yield f"  each with the bytes that a device sends, and the time on {machine} in all runs"
        for each in found.costs(machine):
            yield from _told(each)
        sums = (f"{axes} {short(size, 'B')}" for axes, size in sorted(by_axis(found).items()))
        yield f"bytes by axis: {'; '.join(sums)}"
    yield str(xbuild.check(found.module)).splitlines()[0]


def _told(priced: CommunicationCost) -> Iterator[str]:
    """A line that names a collective, and its reason below, which is a sentence that no column holds."""
    communication = priced.communication
    where = "" if communication.source is None else f"  {in_line(str(communication.source))}"
    sent = f"{short(communication.bytes, 'B')}{_runs(priced)}  {short(priced.total_seconds * 1e6, 'us')}"
    yield f"  {in_line(communication.name)}  over {_axes(communication)}  {sent}{where}"
    yield from textwrap.wrap(in_line(communication.reason), 112, initial_indent=" " * 6, subsequent_indent=" " * 6)


def _runs(priced: CommunicationCost) -> str:
    """How often a collective runs, where that is not once."""
    times = f" x {priced.runs}" if priced.runs != 1 else ""
    return times if priced.is_known else f"{times} x ?"


def as_dict(found: Partitioned, machine: str) -> dict[str, Any]:
    """The same as plain data."""
    return {
        "machine": machine,
        "communications": [each.to_dict() for each in found.costs(machine)],
        "bytes_by_axis": dict(sorted(by_axis(found).items())),
        "verdict": xbuild.check(found.module).kind,
    }


def advice(found: Partitioned | Propagated, name: str) -> tuple[Advice, ...]:
    """Shardings that avoid a collective; nothing for a name of no collective."""
    is_collective = isinstance(found, Partitioned) and any(each.name == name for each in found.communications)
    return advise(found, name) if isinstance(found, Partitioned) and is_collective else ()


def costs(module: Module, strategy: StrategyName, machine: str) -> dict[str, Any]:
    """What a device of a partitioned program sends, holds and computes, and the time a machine is exposed to."""
    propagated = propagate(module, strategy=strategy)
    found = partition(propagated)
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
