"""Two programs run in floating point on the same numbers, as a witness that they differ by more than rounding."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve, frozen

from shape_inference import Shape, XbuildError
from xbuild.core.graph import Instruction, Module, ModuleGroup
from xbuild.properties.sites import reached
from xbuild.text.reading.reader import parse_hlo

from ..runtime.report import Stopped
from ..runtime.run import execute, modules_of
from . import draws

if TYPE_CHECKING:
    from .comparison import Comparison
    from .run import Subject


NEAR = {True: 1e-7, False: 1e-3}
"""The distance of results from which on programs differ, whatever the rounding: with all floats as f64, or as they are.
"""


OVERFLOWS = 0.5
"""The distance, in the types of the programs, that no rounding makes."""


@frozen
class Witness:
    """The largest distance between results, as a part of the size of the result; None where a run stops."""

    distance: float | None
    is_wide: bool = False

    @property
    def differs(self) -> bool:
        """Whether the results are apart by more than rounding."""
        return self.distance is not None and self.distance >= NEAR[self.is_wide]

    def __str__(self) -> str:
        if self.distance is None:
            return "could not be compared"
        told = f"apart by {self.distance:.1e} of their size" if self.differs else f"agree to {self.distance:.1e}"
        return told + " in f64" * self.is_wide


def apart(comparison: Comparison) -> Witness:
    """How far the results of both programs are apart, with all floats as f64 where they can be computed so."""
    wide = _wide(comparison.one), _wide(comparison.other)
    if None not in wide:
        found = _apart(comparison, wide, _WIDE)
        if found is not None:
            return Witness(found, is_wide=True)
    return apart_as_they_are(comparison)


def apart_as_they_are(comparison: Comparison) -> Witness:
    """How far the results of both programs are apart in their own types."""
    return Witness(_apart(comparison, (comparison.one.program, comparison.other.program), [draws.number] * 3))


def _apart(comparison: Comparison, programs: Any, tries: Sequence[Any]) -> float | None:
    try:
        with np.errstate(all="ignore"):
            return max(_distance(comparison, programs, number, draw) for number, draw in enumerate(tries))
    except (XbuildError, Stopped):
        return None


def _scaled(scale: float, shape: Shape, random: np.random.Generator) -> Any:
    """Random numbers of a size."""
    found = draws.number(shape, random)
    return found if shape.dtype.kind not in ("float", "complex") else (found * scale).astype(found.dtype)


def _positive(shape: Shape, random: np.random.Generator) -> Any:
    """Random numbers, and where matrices are square positive definite ones."""
    found = _scaled(0.25, shape, random)
    if shape.dtype.kind != "float" or shape.rank < 2 or shape.dims[-1] != shape.dims[-2]:
        return found
    wide = found.astype(np.float64)
    return (wide @ np.swapaxes(wide, -1, -2) + np.eye(shape.dims[-1])).astype(found.dtype)


_WIDE = (draws.number, partial(_scaled, 3.0), _positive)
"""What runs in f64 are given: numbers of about 1, larger ones, and matrices that have a Cholesky factor."""


_NARROW = re.compile(r"\b(bf16|f16|f32|c64|f8\w+|f4\w+)(?=\[)")
_LAPACK = re.compile(r"(?<=lapack_)[sc](?=\w+_ffi)")


def _wide(subject: Subject) -> Module | None:
    """The program with all floats as f64; None where it then is none, or where bits of floats are looked at."""
    program = subject.program
    if isinstance(program, ModuleGroup) or any(each.opcode in _OF_BITS for each in _instructions(program)):
        return None
    text = _NARROW.sub(lambda match: "c128" if match[1] == "c64" else "f64", program.to_hlo())
    try:
        found = parse_hlo(_LAPACK.sub(lambda match: {"s": "d", "c": "z"}[match[0]], text))
    except XbuildError:
        return None
    return evolve(found, num_replicas=program.num_replicas, num_partitions=program.num_partitions)


_OF_BITS = frozenset({"bitcast_convert", "reduce_precision", "stochastic_convert"})


def _instructions(module: Module) -> Iterator[Instruction]:
    return (instruction for each in reached(module.entry) for instruction in each.instructions)


def _distance(comparison: Comparison, programs: Any, number: int, draw: Any) -> float:
    arrays, cut = comparison.inputs(number, draw, exact=True)
    left = _results(programs[0], arrays, comparison)
    right = _results(programs[1], cut, comparison)
    found = 0.0
    for output in range(len(right[0])):
        expected, given = comparison.pair(output, left, right, exact=True)
        found = max(found, *(_of_size(a, b) for a, b in zip(expected, given, strict=True)))
    return found


def _results(program: Module | ModuleGroup, rows: Any, comparison: Comparison) -> list[list[Any]]:
    inputs, modules = [], modules_of(program)
    for module, row in zip(modules, rows, strict=True):
        left = [_of_type(*each) for each in zip(row, draws.shapes_of(module.entry.parameters), strict=True)]
        inputs.append([draws.nested(left, parameter.shape) for parameter in module.entry.parameters])
    found = execute(program, inputs, limits=comparison.limits)
    return [draws.flat(value, m.entry.root.shape) for value, m in zip(found, modules, strict=True)]


def _of_type(array: Any, shape: Shape) -> Any:
    return np.asarray(array).astype(shape.dtype.dtype)


def _of_size(expected: Any, given: Any) -> float:
    """The distance of two arrays by the size of the larger numbers; 1 where one has a NaN that the other has not."""
    if expected.dtype.kind in "biu" and expected.dtype.isbuiltin == 1:
        return float(np.any(expected != given))
    a, b = (each.astype(np.complex128 if each.dtype.kind == "c" else np.float64) for each in (expected, given))
    if not a.size:
        return 0.0
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not np.array_equal(np.isfinite(a) | same, np.isfinite(b) | same) or np.any(~same & ~np.isfinite(a)):
        return 1.0
    size = max(float(np.abs(a[np.isfinite(a)]).max(initial=0.0)), 1e-30)
    return float(np.abs(np.where(same, 0, a - b)).max(initial=0.0)) / size
