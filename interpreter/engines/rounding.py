"""Whether two runs of one function differ only by rounding: both run again with floats of another precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import evolve, frozen

from shape_inference import XbuildError
from xbuild.core.graph import Module
from xbuild.files.arrays import leaf_values

from ..fields.draws import flat_arrays, nest_arrays, shapes_of
from ..fields.run import Subject
from ..fields.variants import with_float_type
from ..rules.limits import LimitReached
from ..runtime.report import Stopped
from ..runtime.run import execute
from .comparison import OutputComparison, is_float

Results: TypeAlias = list[Any]
"""The results of all devices."""

RATIO = 2.0**-20
"""The part of a difference in f32 that remains of it in f64, at most, if it is rounding: rounding leaves 2**-29."""


@frozen(eq=False)
class Run:
    """A program, the arguments of its devices, and its results as one nested value, joined over its devices.

    `execute` runs the program again: it takes and returns what `execute` of the interpreter does.
    """

    program: Module
    arguments: Sequence[Sequence[Any]]
    result: Any
    join: Any
    execute: Callable[..., Results] = execute

    def again(self, types: str, options: dict[str, Any]) -> Any:
        """The joined result with all floats of these types; None if there is no such program, or it does not end."""
        if any(each.opcode == "rng" for c in self.program.entry.reachable() for each in c.instructions):
            return None
        try:
            program = with_float_type(Subject(self.program), types)
            if program is None:
                return None
            rows = [[*_converted(row, self.program, program)] for row in self.arguments]
            return self.join(self.execute(program, rows, **options))
        except Stopped as error:
            error.raise_interrupt()
            return None
        except (XbuildError, LimitReached):
            return None


def _converted(row: Sequence[Any], program: Module, other: Module) -> Iterator[Any]:
    """The arguments of a device in the types of the other program."""
    for value, own, target in zip(row, program.entry.parameters, other.entry.parameters, strict=True):
        arrays = zip(flat_arrays(value, own.shape), shapes_of([target]), strict=True)
        yield nest_arrays(iter([array.astype(shape.dtype.dtype) for array, shape in arrays]), target.shape)


def excuse_rounding(
    compared: Sequence[OutputComparison], one: Run, other: Run, **options: Any
) -> list[OutputComparison]:
    """The comparison of two runs, in which outputs whose differences are rounding count as the same.

    The tolerance of a type is a part of the largest magnitude of the output; where larger numbers cancel on the way,
    rounding exceeds it. Both programs run again with all floats as f64 (with f32, if an output is f64). A difference
    that shrinks with the precision by as much as rounding does, is rounding; one that a wrong program causes stays.
    """
    shape = one.program.entry.root.shape
    suspects = {output.output for output in compared if not output.same and is_float(output.shape.dtype.dtype)}
    if not suspects or any(_is_special(output) for output in compared if not output.same):
        return list(compared)
    is_wide = any(output.shape.dtype.dtype == np.float64 for output in compared)
    types = "f32" if is_wide else "f64"
    again = [run.again(types, options) for run in (one, other)]
    if any(result is None for result in again):
        return list(compared)
    own = _gaps(one.result, other.result, shape)
    new = _gaps(again[0], again[1], shape)
    narrow, wide = (new, own) if is_wide else (own, new)
    excused = {number for number in suspects if wide[number] <= RATIO * narrow[number]}
    return [_excused(output, wide[output.output]) if output.output in excused else output for output in compared]


def _excused(output: OutputComparison, gap: float) -> OutputComparison:
    note = f"within rounding: in f64, {f'differ by at most {gap:.1g}' if gap else 'the same'}"
    return evolve(output, place=None, note=note)


def _is_special(output: OutputComparison) -> bool:
    """Whether the first difference is between a number and an infinity or a NaN."""
    return not (np.isfinite(complex(output.ours)) and np.isfinite(complex(output.theirs)))


def _gaps(left: Any, right: Any, shape: Any) -> list[float]:
    """For each output the largest distance of two elements; infinite if only one of them is a number."""
    pairs = zip(leaf_values(left, shape), leaf_values(right, shape), strict=True)
    return [_gap(np.asarray(a), np.asarray(b)) for (a, _), (b, _) in pairs]


def _gap(a: Any, b: Any) -> float:
    if not is_float(a.dtype) and a.dtype.kind != "c":
        return np.inf if np.any(a != b) else 0.0
    kind = np.complex128 if a.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        left, right = a.astype(kind), b.astype(kind)
        gap = np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, np.abs(left - right))
    return float(np.where(np.isnan(gap), np.inf, gap).max(initial=0.0))
