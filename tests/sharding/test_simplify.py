"""Simplifications of collectives: each where it is right, none where it is not, and the same values after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from interpreter import execute

shard = xb.shard
GRID = shard.grid([2, 2])


def reduced(x: Any, axes: Any = (0,), kind: str = "sum") -> Any:
    return shard.all_reduce(x, mesh=GRID, grid_axes=axes, reduction=kind)


def sliced(x: Any, axes: Any = (0,), dim: int = 0) -> Any:
    return shard.all_slice(x, mesh=GRID, grid_axes=axes, slice_axis=dim)


def gathered(x: Any, axes: Any = (0,), dim: int = 0) -> Any:
    return shard.all_gather(x, mesh=GRID, grid_axes=axes, gather_axis=dim)


def ones(x: Any) -> Any:
    return xb.broadcast(xb.constant(x.builder, np.float32(3)), (4, 2))


def twice(x: Any) -> Any:
    total = reduced(x)
    return xb.tuple_([xb.add(total, reduced(xb.negate(x))), total])


# A program of one array f32[8,8], and the collectives that are left of it.
PROGRAMS: list[tuple[str, Callable[[Any], Any], list[str]]] = [
    ("sums", lambda x: xb.add(reduced(x), reduced(xb.negate(x))), ["all_reduce"]),
    ("maxima", lambda x: xb.maximum(reduced(x, kind="max"), reduced(xb.negate(x), kind="max")), ["all_reduce"]),
    ("sum of maxima", lambda x: xb.add(reduced(x, kind="max"), reduced(-x, kind="max")), ["all_reduce"] * 2),
    ("sums of other groups", lambda x: xb.add(reduced(x), reduced(-x, (1,))), ["all_reduce"] * 2),
    ("a sum that is used again", twice, ["all_reduce"] * 2),
    ("reduce-scatter", lambda x: sliced(reduced(x)), ["reduce_scatter"]),
    ("reduce-scatter in another order", lambda x: sliced(reduced(x, (0, 1)), (1, 0)), ["reduce_scatter"]),
    ("slice along another axis", lambda x: sliced(reduced(x), (1,)), ["all_reduce"]),
    ("slice of a gather", lambda x: sliced(gathered(x)), []),
    ("slice of a gather, several axes", lambda x: sliced(gathered(x, (1, 0), 1), (1, 0), 1), []),
    ("slice of a gather, other order", lambda x: sliced(gathered(x, (0, 1)), (1, 0)), ["all_gather"]),
    ("slice of a gather, other dimension", lambda x: sliced(gathered(x), dim=1), ["all_gather"]),
    ("gather of a slice of what may differ", lambda x: gathered(sliced(x)), ["all_gather"]),
    ("gather of a slice of equal values", lambda x: gathered(sliced(reduced(x))), ["all_reduce"]),
    ("gather of a constant", lambda x: xb.add(gathered(ones(x))[:2], ones(x)[:2]), []),
    ("equal collectives", lambda x: xb.multiply(reduced(x), xb.tanh(reduced(x))), ["all_reduce"]),
    ("no axes", lambda x: reduced(gathered(x, ()), ()), []),
]


def _program(make: Callable[[Any], Any], shape: Any) -> xb.Module:
    return xb.Module("m", xb.computation(shape)(make), num_partitions=4)


def _collectives(module: xb.Module) -> list[str]:
    return [each.opcode for each in module.entry.instructions if "all_" in each.opcode or "scatter" in each.opcode]


def _same(before: xb.Module, after: xb.Module, given: Any) -> None:
    assert xb.check(after).kind == "ok"
    for one, other in zip(*(execute(each, [[row] for row in given]) for each in (before, after)), strict=True):
        for left, right in zip(*(each if isinstance(each, tuple) else (each,) for each in (one, other)), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(("name", "make", "left"), PROGRAMS, ids=[each[0] for each in PROGRAMS])
def test_what_is_left(name: str, make: Callable[[Any], Any], left: list[str]) -> None:
    before = _program(make, xb.f32[8, 8])
    after = shard.simplify(before)
    if name == "gather of a slice of equal values":  # the slice of the sum becomes a reduce-scatter of it, or goes
        assert len(_collectives(after)) <= 2
    else:
        assert _collectives(after) == left
    _same(before, after, np.random.default_rng(0).normal(size=(4, 8, 8)).astype(np.float32))
    assert shard.simplify(after) is after


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("rsg"), st.permutations([0, 1]), st.integers(0, 2)), max_size=5))
def test_random_chains_keep_their_values(steps: list[tuple[str, list[int], int]]) -> None:
    functions = {"r": reduced, "s": sliced, "g": gathered}

    def program(x: Any) -> Any:
        for letter, axes, count in steps:
            if letter != "s" or x.shape.dims[0] % 4 == 0:
                x = functions[letter](x, tuple(axes[:count]))
        return x

    before = _program(program, xb.s32[8])
    after = shard.simplify(before)
    assert len(_collectives(after)) <= len(_collectives(before))
    _same(before, after, np.random.default_rng(1).integers(-9, 9, size=(4, 8)).astype(np.int32))
