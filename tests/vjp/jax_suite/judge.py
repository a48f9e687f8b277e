"""Whether the derivative of a function here is that of jax.vjp: in f64, of random cotangents, to 1e-9."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import xbuild as xb
from interpreter import evaluate

from .entry import Array, Entry

TOLERANCE = 1e-9  # of the largest element of each cotangent
_QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")


def judged(entry: Entry, times: int = 1) -> tuple[str, set[str]]:
    """`equal`, or what is different, or why there is no derivative, in words; and the opcodes of the function.

    Where `times` is 2, the cotangents of the program of cotangents are compared.
    """
    arguments = entry.values()
    cotangents, theirs = of_jax(entry, arguments, times)
    module = program(entry, arguments)
    opcodes = {each.opcode for called in module.computations for each in called.instructions}
    try:
        for _ in range(times):
            module = xb.vjp(module)
    except xb.XbuildError as error:
        return f"refused: {str(error).splitlines()[0]}", opcodes
    given = [*jax.tree.leaves(arguments), *cotangents]
    found = [np.asarray(each) for each in evaluate(module.entry, *given)]
    return compared(found, theirs), opcodes


def program(entry: Entry, arguments: list[Any]) -> xb.Module:
    """The function as JAX lowers it, or as it is recorded here."""
    if entry.here is None:
        return xb.from_jax(lambda *each: entry.function(*each), *arguments)
    shapes = [xb.Shape(each.dtype, each.shape) for each in arguments]
    return xb.Module("here", xb.computation(*shapes)(entry.here))


def of_jax(entry: Entry, arguments: list[Any], times: int = 1) -> tuple[list[Array], list[Array]]:
    """Cotangents of the leaves of the result, and what jax.vjp makes of them for those of the arguments."""
    chance = np.random.default_rng(1)
    function, values = flat(entry, arguments)
    count = len(values)
    for _ in range(times):
        cotangents = [drawn(chance, each) for each in jax.eval_shape(function, *values)]
        function, values = pulled(function, len(values)), [*values, *cotangents]
    compiled = jax.jit(function).lower(*values).compile(compiler_options=_QUICK)
    return values[count:], [np.asarray(each) for each in compiled(*values)]


def flat(entry: Entry, arguments: list[Any]) -> tuple[Callable[..., list[Any]], list[Any]]:
    """The function from the float and complex leaves of its arguments to those of its result; and these leaves."""
    leaves, form = jax.tree.flatten(arguments)
    smooth = [n for n, leaf in enumerate(leaves) if np.asarray(leaf).dtype.kind in "fc"]

    def function(*values: Any) -> list[Any]:
        whole = [*leaves]
        for n, value in zip(smooth, values, strict=True):
            whole[n] = value
        result = jax.tree.leaves(entry.function(*jax.tree.unflatten(form, whole)))
        return [leaf for leaf in result if jax.numpy.issubdtype(leaf.dtype, jax.numpy.inexact)]

    return function, [np.asarray(leaves[n]) for n in smooth]


def pulled(function: Callable[..., list[Any]], count: int) -> Callable[..., list[Any]]:
    """The function of its arguments and of cotangents of its results that gives those of its arguments."""
    return lambda *values: [*jax.vjp(function, *values[:count])[1]([*values[count:]])]


def drawn(chance: np.random.Generator, leaf: Any) -> Array:
    values: Array = chance.normal(size=leaf.shape)
    if leaf.dtype.kind == "c":
        values = values + 1j * chance.normal(size=leaf.shape)
    return np.asarray(values, leaf.dtype)


def compared(ours: list[Array], theirs: list[Array]) -> str:
    if len(ours) != len(theirs):
        return f"different: {len(ours)} cotangents, and {len(theirs)} of JAX"
    for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"different: cotangent {number} is {a.dtype}{a.shape}, and {b.dtype}{b.shape} of JAX"
        apart = distance(a, b)
        if not apart <= TOLERANCE:
            return f"different: cotangent {number} by {apart:.3g} of its largest element: {shown(a)}, JAX {shown(b)}"
    return "equal"


def distance(a: Array, b: Array) -> float:
    """The largest difference, of the largest finite element; infinite numbers and NaNs are equal to themselves."""
    if not b.size:
        return 0.0
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.abs(b[np.isfinite(b)]).max(initial=0)
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0, np.abs(a - b))
    return float(np.max(gap) / (finite or 1.0)) if np.max(gap) else 0.0


def shown(values: Array) -> str:
    return np.array2string(values.reshape(-1)[:6], precision=4, separator=", ")
