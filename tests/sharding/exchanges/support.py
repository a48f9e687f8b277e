"""A function of arrays on a mesh: cut as stated, equal to the global run, ok by the check, and what it sends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xbuild as xb
from xbuild.sharding.partition import Partitioned, partition
from xbuild.sharding.stated_shardings import annotated

from ..cases import difference

Function = Callable[..., Any]


def numbers(*dims: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    """Small whole numbers, so that sums are exact in any order."""
    return np.random.default_rng(seed).integers(-9, 10, dims).astype(dtype)


def line(count: int) -> xb.Mesh:
    """A mesh of one axis x."""
    return xb.Mesh(x=count)


def computation_of(function: Function, arrays: Sequence[Any]) -> xb.Computation:
    shapes = [xb.Shape(np.asarray(each).dtype, np.shape(each)) for each in arrays]
    return xb.computation(*shapes)(function)


def checked(
    function: Function, arrays: Sequence[Any], specs: Sequence[Any], mesh: xb.Mesh, out: Any = None
) -> Partitioned:
    """The function's partitioned program, after its results are compared with those of the global one.

    `specs` cut the arguments, `out` the result; by default the result is cut as the first argument.
    """
    computation = computation_of(function, arrays)
    shardings: dict[str | int, Any] = dict(enumerate(specs))
    if isinstance(computation.root.shape, xb.Shape):
        shardings[computation.root.name] = specs[0] if out is None else out
    found = partition(annotated(xb.Module("program", computation), shardings, mesh=mesh), mesh=mesh)
    verdict = xb.check(found.module)
    assert verdict.kind == "ok", verdict
    told = difference(xb.evaluate(computation, *arrays), found.run(*arrays, padding=77))
    assert told is None, told
    return found


def opcodes(found: Partitioned) -> set[str]:
    return {each.opcode for each in found.communications}


def sent(found: Partitioned) -> int:
    """The bytes that a device sends."""
    return sum(each.bytes for each in found.communications)
