"""Reading rules for operations without an HLO op: each becomes a few ops, or a call of a recorded computation.

Sections:

    Operations as calls of recorded computations
    Inverse trigonometric and hyperbolic functions of CHLO
    CHLO functions that are special functions or a few ops, and cbrt of complex numbers
    bitcast_convert between i1 and other types: i1 is one bit in StableHLO, and a pred of HLO has eight
    Collectives with a root that is a value, and collective_reduce, as broadcasts from each member
    ApproxTopK, JAX's custom call: the first elements of a sort by its comparator, as in XLA
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import ml_dtypes
import numpy as np

from shape_inference import PRIMITIVES, PrimitiveType, Shape, TupleShape, XbuildError, f32, pred, s32, u32

from ... import ops
from ...core.builder import Builder, Value
from ...core.graph import Computation, Instruction
from ...derived.elementwise import add, atan2, eq, ge, gt, lt, multiply, ne, power, select
from ...derived.reduction import reduce
from ...derived.support import dtype_of
from ...derived.tuples import tuple_
from ...ops.elementwise import abs as abs_
from ...ops.elementwise import and_, imag, is_finite, negate, real, subtract
from ...ops.elementwise import complex as complex_
from ...ops.leaves import parameter
from ...special_functions import (
    atan,
    bessel_i1e,
    digamma,
    erf_inv,
    erfc,
    is_inf,
    is_neg_inf,
    is_pos_inf,
    lgamma,
    next_after,
    polygamma,
    zeta,
)
from ...text.scanner import Fault
from ..reading.operation import OperationReading
from ..reading.reader import StablehloReader
from ..reading.rules import Results, Rule, hlo_names, rule, wrap_rule
from ..spelling import HLO_OPCODE
from ..syntax.trees import Record, Symbol
from .devices import read_channel, read_groups

# ----------------------------------------------------------------------------
# Operations as calls of recorded computations, which are recorded once for each list of operand shapes.

_RECORDED: WeakKeyDictionary[StablehloReader, dict[Hashable, Computation]] = WeakKeyDictionary()
"""For each module that is being read: the computations by name, key and shapes of the operands."""


def call_recorded(
    op: OperationReading, name: str, function: Callable[..., Any], *operands: Instruction, key: Hashable = None
) -> Instruction:
    """Record the operation as a call of what a function records; `key` distinguishes functions of one name."""
    reader = op.scope.reader
    known = _RECORDED.setdefault(reader, {})
    wanted = (name, key, tuple([each.shape for each in operands]))
    if wanted not in known:
        try:
            known[wanted] = _record(reader, name, function, operands)
        except XbuildError as error:
            raise Fault(error.kind, f"{op.operation.name}: {error.message}", op.operation.place, error.hints) from None
    return op.record_result("call", operands, to_apply=known[wanted])


def _record(
    reader: StablehloReader, name: str, function: Callable[..., Any], operands: tuple[Instruction, ...]
) -> Computation:
    builder = Builder(reader.computation_names.fresh(name))
    builder.reserve(computations=[each.name for each in reader.order])
    values = [parameter(builder=builder, number=n, shape=each.shape) for n, each in enumerate(operands)]
    made = builder.build(function(*values))
    for computation in made.reachable():
        if computation not in reader.order:
            reader.add(computation)
    return made


# ----------------------------------------------------------------------------
# Inverse trigonometric and hyperbolic functions of CHLO on real numbers, as the ops to which XLA expands them.
#
# HLO has an op for each, which XLA:CPU does not run. The op is kept for complex numbers, and if the text
# states that it was an HLO op.

_LOG_2 = math.log(2)


def _cosine_of_arcsine(x: Value) -> Value:
    """sqrt(1 - x^2)."""
    return ops.sqrt((1 - x) * (x + 1))


def _acos(x: Value) -> Value:
    return ops.atan2(_cosine_of_arcsine(x), x)


def _asin(x: Value) -> Value:
    half = ops.atan2(x, _cosine_of_arcsine(x) + 1)
    return half + half


def _largest(x: Value) -> float:
    return float(ml_dtypes.finfo(_dtype(x).dtype).max)  # type: ignore[no-untyped-call]


def _dtype(x: Value) -> PrimitiveType:
    dtype = dtype_of(x)
    assert dtype is not None
    return dtype


def _acosh(x: Value) -> Value:
    """log(2 x) where x + 1 would overflow."""
    root = ops.sqrt(x - 1)
    near = ops.log_plus_one(root * (ops.sqrt(x + 1) + root))
    return select(ge(x, _largest(x) / 2), ops.log(x) + _LOG_2, near)


def _asinh(x: Value) -> Value:
    """Computed on the magnitude; log(2 x) where its square would overflow."""
    size = ops.abs(x)
    square = size * size
    near = ops.log_plus_one(size + square / (ops.sqrt(square + 1) + 1))
    return ops.sign(x) * select(ge(size, math.sqrt(_largest(x))), ops.log(size) + _LOG_2, near)


def _atanh(x: Value) -> Value:
    half = (ops.log_plus_one(x) - ops.log_plus_one(ops.negate(x))) * 0.5
    return select(gt(ops.abs(x), 1), math.nan, half)


def _in_f32(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """The function, computed in f32 for narrower types."""

    def wide(x: Value) -> Value:
        dtype = _dtype(x)
        if dtype.bits >= 32:
            return function(x)
        return ops.convert(function(ops.convert(x, new_element_type=f32)), new_element_type=dtype)

    return wide


def _half_exponentials(x: Value) -> tuple[Value, Value]:
    """exp(x) / 2 and exp(-x) / 2, which overflow only if their sum does."""
    return ops.exponential(x + -_LOG_2), ops.exponential(-_LOG_2 - x)


def _cosh(x: Value) -> Value:
    one, other = _half_exponentials(x)
    return one + other


def _sinh(x: Value) -> Value:
    small = ops.exponential_minus_one(x)
    one, other = _half_exponentials(x)
    return select(lt(ops.abs(x), 1), (small + small / (small + 1)) * 0.5, one - other)


_NAMED = (_acos, _acosh, _asin, _asinh, _atanh, _cosh, _sinh)
_IN_F32 = (_cosh, _sinh)
_INVERSES: dict[str, Callable[[Value], Value]] = {
    each.__name__.strip("_"): _in_f32(each) if each in _IN_F32 else each for each in _NAMED
}


@wrap_rule(*(f"chlo.{name}" for name in _INVERSES))
def inverse_function(op: OperationReading, op_rule: Rule) -> Results:
    (operand,) = op.expect_operands(1)
    name = op.operation.name.partition(".")[2]
    dtype = getattr(operand.shape, "dtype", None)
    if dtype is None or not dtype.is_float or op.text(HLO_OPCODE, "") == name:
        return op_rule(op)
    op.ignore("result_accuracy")
    return call_recorded(op, name, _INVERSES[name], operand)


# ----------------------------------------------------------------------------
# CHLO functions that are special functions or a few ops, and cbrt of complex numbers


def _conj(x: Value) -> Value:
    return complex_(real(x), negate(imag(x)))


def _square(x: Value) -> Value:
    """The square of a complex number as (a - b)(a + b) and 2ab, as in XLA, so that infinities do not cancel."""
    a, b = real(x), imag(x)
    is_even = and_(is_finite(a), eq(abs_(a), abs_(b)))
    return complex_(select(is_even, 0, multiply(subtract(a, b), add(a, b))), multiply(multiply(a, b), 2))


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "atan": lambda x: atan2(x, 1.0),
    "bessel_i1e": bessel_i1e,
    "conj": _conj,
    "digamma": digamma,
    "erf_inv": erf_inv,
    "erfc": erfc,
    "is_inf": is_inf,
    "is_neg_inf": is_neg_inf,
    "is_pos_inf": is_pos_inf,
    "lgamma": lgamma,
    "next_after": next_after,
    "polygamma": polygamma,
    "square": _square,
    "zeta": zeta,
}


@rule(*(f"chlo.{name}" for name in _FUNCTIONS))
def chlo_function(op: OperationReading) -> Results:
    op.ignore("result_accuracy")
    name = op.operation.name.partition(".")[2]
    operands = op.expect_operands(2 if name in ("next_after", "polygamma", "zeta") else 1)
    if name == "square" and operands[0].shape.dtype.kind != "complex":  # type: ignore[union-attr]
        return op.record_result("multiply", *operands, *operands)
    if name == "atan" and operands[0].shape.dtype.kind == "complex":  # type: ignore[union-attr]
        return call_recorded(op, name, atan, *operands)
    if name == "conj" and operands[0].shape.dtype.kind != "complex":  # type: ignore[union-attr]
        return operands[0]
    return call_recorded(op, name, _FUNCTIONS[name], *operands)


@wrap_rule(*hlo_names("cbrt"))
def cbrt(op: OperationReading, real_rule: Rule) -> Results:
    """The principal cube root of a complex number; HLO has no op for it."""
    (operand,) = op.expect_operands(1)
    if getattr(operand.shape, "dtype", None) is None or operand.shape.dtype.kind != "complex":  # type: ignore[union-attr]
        return real_rule(op)
    op.ignore("result_accuracy")
    return call_recorded(op, "cbrt", lambda x: power(x, 1 / 3), operand)


# ----------------------------------------------------------------------------
# bitcast_convert between i1 and other types: i1 is one bit in StableHLO, and a pred of HLO has eight


@wrap_rule(*hlo_names("bitcast_convert"))
def bitcast_convert(op: OperationReading, as_in_hlo: Rule) -> Results:
    """The bits are the elements of an additional minor dimension, lowest bit first."""
    (operand,) = op.expect_operands(1)
    source, target = operand.shape, op.array_shape
    if not isinstance(source, Shape) or (source.dtype is pred) == (target.dtype is pred):
        return as_in_hlo(op)
    bits, numbers = (source, target) if source.dtype is pred else (target, source)
    if bits.dims != (*numbers.dims, numbers.dtype.bits) or numbers.dtype.kind == "complex":
        return as_in_hlo(op)
    convert_bits = partial(_pack_bits if source.dtype is pred else _unpack_bits, numbers=numbers)
    return call_recorded(op, "bits", convert_bits, operand, key=numbers)


def _bits_shape(numbers: Shape) -> tuple[Shape, int]:
    """The shape of the bits as unsigned integers, and the dimension of the bits."""
    unsigned = PRIMITIVES[f"u{numbers.dtype.bits}"]
    return Shape(unsigned, (*numbers.dims, numbers.dtype.bits)), numbers.rank


def _pack_bits(bits: Value, numbers: Shape) -> Value:
    shape, minor = _bits_shape(numbers)
    unsigned = ops.convert(bits, new_element_type=shape.dtype)
    places = ops.iota(builder=bits.builder, shape=shape, iota_dimension=minor)
    return _bitcast_to(reduce(ops.shift_left(unsigned, places), 0, ops.or_, [minor]), numbers)


def _unpack_bits(value: Value, numbers: Shape) -> Value:
    shape, minor = _bits_shape(numbers)
    spread = ops.broadcast(
        _bitcast_to(value, Shape(shape.dtype, numbers.dims)), sizes=shape.dims, dimensions=range(minor)
    )
    places = ops.iota(builder=value.builder, shape=shape, iota_dimension=minor)
    return ne(ops.shift_right_logical(spread, places) & 1, 0)


def _bitcast_to(value: Value, shape: Shape) -> Value:
    if value.shape.dtype is shape.dtype:  # type: ignore[union-attr]
        return value
    return ops.bitcast_convert(value, new_element_type=shape.dtype)


# ----------------------------------------------------------------------------
# Collectives with a root that is a value, and collective_reduce, as broadcasts from each member

Ids = dict[str, Any]


@wrap_rule(*hlo_names("collective_broadcast"))
def collective_broadcast(op: OperationReading, static_rule: Rule) -> Results:
    """Element j of the last operand is the number, in each group, of the root of operand j."""
    if not op.flag("has_dynamic_root", False):
        return static_rule(op)
    ids = {**read_groups(op), **read_channel(op)}

    def broadcast_roots(*given: Value) -> Value:
        *values, roots = given
        return tuple_(
            [_select_member(_from_members(value, ids), _scalar_at(roots, n)) for n, value in enumerate(values)]
        )

    return _tuple_results(op, call_recorded(op, "collective_broadcast", broadcast_roots, *op.operands, key=repr(ids)))


@rule(*hlo_names("collective_reduce"))
def collective_reduce(op: OperationReading) -> Results:
    """The root has the reduction over its group, all others have zeros; the default root is the first member.

    Groups are read like those of collective_broadcast.
    """
    ids = {**read_groups(op), **read_channel(op)}
    has_roots = op.flag("has_dynamic_root", False)
    reducer = op.region(0, "reducer", 2)

    def reduce_to_roots(*given: Value) -> Value:
        values, roots = (given[:-1], given[-1]) if has_roots else (given, None)
        found = []
        for number, value in enumerate(values):
            total = _fold_members(_from_members(value, ids), reducer)
            root: Any = 0 if roots is None else _scalar_at(roots, number)
            found.append(select(eq(_number_in_group(total, ids), root), total, 0))
        return tuple_(found)

    return _tuple_results(
        op, call_recorded(op, "collective_reduce", reduce_to_roots, *op.operands, key=(repr(ids), reducer))
    )


def _tuple_results(op: OperationReading, made: Any) -> Results:
    assert isinstance(made.shape, TupleShape)
    return op.elements(made)


def _largest_group(ids: Ids) -> int:
    return max((len(group) for group in ids["replica_groups"]), default=0)


def _from_members(value: Value, ids: Ids) -> list[Value]:
    """The value of each member of the group, by its number; in smaller groups, numbers wrap around."""

    def led_by(number: int) -> tuple[tuple[int, ...], ...]:
        turns = [(group, number % len(group)) for group in ids["replica_groups"]]
        return tuple(group[turn:] + group[:turn] for group, turn in turns)

    return [ops.collective_broadcast(value, **{**ids, "replica_groups": led_by(n)}) for n in range(_largest_group(ids))]


def _select_member(values: Sequence[Value], number: Value) -> Value:
    """The value of the member with this number."""
    found = values[0]
    for place, value in enumerate(values[1:], 1):
        found = select(eq(number, place), value, found)
    return found


def _fold_members(values: Sequence[Value], reducer: Computation) -> Value:
    total = values[0]
    for value in values[1:]:
        dims = range(len(value.shape.dims))  # type: ignore[union-attr]
        total = ops.map([total, value], to_apply=reducer, dimensions=dims)
    return total


def _scalar_at(vector: Value, number: int) -> Value:
    one = ops.slice(vector, start_indices=[number], limit_indices=[number + 1], strides=[1])
    return ops.reshape(one, new_sizes=())


def _number_in_group(model: Value, ids: Ids) -> Value:
    """The number of this device in its group; -1 if it is in no group."""
    own: Callable[..., Value] = ops.partition_id if ids.get("channel_id") else ops.replica_id
    members = [each for group in ids["replica_groups"] for each in group]
    numbers = [number for group in ids["replica_groups"] for number in range(len(group))]
    named = ops.constant(builder=model.builder, literal=np.array(members, u32.dtype))
    places = ops.constant(builder=model.builder, literal=np.array(numbers, s32.dtype))
    return reduce(select(eq(named, own(builder=model.builder)), places, -1), -1, ops.maximum, [0])


# ----------------------------------------------------------------------------
# ApproxTopK, JAX's custom call: the first elements of a sort by its comparator, as in XLA


@wrap_rule(*hlo_names("custom_call"))
def approx_top_k(op: OperationReading, rule: Rule) -> Results:
    """The exact result, which satisfies any recall; the second half of the operands, initial values, is unused."""
    if op.attributes.get("call_target_name") != "ApproxTopK":
        return rule(op)
    values = op.operands[: len(op.operands) // 2]
    names = op.get("called_computations", ())
    if len(names) != 1 or not isinstance(names[0], Symbol) or len(values) != len(op.shapes) or not values:
        op.fail(
            "arity_mismatch",
            "ApproxTopK needs one comparator; for each array, it also needs one initial value and one result",
        )
    op.ignore(*op.attributes)
    comparator = op.scope.reader.function(op, names[0].name)
    dim = _reduction_dimension(op)
    ordered = op.emit("sort", values, to_apply=comparator, dimension=dim, is_stable=False)
    parts = (ordered,) if len(values) == 1 else op.elements(ordered, len(values))
    kept = []
    for part, shape in zip(parts, op.shapes, strict=True):
        if not isinstance(shape, Shape) or not isinstance(part.shape, Shape) or shape.rank != part.shape.rank:
            op.fail("shape_mismatch", f"the result {shape} is not a slice of {part.shape}")
        ends = tuple(
            size if d == dim else n for d, (n, size) in enumerate(zip(part.shape.dims, shape.dims, strict=True))
        )
        begins, ones = (0,) * shape.rank, (1,) * shape.rank
        record = op.record_result if len(parts) == 1 else op.emit
        kept.append(record("slice", part, start_indices=begins, limit_indices=ends, strides=ones))
    return tuple(kept)


def _reduction_dimension(op: OperationReading) -> int:
    """The dimension along which the largest elements are found."""
    given = op.attributes.get("mhlo.backend_config", op.attributes.get("backend_config"))
    found = given.fields.get("reduction_dim") if isinstance(given, Record) else None
    if type(found) is not int:
        op.fail("missing_attribute", "reduction_dim is missing from the backend_config of ApproxTopK")
    return found
