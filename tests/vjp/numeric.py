"""Cotangents against numeric derivatives: for any cotangent t and direction v is Re <t, dy> = Re <cotangents, v>."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from attrs import frozen

import xbuild as xb
from interpreter import evaluate
from shape_inference import Shape, TupleShape

STEP = 1e-5
TOLERANCE = 2e-7  # of f64, relative to the sizes of the terms: central differences lose a third of the digits
DIRECTIONS = 3

Array = np.ndarray[Any, Any]


@frozen(eq=False)
class Case:
    """A function of values, the shapes of its parameters, and given arguments for some of them by number."""

    name: str
    function: Callable[..., Any]
    shapes: Sequence[Shape]
    given: Mapping[int, Any] = MappingProxyType({})

    def __str__(self) -> str:
        return self.name


def check(case: Case, times: int = 1) -> None:
    """Compare along a few directions; the values have no ties, unless they are given.

    The cotangents of a program with its cotangents are a program, too, which is compared where `times` is 2.
    """
    program = xb.computation(*case.shapes)(case.function)
    for _ in range(times - 1):
        program = xb.vjp(program)
    compare(program, case.given)


def compare(program: xb.Computation, given: Mapping[int, Any]) -> None:
    chance, shapes = np.random.default_rng(0), [p.shape for p in program.parameters]
    arguments = [
        np.asarray(given[n]).astype(shape.dtype.dtype) if n in given else drawn(chance, shape)
        for n, shape in enumerate(shapes)
    ]
    cotangents = [drawn(chance, shape) for shape in leaves_of(program.root.shape) if is_smooth(shape)]
    found = iter(evaluate(xb.vjp(program), *arguments, *cotangents))
    gradients = [next(found) if is_smooth(shape) else None for shape in shapes]
    for _ in range(DIRECTIONS):
        direction = [drawn(chance, shape) if is_smooth(shape) else None for shape in shapes]
        before, after = (results(program, moved(arguments, direction, step)) for step in (-STEP, STEP))
        slopes = [slope(a, b) for a, b in zip(before, after, strict=True)]
        wanted = [np.sum(t * dy).real for t, dy in zip(cotangents, slopes, strict=True)]
        got = [np.sum(g * v).real for g, v in zip(gradients, direction, strict=True) if g is not None]
        size = sum(np.sum(np.abs(t * dy)) for t, dy in zip(cotangents, slopes, strict=True)) + 1
        np.testing.assert_allclose(sum(got), sum(wanted), rtol=0, atol=TOLERANCE * size)


def check_tangents(case: Case) -> None:
    """For any cotangent t and tangent v is Re <t, J v> = Re <J^T t, v>, to the last digits."""
    program = xb.computation(*case.shapes)(case.function)
    chance = np.random.default_rng(0)
    arguments = [
        np.asarray(case.given[n]).astype(shape.dtype.dtype) if n in case.given else drawn(chance, shape)
        for n, shape in enumerate(case.shapes)
    ]
    cotangents = [drawn(chance, shape) for shape in leaves_of(program.root.shape) if is_smooth(shape)]
    tangents = [drawn(chance, shape) for shape in case.shapes if is_smooth(shape)]
    slopes = evaluate(xb.jvp(program), *arguments, *tangents)
    gradients = evaluate(xb.vjp(program), *arguments, *cotangents)
    terms = [np.sum(t * dy).real for t, dy in zip(cotangents, slopes, strict=True)]
    others = [np.sum(g * v).real for g, v in zip(gradients, tangents, strict=True)]
    size = sum(np.sum(np.abs(t * dy)) for t, dy in zip(cotangents, slopes, strict=True)) + 1
    np.testing.assert_allclose(sum(terms), sum(others), rtol=0, atol=1e-11 * size)


def slope(before: Array, after: Array) -> Array:
    """How results move; what is infinite stays."""
    with np.errstate(invalid="ignore"):
        return np.where(before == after, 0, (after - before) / (2 * STEP))


def is_smooth(shape: Any) -> bool:
    return isinstance(shape, Shape) and shape.dtype.kind in ("float", "complex")


def leaves_of(shape: Any) -> list[Any]:
    if isinstance(shape, TupleShape):
        return [leaf for each in shape.elements for leaf in leaves_of(each)]
    return [shape]


def drawn(chance: np.random.Generator, shape: Shape) -> Array:
    """Numbers of a normal distribution; of another type than a float's small ones."""
    values: Array = chance.normal(size=shape.dims)
    if shape.dtype.kind == "complex":
        values = values + 1j * chance.normal(size=shape.dims)
    return np.asarray(values).astype(shape.dtype.dtype)


def moved(arguments: Sequence[Array], direction: Sequence[Array | None], step: float) -> list[Array]:
    return [x if v is None else x + step * v for x, v in zip(arguments, direction, strict=True)]


def results(program: Any, arguments: Sequence[Array]) -> list[Array]:
    """The smooth leaves of the result."""
    found = flat(evaluate(program, *arguments))
    return [leaf for leaf, shape in zip(found, leaves_of(program.root.shape), strict=True) if is_smooth(shape)]


def flat(result: Any) -> list[Array]:
    if isinstance(result, tuple):
        return [leaf for each in result for leaf in flat(each)]
    return [np.asarray(result)]
