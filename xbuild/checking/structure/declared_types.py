"""Types on a mesh that a program states of its values, and that do not follow from how these are computed."""

from __future__ import annotations

from collections.abc import Iterator

from shape_inference import XbuildError

from ...properties.sites import Site
from ...variance.verifying import Breach, breaches
from ..model.describe import finding
from ..model.program import Class, Program
from ..model.verdict import Finding


def declared_types(program: Program) -> list[Finding]:
    """A finding for each stated type that need not hold; nothing of programs that state no mesh."""
    return [fault for each in program.classes for fault in _of(each)]


def _of(each: Class) -> Iterator[Finding]:
    try:
        found = breaches(each.module)
    except XbuildError as error:
        yield Finding("variance_broken", error.message, devices=each.devices)
        return
    for breach in found:
        yield _finding(each, breach)


def _finding(each: Class, breach: Breach) -> Finding:
    return finding(
        "variance_broken",
        str(breach),
        (each.devices, Site((), breach.instruction)),
        cause_text="a type that states one value along an axis is a promise, by which collectives are left out",
        repair_text="xb.shard_map writes types that hold; xb.mesh.psum and its like make one value of several",
    )
