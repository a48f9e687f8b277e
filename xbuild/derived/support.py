"""What convenience forms share: arguments, numbers as operands, dimensions, broadcasting, errors at the user's line.

Sections:

    dressed: errors that name the form
    Dimensions and sizes
    Constants of numbers and arrays beside values
    Arguments of convenience forms
    Broadcasting to other extents, and padding to the bounds of a dynamic dimension
    Arguments of collectives
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np

from shape_inference import (
    AnyShape,
    Dims,
    PrimitiveType,
    Shape,
    ShapeError,
    XbuildError,
    c64,
    f32,
    pred,
    primitive_type,
    refuse,
    s32,
)
from shape_inference.broadcasting import broadcasting
from shape_inference.dims import array, distinct, limits
from shape_inference.groups import check_equal_groups, check_replica_group_ids
from shape_inference.ops.shaping import check_broadcast_in_dim

from .. import ops
from ..core.attributes import Array, ReplicaGroups, reader
from ..core.builder import Builder, Value, stands_for
from ..core.diagnostics import BuildError, ValueUseError, caller, explain_call, segment_labels
from ..core.graph import Computation

# ----------------------------------------------------------------------------
# dressed: errors that name the form
#
# A refusal of a convenience form states its name, its arguments and the user's line.

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def dressed(form: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A decorator that adds a form's name and arguments to its refusals; refusals of recorded ops state theirs."""

    @functools.wraps(form)
    def checked(*arguments: Parameters.args, **keywords: Parameters.kwargs) -> Result:
        try:
            return form(*arguments, **keywords)
        except XbuildError as error:
            if error.explained:
                raise
            raise _explain_error(form, error, arguments, keywords) from None
        except TypeError:
            misuse = _misuse_error(form, arguments, keywords)
            if misuse is None:
                raise
            raise misuse from None

    return checked


_CHANNEL = (
    "pass channel_id=1, or any number that no other transfer uses; send, recv and their done ops share one channel_id"
)


