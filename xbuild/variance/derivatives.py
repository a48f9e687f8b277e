"""Derivatives of programs on a mesh: collectives go back by the types of their operands, and results have specs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shape_inference import AnyShape, Shape, TupleShape

from ..core.graph import Computation
from .program import Program, retyped
from .region import Region, entered
from .specs import P
from .sums import gathered_sums

Transform = Callable[[Region], Computation]
Specs = Any


def of_program(program: Program, transform: Transform, specs: tuple[Specs, Specs]) -> Program:
    """The derivative of a typed program, with the specs of its parameters and those of its result."""
    region = program.region()
    with entered(region):
        computation = transform(region)
    return retyped(program, gathered_sums(computation), *specs)


def specs_of_vjp(program: Program) -> tuple[Specs, Specs]:
    """The parameters and a cotangent for each leaf of the result; a cotangent for each leaf of the parameters."""
    entry = program.typed.entry
    seeds = cotangents(program.out_specs, entry.root.shape)
    shapes = [parameter.shape for parameter in entry.parameters]
    found = [leaf for pair in zip(program.in_specs, shapes, strict=True) for leaf in cotangents(*pair)]
    return (*program.in_specs, *seeds), tuple(found)


def specs_of_grad(program: Program, argnums: int | Sequence[int], with_value: bool) -> tuple[Specs, Specs]:
    """The parameters; the gradient by each parameter that is asked for, in the parameter's form."""
    parameters = program.typed.entry.parameters
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    found = [_as_parameter(program.in_specs[n], parameters[n].shape) for n in numbers]
    result = found[0] if isinstance(argnums, int) else tuple(found)
    return program.in_specs, (program.out_specs, result) if with_value else result


def specs_of_jvp(program: Program) -> tuple[Specs, Specs]:
    """The parameters and a tangent for each of their leaves; a tangent for each leaf of the result."""
    entry = program.typed.entry
    shapes = [parameter.shape for parameter in entry.parameters]
    given = [leaf for pair in zip(program.in_specs, shapes, strict=True) for leaf in tangents(*pair)]
    return (*program.in_specs, *given), tuple(tangents(program.out_specs, entry.root.shape))


def cotangents(specs: Specs, shape: AnyShape) -> list[P]:
    """The specs of the cotangents of the float and complex leaves of a value."""
    return [each.transposed for each in tangents(specs, shape)]


def tangents(specs: Specs, shape: AnyShape) -> list[P]:
    """The specs of the tangents of the float and complex leaves of a value, which are those of the leaves."""
    if isinstance(shape, TupleShape):
        return [leaf for pair in zip(specs, shape.elements, strict=True) for leaf in tangents(*pair)]
    return [specs] if _has_cotangent(shape) else []


def _has_cotangent(shape: AnyShape) -> bool:
    """Whether floats or complex numbers are in it."""
    if isinstance(shape, TupleShape):
        return any(map(_has_cotangent, shape.elements))
    return isinstance(shape, Shape) and shape.dtype.kind in ("float", "complex")


def _as_parameter(specs: Specs, shape: AnyShape) -> Specs:
    """The specs of the gradient by a parameter; of a tuple the elements that have one."""
    if isinstance(shape, TupleShape):
        parts = zip(specs, shape.elements, strict=True)
        return tuple(_as_parameter(*pair) for pair in parts if _has_cotangent(pair[1]))
    return specs.transposed
