"""Tracing of Python functions into computations, with the parameter shapes that an op requires."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import zip_longest
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_inference import (
    AnyShape,
    PrimitiveType,
    Shape,
    TokenShape,
    TupleShape,
    primitive_type,
    refuse,
    region_parameters,
)  # fmt: skip

from .context import apart
from .diagnostics import BuildError, refusal
from .graph import Computation
from .identifiers import is_identifier

if TYPE_CHECKING:
    from .builder import Builder, Value
    from .op import Schema


def trace(builder: Builder, function: Callable[..., Any], shapes: Sequence[AnyShape]) -> Computation:
    """Record `function` into `builder` with one parameter for each shape, and build it.

    A tuple or list that the function returns becomes a tuple value.
    """
    _check_arity(function, shapes)
    with apart():
        parameters = [_record_op(builder, "parameter", number=n, shape=shape) for n, shape in enumerate(shapes)]
        return builder.build(_as_value(builder, function, function(*parameters)))


def _record_op(builder: Builder, opcode: str, *operands: Any, **attributes: Any) -> Value:
    from .op import OPS

    schema = OPS[opcode]
    return builder.record(schema, *schema.flatten(operands), attributes, None)


def _check_arity(function: Callable[..., Any], shapes: Sequence[AnyShape]) -> None:
    try:
        inspect.signature(function).bind(*shapes)
    except TypeError:
        number = f"{len(shapes)} parameter{'s' * (len(shapes) != 1)}: {', '.join(map(repr, shapes)) or 'none'}"
        refuse(
            "arity_mismatch",
            f"function {_name(function)}{inspect.signature(function)} must take {number}",
            *_as_one_tuple(function, shapes),
        )
    except ValueError:  # a C function without a signature
        return


def _as_one_tuple(function: Callable[..., Any], shapes: Sequence[AnyShape]) -> list[str]:
    """The hint for a function with a parameter per element of a tuple, which is passed as one value."""
    names = [*inspect.signature(function).parameters]
    if len(shapes) == 1 and isinstance(shapes[0], TupleShape) and len(names) == len(shapes[0]):
        return [f"the function receives the tuple as one value; unpack it: {', '.join(names)} = state"]
    return []


def _as_value(builder: Builder, function: Callable[..., Any], result: Any) -> Value:
    if isinstance(result, tuple | list):
        return _record_op(builder, "tuple", tuple(_as_value(builder, function, each) for each in result))
    from .builder import Value

    if result is None:
        raise BuildError(
            "not_a_computation",
            f"function {_name(function)} returned None; expected a value or a tuple of values",
            "a `return` is missing: end the function with `return` and its result",
        )
    if not isinstance(result, Value):
        raise BuildError(
            "not_a_computation",
            f"function {_name(function)} returned {result!r}; expected a value or a tuple of values",
            "xb.constant(builder, literal=...) turns a number into a value",
        )
    return result


def computation(*shapes: AnyShape | PrimitiveType) -> Callable[[Callable[..., Any]], Computation]:
    """Decorate a Python function: trace it once into a computation with parameters of these shapes.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[3], xb.f32[3])
    ... def axpy(x, y):
    ...     return 2.0 * x + y
    >>> axpy.program_shape
    (f32[3], f32[3]) -> f32[3]
    """
    wanted = [_shape(shape) for shape in shapes]
    from .builder import Builder

    return lambda function: trace(Builder(_name(function)), function, wanted)


def _shape(given: Any) -> AnyShape:
    """The shape of a parameter; an element type means a scalar."""
    if isinstance(given, PrimitiveType):
        return given[()]
    if isinstance(given, Shape | TupleShape | TokenShape):
        return given
    if isinstance(given, FunctionType):
        what, hint = (
            f"the function {given.__name__}",
            "decorate a function of one matrix with @xb.computation(xb.f32[2, 3])",
        )
    else:
        what, hint = (
            f"a {type(given).__name__}",
            "xb.f32[2, 3] is the shape of a matrix, and xb.f32[()] is the shape of a number",
        )
    if isinstance(given, np.ndarray | np.generic):
        hint = f"{shape_text(given)} is the shape of this array; call the Computation on arrays"
    raise refusal("invalid_operand", f"computation: expected the shape of each parameter, got {what}", hint)


def shape_text(given: Any) -> str:
    """The shape of an array as a user would type it; float64, NumPy's type for Python's numbers, as f32."""
    dtype = np.dtype(given.dtype)
    name = "f32" if dtype == np.float64 else repr(primitive_type(dtype))
    return f"xb.{name}[{', '.join(map(str, given.shape)) or '()'}]"


def trace_regions(
    builder: Builder, schema: Schema, shapes: tuple[Any, ...], attributes: dict[str, Any]
) -> dict[str, Any]:
    """The regions of an op as computations; functions are traced with the parameter shapes that the op requires."""
    demanded = region_parameters[schema.opcode](*shapes, **attributes)
    found: dict[str, Any] = {}
    for role in schema.regions:
        region = attributes[role]
        if isinstance(region, tuple | list):
            pairs = zip_longest(region, demanded[role][: len(region)], fillvalue=())
            found[role] = tuple(_trace_region(builder, each, wanted) for each, wanted in pairs)
        else:
            found[role] = _trace_region(builder, region, demanded[role])
    return found


def _trace_region(builder: Builder, region: Any, shapes: Sequence[AnyShape]) -> Computation:
    if isinstance(region, Computation):
        return region
    if not callable(region):
        raise BuildError("not_a_computation", f"expected a Computation or a function as region, got {region!r}")
    if (getattr(region, "__module__", "") or "").partition(".")[0] != "xbuild":
        return trace(builder.sub_builder(_name(region)), region, shapes)
    key = region, tuple(shapes)  # an op function of this package always traces to the same computation
    if key not in builder.traced:
        builder.traced[key] = trace(builder.sub_builder(_name(region)), region, shapes)
    return builder.traced[key]


def _name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "region").strip("_<>")
    return name if is_identifier(name) else "region"