def _misuse_error(form: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> XbuildError | None:
    """The error of a call whose arguments do not fit the form's signature; None where they do."""
    signature = inspect.signature(form)
    try:
        signature.bind(*arguments, **keywords)
    except TypeError as error:
        name = form.__name__
        usage = f"xb.{name}({', '.join(map(_without_annotation, signature.parameters.values()))})"
        near = [near for key in keywords if key not in signature.parameters for near in _nearest(key, signature)]
        forgotten = "'channel_id'" in str(error) and "missing" in str(error)
        hints = [_CHANNEL] if forgotten else []
        hints += [f"call {usage}", *(f"use {near}= instead of {key}=" for key, near in near)]
        return explain_call(ValueUseError("arity_mismatch", str(error), hints), name, (), {}, caller())
    return None


def _without_annotation(parameter: inspect.Parameter) -> str:
    return str(parameter.replace(annotation=inspect.Parameter.empty))


_AXES = ("axis", "dim", "axes", "dims")


def _nearest(key: str, signature: inspect.Signature) -> list[tuple[str, str]]:
    """The parameter that is meant by a keyword which a form does not have."""
    names = [*signature.parameters]
    if key in _AXES:
        found = [name for name in names if name.startswith(("dim", "axis", "permutation"))]
    else:
        found = difflib.get_close_matches(key, names, 1)
    return [(key, name) for name in found[:1]]


def _explain_error(
    form: Callable[..., Any], error: XbuildError, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> XbuildError:
    given = inspect.signature(form).bind(*arguments, **keywords).arguments
    operands = {name: _values(argument) for name, argument in given.items() if _holds_values(argument)}
    flat = (value for values in operands.values() for value in values)
    labelled = zip(segment_labels(operands, map(len, operands.values())), flat, strict=True)
    attributes = {name: argument for name, argument in given.items() if name not in operands and argument is not None}
    return explain_call(error, form.__name__.strip("_").replace("_", "-"), labelled, attributes, caller())


def _holds_values(argument: Any) -> bool:
    return any(isinstance(each, Value) for each in _values(argument))


def _values(argument: Any) -> tuple[Any, ...]:
    return tuple(argument) if isinstance(argument, tuple | list) else (argument,)


# ----------------------------------------------------------------------------
# Dimensions and sizes
#
# Negative dimensions count from the last; one size may be -1, the extent that is left.

_new_sizes = reader("new_sizes", Dims)


def rank_of(operand: Any) -> int | None:
    """The rank of an array value, or of the first of a list; None of anything else, which the op refuses."""
    if type(operand) is not Value and isinstance(operand, tuple | list):
        operand = operand[0] if operand else None
    shape = operand.instruction.shape if type(operand) is Value else None
    return len(shape.dims) if isinstance(shape, Shape) else None


def normalize_dimensions(dim: Any, rank: int | None) -> Any:
    """A dimension number counted from 0; one that no dimension has, or that is no int, stays for the op to refuse."""
    if type(dim) is bool or not hasattr(dim, "__index__") or isinstance(dim, Value) or rank is None:
        return dim
    number = operator.index(dim)
    return number + rank if -rank <= number < 0 else number


def counted_all(dims: Any, rank: int | None) -> Any:
    """A list of dimension numbers, each counted from 0; what is no list stays for the op to refuse."""
    if type(dims) is tuple:
        for dim in dims:
            if type(dim) is not int or dim < 0:
                break
        else:
            return dims
    if isinstance(dims, str | bytes | Value) or not isinstance(dims, Iterable):
        return dims
    return tuple([normalize_dimensions(dim, rank) for dim in dims])


def axes_of(axis: Any, shape: Shape) -> Dims:
    """NumPy's `axis` (None for all dimensions, an int, or a list) as ascending dimension numbers.

    Raises: dimension_out_of_range; duplicate_dimension; invalid_attribute for what is no int.
    """
    if axis is None:
        return tuple(range(shape.rank))
    given = (axis,) if hasattr(axis, "__index__") or not isinstance(axis, Iterable) else tuple(axis)
    found = [axis_of(each, shape) for each in given]
    distinct("axis", found)
    return tuple(sorted(found))


def axis_of(axis: Any, shape: Shape, *, rank: int | None = None) -> int:
    """One dimension number of an array, or of an array of this rank that is made of it, counted from 0."""
    count = shape.rank if rank is None else rank
    found = normalize_dimensions(axis, count)
    if type(found) is not int:
        refuse("invalid_attribute", f"axis={axis!r}: expected an int")
    if not 0 <= found < count:
        legal = f"expected {-count}..{count - 1} for rank {count}" if count else "an array of rank 0 has no dimensions"
        refuse("dimension_out_of_range", f"axis={axis} is out of range for operand {shape}; {legal}")
    return found


def with_the_rest(operand: Value, new_sizes: Any) -> Any:
    """The sizes with the extent that is left in the place of one -1; others stay, and the op refuses them."""
    if isinstance(new_sizes, int) and not isinstance(new_sizes, bool):
        new_sizes = (new_sizes,)
    shape = operand.shape if isinstance(operand, Value) else None
    if not isinstance(shape, Shape) or isinstance(new_sizes, Value) or not isinstance(new_sizes, Iterable):
        return new_sizes
    sizes = _new_sizes(tuple(new_sizes))
    unknown = [place for place, size in enumerate(sizes) if size == -1]
    if not unknown:
        return sizes
    known = math.prod(size for size in sizes if size != -1)
    if len(unknown) > 1:
        refuse(
            "invalid_attribute",
            f"new_sizes={list(sizes)} has {len(unknown)} sizes of -1, but only one size can be inferred",
        )
    if known <= 0 or shape.size % known:
        refuse(
            "element_count_mismatch",
            f"{known}, the product of the other sizes in new_sizes {list(sizes)}, does not divide {shape.size}, the "
            f"number of elements of operand {shape}",
        )
    return (*sizes[: unknown[0]], shape.size // known, *sizes[unknown[0] + 1 :])


# ----------------------------------------------------------------------------
# Constants of numbers and arrays beside values
#
# A number takes the element type of the value.

_DEFAULT = {"pred": pred, "signed": s32, "unsigned": s32, "float": f32, "complex": c64}
_SMALL = 65504.0
_NUMBERS = ("signed", "unsigned", "float", "complex")
_HOLDS = {"pred": ("pred",), "signed": _NUMBERS, "unsigned": _NUMBERS, "float": _NUMBERS[2:], "complex": _NUMBERS[3:]}
"""For each kind of number, the kinds of element type that can hold it."""


def as_value(builder: Builder, operand: Any, dtype: PrimitiveType | None = None) -> Value:
    """A value as it is; anything else as a constant: a Python number or list in this element type, an array in its own.

    Raises: invalid_operand (ValueUseError) for what is no number; element_type_mismatch where the type cannot hold it.

    >>> import xbuild as xb
    >>> as_value(xb.Builder("b"), 2, xb.f32)
    %constant.1: f32[]
    """
    operand = operand if isinstance(operand, Value) else stands_for(operand)
    return operand if isinstance(operand, Value) else ops.constant(builder, literal=literal(operand, dtype))


def literal(operand: Any, dtype: PrimitiveType | None = None) -> Array:
    """An array as it is; a Python number or list in this element type, or in s32, f32, c64 or pred."""
    if isinstance(operand, np.ndarray | np.generic) and not isinstance(operand, float | complex):
        return np.asarray(operand)
    if type(operand) is float and dtype is not None and dtype.is_float and dtype.is_native and abs(operand) < _SMALL:
        return np.array(operand, dtype.dtype)  # the usual case, which needs no checks
    array = _array(operand)
    return convert_numbers(array, dtype or _DEFAULT[primitive_type(array.dtype).kind], operand)


def convert_numbers(array: Array, dtype: PrimitiveType, shown: Any) -> Array:
    """Numbers converted to an element type; rounding is allowed, a change of kind or an overflow is refused."""
    if array.size and dtype.kind not in _HOLDS[primitive_type(array.dtype).kind]:
        hints = ("x.astype(xb.f32) converts a value of integers to floats",) if dtype.is_integer else ()
        refuse("element_type_mismatch", f"expected a number of element type {dtype}, got {shown!r}", *hints)
    if array.size and dtype.is_integer:
        low, high = limits(dtype)
        if int(array.min()) < low or int(array.max()) > high:
            refuse("element_type_mismatch", f"{shown!r} is out of range for {dtype}; expected {low}..{high}")
    with np.errstate(over="ignore", invalid="ignore"):
        held = array.astype(dtype.dtype)
        lost = dtype.is_float and bool((np.isfinite(array) & ~np.isfinite(held.astype(np.float64))).any())
    if lost:
        refuse("element_type_mismatch", f"{shown!r} is out of range for {dtype}")
    return held


def _array(operand: Any) -> Array:
    try:
        array = np.asarray(operand)
        if array.dtype != object:
            primitive_type(array.dtype)
            return array
        too_large = all(isinstance(each, int) for each in array.flat)
    except (TypeError, ValueError):
        too_large = False
    if too_large:
        shown = repr(operand)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        refuse("element_type_mismatch", f"{shown} is out of range for every integer type")
    raise ValueUseError(
        "invalid_operand", f"expected a value, a number or an array as operand, got {operand!r}", _way_out(operand)
    )


def _way_out(operand: Any) -> str:
    """The hint for an object that cannot be an operand beside a value."""
    if isinstance(operand, AnyShape | PrimitiveType):
        return "x.shape is the shape of a value, and x.shape.dtype is its element type"
    if isinstance(operand, tuple | list):
        return "xb.concatenate joins several values into one"
    return "to test a name, use `x is None` or `x is y`; an operator accepts only values, numbers and arrays"


# ----------------------------------------------------------------------------
# Arguments of convenience forms
#
# The values among them, their builder, and the element type of numbers.


def shape_of(operand: Any) -> AnyShape:
    """The shape of a value; anything else is refused."""
    return require_value(operand).shape


def require_value(operand: Any) -> Value:
    operand = operand if type(operand) is Value else stands_for(operand)
    if not isinstance(operand, Value):
        raise BuildError(
            "invalid_operand",
            f"expected a value of a builder as operand, got {operand!r}",
            "xb.constant(builder, literal=...) creates a value",
        )
    return operand


def dtype_of(operand: Any) -> PrimitiveType | None:
    """The element type of an array value; None for anything else."""
    shape = getattr(operand, "shape", None)
    return shape.dtype if isinstance(shape, Shape) else None


def builder_among(operands: Iterable[Any], builder: Builder | None = None) -> Builder:
    """The builder of the first value, at any depth of lists, or else the given builder."""
    for operand in map(stands_for, operands):
        if isinstance(operand, Value):
            return operand.builder
        if isinstance(operand, tuple | list):
            try:
                return builder_among(operand)
            except BuildError:
                continue
    if builder is None:
        raise BuildError("no_builder", "no operand determines the builder; pass builder=...")
    return builder


def as_list(operands: Any) -> Sequence[Any]:
    return operands if type(operands) is tuple or isinstance(operands, list | tuple) else (operands,)


def as_values(
    operands: Sequence[Any], dtypes: Sequence[PrimitiveType | None] | None = None, builder: Builder | None = None
) -> list[Value]:
    """Values as they are; numbers and arrays as constants, of these types or, a Python number, of the first value's."""
    for operand in operands:
        if type(operand) is not Value:
            break
    else:
        return list(operands)
    operands = [stands_for(operand) for operand in operands]
    found = builder_among(operands, builder)
    types = [next(filter(None, map(dtype_of, operands)), None)] * len(operands) if dtypes is None else dtypes
    return [as_value(found, operand, dtype) for operand, dtype in zip(operands, types, strict=True)]


def pack_operands(operand: Any, builder: Builder | None = None, *, name: str | None = None) -> Value:
    """A value as it is, a tuple or list as one tuple value, a number or array as a constant of its own type."""
    operand = stands_for(operand)
    if isinstance(operand, Value):
        return operand
    found = builder_among((operand,), builder)
    if not isinstance(operand, tuple | list):
        return as_values((operand,), (None,), found)[0]
    return ops.tuple_([pack_operands(each, found) for each in operand], builder=found, name=name)


def operand_precisions(precision: str | Sequence[str] | None) -> tuple[str, ...]:
    """The precision of each operand, in lower case as HLO text has it."""
    if precision is None:
        return ()
    words = (precision, precision) if isinstance(precision, str) else precision
    return tuple(str(word).lower() for word in words)


# ----------------------------------------------------------------------------
# Broadcasting to other extents, and padding to the bounds of a dynamic dimension

_read = reader("broadcast_dimensions", Dims)


def into(operand: Value, sizes: Dims, dimensions: Dims, name: str | None = None) -> Value:
    """XlaBuilder's BroadcastInDim: a reshape, where an extent of 1 must stretch, and a broadcast."""
    found = check_broadcast_in_dim(shape_of(operand), sizes, dimensions)
    kept = [i for i, (dim, size) in enumerate(zip(dimensions, found.dims, strict=True)) if size == sizes[dim]]
    if len(kept) < found.rank:
        operand = ops.reshape(operand, new_sizes=tuple(found.dims[i] for i in kept))
    return ops.broadcast(operand, sizes=sizes, dimensions=tuple(dimensions[i] for i in kept), name=name)


def align_operands(lhs: Any, rhs: Any, broadcast_dimensions: Sequence[int] | None) -> tuple[Value, Value]:
    """Both operands broadcast to the same extents; operands that are no arrays stay, and the op refuses them."""
    left, right = as_values((lhs, rhs))
    a, b = left.shape, right.shape
    if not isinstance(a, Shape) or not isinstance(b, Shape) or (broadcast_dimensions is None and a.dims == b.dims):
        return left, right
    given = None if broadcast_dimensions is None else _read(broadcast_dimensions)
    try:
        sizes, of_lhs, of_rhs = broadcasting(a, b, given)
    except ShapeError as error:
        error.hints += tuple(_call_that_fits(error.hints))
        raise
    return _stretch(left, sizes, of_lhs, right, of_rhs), _stretch(right, sizes, of_rhs, left, of_lhs)


def _call_that_fits(hints: Sequence[str]) -> Iterator[str]:
    """The hint with the call for dimensions that fit, since an operator takes none."""
    for hint in hints[:1]:
        if hint.endswith(" fits"):
            dimensions = hint.removesuffix(" fits")
            yield f"an operator takes no broadcast_dimensions; call a function, such as xb.add(x, y, {dimensions})"


def _stretch(value: Value, sizes: Dims, places: Dims, other: Value, others: Dims) -> Value:
    """The value broadcast to these extents; along a dynamic dimension of the other operand it gets the same size."""
    shape, model = value.shape, other.shape
    assert isinstance(shape, Shape)
    assert isinstance(model, Shape)
    if shape.dims == sizes:
        return value
    own = {place for place, size in zip(places, shape.dims, strict=True) if size == sizes[place]}
    value = into(value, sizes, places) if places else ops.broadcast(value, sizes=sizes, dimensions=())
    for dim in range(model.rank if model.dynamic else 0):
        if model.dynamic[dim] and others[dim] not in own:
            value = ops.set_dimension_size(value, ops.get_dimension_size(other, dimension=dim), dimension=others[dim])
    return value


def like(value: Value, model: Value | None, given: Any) -> Value:
    """A scalar number broadcast to the extents of the model; any other value unchanged."""
    if isinstance(given, Value) or model is None or not isinstance(model.shape, Shape) or np.ndim(given):
        return value
    return _stretch(value, model.shape.dims, (), model, tuple(range(model.shape.rank)))


def filled_up(operand: Value, shape: Shape, dimension: int, name: str | None = None) -> Value:
    """The value padded with zeros to the bound of one dynamic dimension; other dimensions stay dynamic."""
    whole = ops.broadcast(as_value(operand.builder, 0, shape.dtype), sizes=shape.dims, dimensions=())
    for dim, is_dynamic in enumerate(shape.dynamic):
        if is_dynamic and dim != dimension:
            size = ops.get_dimension_size(operand, dimension=dim)
            whole = ops.set_dimension_size(whole, size, dimension=dim)
    starts = [as_value(operand.builder, 0, s32)] * shape.rank
    return ops.dynamic_update_slice(whole, operand, starts, name=name)


# ----------------------------------------------------------------------------
# Arguments of collectives
#
# Replica groups and operands, for blocking and for asynchronous forms.

Groups: TypeAlias = Sequence[Sequence[int]]
Operands: TypeAlias = Value | Sequence[Value]
Reducer: TypeAlias = Computation | Callable[..., Any]

groups_of = reader("replica_groups", ReplicaGroups)
_ids_of = reader("replica_group_ids", Dims)


def members(attribute: str, count: int | None, groups: ReplicaGroups, channel_id: int | None, global_ids: bool) -> int:
    """The given count, or the size of the first group if its ids are the members."""
    if count is not None:
        return count
    if not groups or (channel_id is not None and not global_ids):
        shown = [list(group) for group in groups]
        refuse(
            "invalid_attribute", f"{attribute} is missing, and replica_groups {shown} does not determine the group size"
        )
    return len(groups[0])


def groups_of_sum(ids: Sequence[int] | None, groups: Groups | None, num_replicas: int | None) -> ReplicaGroups:
    """The groups of CrossReplicaSum, of one size, by the id of each replica's group or by their lists."""
    if ids is not None and groups is not None:
        refuse(
            "invalid_attribute",
            "replica_group_ids and replica_groups both define the groups; pass only one of them",
        )
    read = _ids_of(ids or ())
    found: ReplicaGroups = tuple(check_replica_group_ids(read, num_replicas)) if read else groups_of(groups)
    check_equal_groups(found)
    return found


def sum_of(operands: Operands, dtype: PrimitiveType, groups: ReplicaGroups, name: str | None) -> Value:
    """The all_reduce that sums arrays of one element type."""
    return ops.all_reduce(operands, to_apply=ops.or_ if dtype is pred else ops.add, replica_groups=groups, name=name)


def sum_of_tuple(operand: Value, groups: ReplicaGroups, name: str | None) -> Value:
    """The tuple of the sums, in one all_reduce for each element type."""
    shapes = [array(f"element {n} of operand", each) for n, each in enumerate(operand.shape.elements)]  # type: ignore[union-attr]
    if not shapes:
        refuse("arity_mismatch", "expected an operand with at least one element to sum, got the empty tuple")
    types = dict.fromkeys(shape.dtype for shape in shapes)
    elements = list(operand)
    if len(types) == 1 and len(elements) > 1:
        return sum_of(elements, shapes[0].dtype, groups, name)
    sums: dict[int, Value] = {}
    for dtype in types:
        places = [n for n, shape in enumerate(shapes) if shape.dtype is dtype]
        found = sum_of([elements[n] for n in places], dtype, groups, None)
        sums.update(zip(places, found if len(places) > 1 else (found,), strict=True))
    return ops.tuple_([sums[n] for n in range(len(elements))], name=name)
