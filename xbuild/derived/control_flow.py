"""Convenience forms of call, while, conditional, map, scan and fusion: operands may be Python tuples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from shape_inference import Shape, refuse
from shape_inference.dims import array

from .. import ops
from ..core.builder import Builder, Value
from ..core.diagnostics import describe
from ..core.graph import Computation
from .support import (
    as_list,
    as_values,
    builder_among,
    counted_all,
    dressed,
    dtype_of,
    normalize_dimensions,
    pack_operands,
    rank_of,
    shape_of,
)

__all__ = ["call", "conditional", "fusion", "map", "scan", "while_"]

Function: TypeAlias = Computation | Callable[..., Any]


@dressed
def call(operands: Any, to_apply: Function, *, builder: Builder | None = None, name: str | None = None) -> Value:
    """Apply `to_apply` to the operands (one, a list, or none with `builder=`) and return the result.

    If `to_apply` is a Computation, numbers take the type of their parameter.
    Raises: arity_mismatch or signature_mismatch.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    >>> xb.call((x, x), xb.add).shape
    f32[2]

    Source: Operation Semantics, Call.
    """
    values = as_list(operands)
    wanted = to_apply.program_shape.parameters if isinstance(to_apply, Computation) else ()
    types = [shape.dtype if isinstance(shape, Shape) else None for shape in wanted[: len(values)]]
    types += [None] * (len(values) - len(types))
    return ops.call(as_values(values, types, builder), to_apply=to_apply, builder=builder, name=name)


@dressed
def while_(
    init: Any, condition: Function, body: Function, *, builder: Builder | None = None, name: str | None = None
) -> Value:
    """Apply `body` to the state while condition(state) is true.

    The arguments are in HLO's order; XlaBuilder's While takes init last. `init` may be a tuple or list of values,
    numbers (of their own type: s32, f32 or NumPy's) and tuples; the tuple or list becomes one tuple value. The
    functions get the state as one value, which can be unpacked: `i, total = state`. They may return a tuple.
    Raises: arity_mismatch or signature_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[()])
    ... def doubled_thrice(x):
    ...     return xb.while_((0, x), lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2.0))[1]
    >>> xb.evaluate(doubled_thrice, 5.0)
    np.float32(40.0)

    Source: Operation Semantics, While.
    """
    if callable(init) and not isinstance(init, Value):
        refuse(
            "invalid_attribute",
            f"expected the initial state as the first argument, before condition and body, got {describe(init)}",
            "xb.while_(init, condition, body)",
        )
    return ops.while_(pack_operands(init, builder), condition=condition, body=body, name=name)


def _is_function(given: Any) -> bool:
    return isinstance(given, Computation) or (callable(given) and not isinstance(given, Value))


@dressed
def conditional(
    branch_index: Value,
    *arguments: Any,
    branch_operands: Sequence[Any] | None = None,
    branch_computations: Sequence[Function] | None = None,
    name: str | None = None,
) -> Value:
    """Run one branch on its own operand and return the result. The call has two forms.

    The first form is conditional(branch_index, branch_operands, branch_computations). An s32[] selects a branch by
    number (the last one if out of range). A pred[] selects the first branch if it is true. XlaBuilder's form is
    conditional(pred, true_operand, true_computation, false_operand, false_computation). An operand may be a tuple or
    list, which becomes one tuple value.
    Raises: non_scalar, element_type_unsupported, arity_mismatch or signature_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.pred[()], xb.f32[()])
    ... def magnitude(positive, x):
    ...     return xb.conditional(positive, x, lambda x: x, x, lambda x: -x)
    >>> xb.evaluate(magnitude, False, -3.0)
    np.float32(3.0)

    Source: Operation Semantics, Conditional; xla_builder.h, Conditional.
    """
    if arguments and any(_is_function(each) for each in as_list(arguments[0])):
        is_switch = isinstance(arguments[0], list | tuple)
        refuse(
            "invalid_attribute",
            "expected each operand before its function, got the arguments in the order that "
            f"jax.lax.{'switch' if is_switch else 'cond'} uses; each branch has its own operand",
            "xb.conditional(index, [x, x], [f, g])" if is_switch else "xb.conditional(pred, x, on_true, x, on_false)",
            "to pass several operands to a branch, pass the tuple (x, y), which its function takes as one parameter",
        )
    if len(arguments) == 4:
        branch_operands, branch_computations = arguments[::2], arguments[1::2]
    elif len(arguments) + (branch_operands is not None) + (branch_computations is not None) == 2:
        given = iter(arguments)
        branch_operands = next(given) if branch_operands is None else branch_operands
        branch_computations = next(given) if branch_computations is None else branch_computations
    else:
        refuse(
            "arity_mismatch",
            "expected 3 arguments (branch_index, branch_operands, branch_computations) or 5 arguments (pred, "
            f"true_operand, true_computation, false_operand, false_computation), got {1 + len(arguments)}",
        )
    given_operands, branches = as_list(branch_operands), as_list(branch_computations)
    if len(given_operands) != len(branches):
        refuse(
            "arity_mismatch",
            f"expected one operand for each branch, got {len(given_operands)} branch_operands and {len(branches)} "
            "branch_computations",
            "an operand may be a tuple, as in [(a, b), (c,)] for two branches",
        )
    builder = builder_among((branch_index, *given_operands))
    operands = tuple(pack_operands(each, builder) for each in given_operands)
    return ops.conditional(branch_index, operands, branch_computations=tuple(branches), name=name)


@dressed
def map(
    operands: Any, to_apply: Function, dimensions: Sequence[int] | None = None, *, name: str | None = None
) -> Value:
    """Apply a scalar computation to the elements of all operands (one, or a list) at each position.

    Raises: the same errors as xb.ops.map.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[3])
    ... def halves(x):
    ...     return xb.map(x, lambda e: e * 0.5)
    >>> xb.evaluate(halves, [1.0, 2.0, 3.0])
    array([0.5, 1. , 1.5], dtype=float32)

    Source: Operation Semantics, Map.
    """
    values = tuple(as_list(operands))
    if values and dimensions is None:
        dimensions = range(array("operand", shape_of(values[0])).rank)
    dims = () if dimensions is None else counted_all(dimensions, rank_of(values))
    return ops.map(values, to_apply=to_apply, dimensions=dims, name=name)


@dressed
def fusion(
    operands: Any,
    calls: Function,
    kind: Literal["kLoop", "kInput", "kOutput", "kCustom"] = "kLoop",
    *,
    output_to_operand_aliasing: Sequence[tuple[Sequence[int], int, Sequence[int]]] = (),
    builder: Builder | None = None,
    name: str | None = None,
) -> Value:
    """Apply `calls` to the operands (one, or a list), like `call`, and mark the call as one kernel.

    Raises: the same errors as xb.ops.fusion.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    >>> xb.fusion((x, x), xb.add).shape
    f32[2]

    Source: HloOpcode, fusion.
    """
    aliases: Any = output_to_operand_aliasing
    return ops.fusion(
        tuple(as_list(operands)),
        kind=kind,
        calls=calls,
        output_to_operand_aliasing=aliases,
        builder=builder,
        name=name,
    )


@dressed
def scan(
    inputs: Any,
    init_values: Any,
    to_apply: Function,
    dimension: int = 0,
    *,
    is_reverse: bool = False,
    is_associative: bool = False,
    length: int | None = None,
    builder: Builder | None = None,
    name: str | None = None,
) -> Value:
    """Apply `to_apply` to each slice of the inputs along `dimension` and to the carries, which start at `init_values`.

    Each of `inputs` and `init_values` is a value, a number or an array, or a list of these. `to_apply` gets the slices,
    then the carries, and returns the outputs, then the next carries. The result contains all outputs, then the final
    carries.
    Raises: the same errors as xb.ops.scan.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[3])
    ... def total(x):
    ...     return xb.scan(x, 0.0, lambda each, total: each + total)
    >>> xb.evaluate(total, [1.0, 2.0, 3.0])
    np.float32(6.0)

    Source: xla_builder.h, Scan.
    """
    slices, carries = as_list(inputs), as_list(init_values)
    given = (*slices, *carries)
    owner = builder_among(given, builder)
    dtype = next((found for found in [dtype_of(each) for each in given] if found), None)
    values = as_values(given, [None if isinstance(each, Value) else dtype for each in given], owner)
    return ops.scan(
        tuple(values),
        dimension=normalize_dimensions(dimension, rank_of(values[0]) if slices else None),
        num_carries=len(carries),
        is_reverse=is_reverse,
        is_associative=is_associative,
        to_apply=to_apply,
        length=length,
        builder=owner,
        name=name,
    )
