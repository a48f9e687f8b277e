"""Ragged dots of random dimension numbers against JAX, which expands them into dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate

Sizes = list[int]


def shuffled(draw: np.random.Generator, **roles: Sizes) -> tuple[Sizes, dict[str, Sizes]]:
    """The extents of an operand whose dimensions stand in any order, and for each role where they stand."""
    names = [(role, number) for role, sizes in roles.items() for number in range(len(sizes))]
    order = [names[n] for n in draw.permutation(len(names))]
    extents = [roles[role][number] for role, number in order]
    return extents, {role: [order.index((role, n)) for n in range(len(sizes))] for role, sizes in roles.items()}


def instance(seed: int) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """Dimension numbers of one of the three modes, and operands of small integers."""
    draw = np.random.default_rng(seed)
    some = lambda least, most: draw.integers(1, 4, draw.integers(least, most)).tolist()  # noqa: E731
    mode = ("m", "k", "b")[seed % 3]
    b, k, m, n = some(mode == "b", 3), some(1, 3), some(1, 3), some(0, 3)
    groups = int(draw.integers(1, 4))
    lhs, left = shuffled(draw, b=b, k=k, m=m)
    rhs, right = shuffled(draw, b=b, k=k, n=n, g=[groups] if mode == "m" else [])
    ragged = int(draw.choice(left[mode]))
    before = {
        "b": left["b"][: left["b"].index(ragged) if mode == "b" else 0],
        "k": left["b"] + left["k"][: left["k"].index(ragged) if mode == "k" else 0],
        "m": left["b"] + sorted(dim for dim in left["m"] if dim < ragged),
    }[mode]
    sizes = (groups,) if draw.random() < 0.5 else (*(lhs[dim] for dim in before), groups)
    numbers = {
        "lhs_batch_dims": left["b"], "lhs_contracting_dims": left["k"], "rhs_batch_dims": right["b"],
        "rhs_contracting_dims": right["k"], "lhs_ragged_dims": [ragged], "rhs_group_dims": right["g"],
    }  # fmt: skip
    arrays = (draw.integers(-3, 4, extents).astype(np.float32) for extents in (lhs, rhs))
    return numbers, (*arrays, draw.integers(0, 4, sizes).astype(np.int32))


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(18))
def test_jax_gives_the_same(seed: int) -> None:
    lax = pytest.importorskip("jax").lax
    numbers, arrays = instance(seed)
    contracting = (numbers["lhs_contracting_dims"], numbers["rhs_contracting_dims"])
    batch = (numbers["lhs_batch_dims"], numbers["rhs_batch_dims"])
    of = lax.RaggedDotDimensionNumbers((contracting, batch), numbers["lhs_ragged_dims"], numbers["rhs_group_dims"])
    wanted = np.asarray(lax.ragged_dot_general(*arrays, of))
    shapes = [xb.primitive_type(array.dtype)[array.shape] for array in arrays]
    found = evaluate(xb.computation(*shapes)(lambda x, y, g: xb.ops.ragged_dot(x, y, g, **numbers)), *arrays)
    np.testing.assert_array_equal(found, wanted)
