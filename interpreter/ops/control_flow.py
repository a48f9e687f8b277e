"""Code of control flow: a call becomes the lines of its callee, a while or scan a loop, a conditional an `if`.

A scan whose body is one known op, such as add, becomes one cumulative NumPy operation instead of a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_inference import Dims, Shape, TupleShape
from xbuild.core.attributes import Array
from xbuild.core.graph import Computation, Instruction
from xbuild.properties.effects import takes_pred

from ..compiler.counters import CountedLoop, counted_loop
from ..compiler.lines import Path, PlanPlace
from ..kernels.applying import applied
from ..kernels.folds import ufunc_of
from ..rules import compute, planned
from ..rules.region import AppliedComputation

if TYPE_CHECKING:
    from ..compiler.emit import Emitter
    from ..compiler.requests import Expr


@compute
def map(operands: Sequence[Array], *, to_apply: AppliedComputation, dimensions: Dims) -> Any:
    return applied(to_apply, [np.asarray(operand) for operand in operands])[0]


@planned
def call(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return emitter.emit_call(instruction.attributes.to_apply, operands, path)


@planned
def fusion(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return emitter.emit_call(instruction.attributes.calls, operands, path)


@planned
def while_(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    from ..compiler.requests import spell

    attributes, trip = instruction.attributes, emitter.new_counter()
    state = emitter.new_variables(instruction.shape)
    emitter.assign(state, operands[0], path)
    inside = (*path[:-1], PlanPlace(instruction, trip))
    counted = counted_loop(attributes.condition, attributes.body) if emitter.options.is_plain else None
    if counted is not None:
        return _emit_counted_loop(emitter, counted, attributes.body, state, inside, path)
    emitter.lines.add(f"for {trip} in trips():", inside)
    with emitter.lines.block():
        emitter.depth += 1
        holds = spell(emitter.emit_call(attributes.condition, [state], inside))
        emitter.lines.add(f"if not {holds}: break", inside)
        emitter.assign(state, emitter.emit_call(attributes.body, [state], inside), inside)
        emitter.depth -= 1
    return state


def _emit_counted_loop(
    emitter: Emitter, loop: CountedLoop, body: Computation, state: Expr, inside: Path, path: Path
) -> Expr:
    """Emit a loop without its condition, and without its counter if only the condition reads it."""
    trip, counter = inside[-1].trip, state[loop.counter]
    without = None if body in dict(emitter.options.orders) else loop.body
    limit = str(loop.limit) if loop.limit_element is None else f"int({state[loop.limit_element]})"
    first = emitter.new_counter()
    emitter.lines.add(f"{first} = int({counter})", path)
    emitter.lines.add(f"for {trip} in trips({limit} - {first}):", inside)
    with emitter.lines.block():
        emitter.depth += 1
        emitter.lines.add("pass", inside)
        emitter.assign(state, emitter.emit_call(without or body, [state], inside), inside)
        emitter.depth -= 1
    if without is not None:
        number = emitter.bind("k", loop.dtype.type)
        emitter.lines.add(f"{counter} = {number}(max({first}, {limit}))", path)
    return state


@planned
def conditional(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    from ..compiler.requests import spell

    branches: tuple[Computation, ...] = instruction.attributes.branch_computations
    result = emitter.new_variables(instruction.shape)
    for number, branch in enumerate(branches):
        emitter.lines.add(_branch_test(spell(operands[0]), instruction, number, len(branches)), path)
        inside = (*path[:-1], PlanPlace(instruction, branch=number))
        with emitter.lines.block():
            emitter.lines.add("pass", inside)
            emitter.assign(result, emitter.emit_call(branch, [operands[1 + number]], inside), inside)
    return result


def _branch_test(index: str, instruction: Instruction, number: int, count: int) -> str:
    """The `if` line of a branch; the last branch takes every index out of range."""
    if number == count - 1:
        return "else:" if number else "if True:"
    holds = index if takes_pred(instruction) else f"{index} == {number}"
    return f"{'el' * bool(number)}if {holds}:"


# ----------------------------------------------------------------------------
# Scans: a cumulative NumPy operation where the body is one known op, else a loop that stacks the outputs.

_CUMULATIVE = {"add": "iufb", "multiply": "iufb", **dict.fromkeys(("maximum", "minimum", "and", "or", "xor"), "iub")}
"""The ops whose NumPy accumulate equals the loop, with the NumPy kinds of element type for which it does."""


@planned
def scan(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    a, watched = instruction.attributes, emitter.options.watched or emitter.options.strict
    opcode = None if watched or len(operands) != 2 or a.num_carries != 1 else cumulative_op(a.to_apply)
    if opcode is None:
        return _emit_scan_loop(emitter, instruction, operands, path)
    rule = partial(accumulate, opcode=opcode, axis=a.dimension, is_reverse=a.is_reverse)
    return emitter.assign_result(instruction.shape, f"{emitter.bind('r', rule)}({operands[0]}, {operands[1]})", path)


def cumulative_op(body: Computation) -> str | None:
    """The opcode, if the body is one op on slice and carry whose result is both the output and the next carry."""
    root = body.root
    if root.opcode != "tuple" or len(root.operands) != 2 or root.operands[0] is not root.operands[1]:
        return None
    step = root.operands[0]
    opcode = AppliedComputation(Computation("step", (*body.parameters, step), step)).opcode
    kinds = _CUMULATIVE.get(opcode or "", "")
    native = all(isinstance(i.shape, Shape) and i.shape.dtype.is_native for i in (step, *body.parameters))
    return opcode if native and isinstance(step.shape, Shape) and step.shape.dtype.dtype.kind in kinds else None


def accumulate(operand: Array, init: Any, *, opcode: str, axis: int, is_reverse: bool) -> tuple[Array, Any]:
    """The running folds after each slice, and the last fold."""
    slices = np.flip(operand, axis) if is_reverse else operand
    with_init = np.concatenate([np.expand_dims(np.asarray(init), axis), slices], axis)
    folds = ufunc_of(opcode, operand.dtype).accumulate(with_init, axis=axis, dtype=operand.dtype)
    last = np.take(folds, -1, axis)
    outputs = folds[(slice(None),) * axis + (slice(1, None),)]
    return (np.flip(outputs, axis) if is_reverse else outputs), last if last.ndim else last[()]


def _emit_scan_loop(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    from ..compiler.requests import spell

    a, trip, place = instruction.attributes, emitter.new_counter(), emitter.new_counter()
    first = len(operands) - a.num_carries
    state = tuple(emitter.new_variables(carry.shape) for carry in instruction.operands[first:])
    emitter.assign(state, tuple(operands[first:]), path)
    rows = [emitter.new_counter() for _ in range(len(_elements(a.to_apply.root.shape)) - a.num_carries)]
    count = _emit_slice_count(emitter, [spell(operand) for operand in operands[:first]], a, path)
    emitter.lines.add("".join(f"{name} = []; " for name in rows) + "pass", path)
    inside = (*path[:-1], PlanPlace(instruction, trip))
    emitter.lines.add(f"for {trip} in trips():", inside)
    with emitter.lines.block():
        emitter.depth += 1
        emitter.lines.add(f"if {trip} > {count}: break", inside)
        emitter.lines.add(f"{place} = {f'{count} - {trip}' if a.is_reverse else f'{trip} - 1'}", inside)
        pairs = zip(operands[:first], instruction.operands, strict=False)
        slices = [_emit_slice(emitter, expr, operand, a.dimension, place, inside) for expr, operand in pairs]
        result = emitter.emit_call(a.to_apply, [*slices, *state], inside)
        results = result if isinstance(a.to_apply.root.shape, TupleShape) else (result,)
        for name, output in zip(rows, results, strict=False):
            emitter.lines.add(f"{name}.append({spell(output)})", inside)
        emitter.assign(state, tuple(results[len(rows) :]), inside)
        emitter.depth -= 1
    shapes = _elements(instruction.shape)
    outputs = [_emit_output(emitter, name, shape, a, path) for name, shape in zip(rows, shapes, strict=False)]
    return (*outputs, *state) if isinstance(instruction.shape, TupleShape) else (*outputs, *state)[0]


def _elements(shape: Any) -> tuple[Any, ...]:
    return shape.elements if isinstance(shape, TupleShape) else (shape,)


def _emit_slice_count(emitter: Emitter, inputs: Sequence[str], attributes: Any, path: Path) -> str:
    """A variable for the number of slices: the smallest extent among the inputs."""
    name = emitter.new_counter()
    extents = [f"{text}.shape[{attributes.dimension}]" for text in inputs] or [str(attributes.length)]
    emitter.lines.add(f"{name} = {extents[0] if len(extents) == 1 else 'min(' + ', '.join(extents) + ')'}", path)
    return name


def _emit_slice(emitter: Emitter, expr: Expr, operand: Instruction, dimension: int, place: str, path: Path) -> Expr:
    assert isinstance(operand.shape, Shape)
    dims = tuple(size for dim, size in enumerate(operand.shape.dims) if dim != dimension)
    return emitter.assign_result(Shape(operand.shape.dtype, dims), f"{expr}[{':, ' * dimension}{place}]", path)


def _emit_output(emitter: Emitter, rows: str, shape: Shape, attributes: Any, path: Path) -> Expr:
    rule = partial(stack_rows, shape=shape, axis=attributes.dimension, is_reverse=attributes.is_reverse)
    return emitter.assign_result(shape, f"{emitter.bind('r', rule)}({rows})", path)


def stack_rows(rows: list[Any], *, shape: Shape, axis: int, is_reverse: bool) -> Array:
    """The slices of an output stacked into one array, in reverse if the scan is in reverse."""
    if is_reverse:
        rows.reverse()
    if not rows:
        return np.empty((*shape.dims[:axis], 0, *shape.dims[axis + 1 :]), shape.dtype.dtype)
    return np.array(rows, shape.dtype.dtype) if shape.rank == 1 else np.stack(rows, axis)
