"""Code of scans: a cumulative NumPy operation where the body is one known op, else a loop that stacks the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_inference import Shape, TupleShape
from xbuild.core.attributes import Array
from xbuild.core.graph import Computation, Instruction

from ..kernels.folds import ufunc_of
from ..rules.lines import Path, Place
from ..rules.region import Region

if TYPE_CHECKING:
    from .emit import Emitter
    from .expressions import Expr

_CUMULATIVE = {"add": "iufb", "multiply": "iufb", **dict.fromkeys(("maximum", "minimum", "and", "or", "xor"), "iub")}
"""The ops whose NumPy accumulate equals the loop, with the NumPy kinds of element type for which it does."""


def emit_scan(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    """Emit the lines of a scan."""
    a, watched = instruction.attributes, emitter.options.watched or emitter.options.strict
    opcode = None if watched or len(operands) != 2 or a.num_carries != 1 else cumulative_op(a.to_apply)
    if opcode is None:
        return _loop(emitter, instruction, operands, path)
    rule = partial(cumulative, opcode=opcode, axis=a.dimension, is_reverse=a.is_reverse)
    return emitter.evaluated(instruction.shape, f"{emitter.bind('r', rule)}({operands[0]}, {operands[1]})", path)


def cumulative_op(body: Computation) -> str | None:
    """The opcode, where the body is one op of slice and carry whose result is both the output and the next carry."""
    root = body.root
    if root.opcode != "tuple" or len(root.operands) != 2 or root.operands[0] is not root.operands[1]:
        return None
    step = root.operands[0]
    opcode = Region(Computation("step", (*body.parameters, step), step)).opcode
    kinds = _CUMULATIVE.get(opcode or "", "")
    native = all(isinstance(i.shape, Shape) and i.shape.dtype.is_native for i in (step, *body.parameters))
    return opcode if native and isinstance(step.shape, Shape) and step.shape.dtype.dtype.kind in kinds else None


def cumulative(operand: Array, init: Any, *, opcode: str, axis: int, is_reverse: bool) -> tuple[Array, Any]:
    """The running folds after each slice, and the last fold."""
    slices = np.flip(operand, axis) if is_reverse else operand
    begun = np.concatenate([np.expand_dims(np.asarray(init), axis), slices], axis)
    found = ufunc_of(opcode, operand.dtype).accumulate(begun, axis=axis, dtype=operand.dtype)
    last = np.take(found, -1, axis)
    results = found[(slice(None),) * axis + (slice(1, None),)]
    return (np.flip(results, axis) if is_reverse else results), last if last.ndim else last[()]


def _loop(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    from .expressions import spell

    a, trip, place = instruction.attributes, emitter.counter(), emitter.counter()
    first = len(operands) - a.num_carries
    state = tuple(emitter.variables(carry.shape) for carry in instruction.operands[first:])
    emitter.assign(state, tuple(operands[first:]), path)
    kept = [emitter.counter() for _ in range(len(_elements(a.to_apply.root.shape)) - a.num_carries)]
    count = _count(emitter, [spell(each) for each in operands[:first]], a, path)
    emitter.lines.add("".join(f"{name} = []; " for name in kept) + "pass", path)
    inside = (*path[:-1], Place(instruction, trip))
    emitter.lines.add(f"for {trip} in trips():", inside)
    with emitter.lines.block():
        emitter.depth += 1
        emitter.lines.add(f"if {trip} > {count}: break", inside)
        emitter.lines.add(f"{place} = {f'{count} - {trip}' if a.is_reverse else f'{trip} - 1'}", inside)
        pairs = zip(operands[:first], instruction.operands, strict=False)
        slices = [_slice(emitter, each, of, a.dimension, place, inside) for each, of in pairs]
        found = emitter.called(a.to_apply, [*slices, *state], inside)
        results = found if isinstance(a.to_apply.root.shape, TupleShape) else (found,)
        for name, each in zip(kept, results, strict=False):
            emitter.lines.add(f"{name}.append({spell(each)})", inside)
        emitter.assign(state, tuple(results[len(kept) :]), inside)
        emitter.depth -= 1
    shapes = _elements(instruction.shape)
    outputs = [_output(emitter, name, shape, a, path) for name, shape in zip(kept, shapes, strict=False)]
    return (*outputs, *state) if isinstance(instruction.shape, TupleShape) else (*outputs, *state)[0]


def _elements(shape: Any) -> tuple[Any, ...]:
    return shape.elements if isinstance(shape, TupleShape) else (shape,)


def _count(emitter: Emitter, inputs: Sequence[str], attributes: Any, path: Path) -> str:
    """A variable for the number of slices: the least extent among the inputs."""
    name = emitter.counter()
    extents = [f"{each}.shape[{attributes.dimension}]" for each in inputs] or [str(attributes.length)]
    emitter.lines.add(f"{name} = {extents[0] if len(extents) == 1 else 'min(' + ', '.join(extents) + ')'}", path)
    return name


def _slice(emitter: Emitter, operand: Expr, of: Instruction, dimension: int, place: str, path: Path) -> Expr:
    assert isinstance(of.shape, Shape)
    kept = tuple(size for dim, size in enumerate(of.shape.dims) if dim != dimension)
    return emitter.evaluated(Shape(of.shape.dtype, kept), f"{operand}[{':, ' * dimension}{place}]", path)


def _output(emitter: Emitter, rows: str, shape: Shape, attributes: Any, path: Path) -> Expr:
    rule = partial(stacked, shape=shape, axis=attributes.dimension, is_reverse=attributes.is_reverse)
    return emitter.evaluated(shape, f"{emitter.bind('r', rule)}({rows})", path)


def stacked(rows: list[Any], *, shape: Shape, axis: int, is_reverse: bool) -> Array:
    """The slices of an output stacked into one array, in reverse if the scan is in reverse."""
    if is_reverse:
        rows.reverse()
    if not rows:
        return np.empty((*shape.dims[:axis], 0, *shape.dims[axis + 1 :]), shape.dtype.dtype)
    return np.array(rows, shape.dtype.dtype) if shape.rank == 1 else np.stack(rows, axis)
