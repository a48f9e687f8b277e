"""Draws of tuples, tokens and barriers."""

from __future__ import annotations

from typing import Any

import xbuild as xb
from shape_inference import PrimitiveType, token

from ..chance import Chance
from ..instance import Instance
from .draw import Draw


def several(chance: Chance, dtype: PrimitiveType) -> tuple[Any, ...]:
    """One to four arrays, one of them of this type."""
    types = [dtype, *(chance.type() for _ in range(chance.between(0, 3)))]
    return tuple(chance.values(each, chance.dims()) for each in chance.shuffled(types))


def tuple_(chance: Chance, dtype: PrimitiveType) -> Instance:
    return Instance("tuple", dtype, (several(chance, dtype),))


def get_tuple_element(chance: Chance, dtype: PrimitiveType) -> Instance:
    arrays = several(chance, dtype)
    index = next(n for n, array in enumerate(arrays) if array.dtype == dtype.dtype)
    return Instance("get_tuple_element", dtype, (arrays,), {"index": index})


def opt_barrier(chance: Chance, dtype: PrimitiveType) -> Instance:
    operand = several(chance, dtype) if chance.odds(0.5) else chance.values(dtype, chance.dims())
    return Instance("opt_barrier", dtype, (operand,))


def domain(chance: Chance, dtype: PrimitiveType) -> Instance:
    attributes = {"entry": "{replicated}", "exit": "{maximal device=0}"}
    return Instance("domain", dtype, (chance.values(dtype, chance.dims()),), attributes)


def after_all(chance: Chance, dtype: PrimitiveType) -> Instance:
    """Tokens that go through a barrier beside an array, which is what comes back."""

    def record(builder: xb.Builder, value: xb.Value) -> xb.Value:
        tokens = [xb.ops.after_all((), builder=builder) for _ in range(chance.between(0, 3))]
        last = xb.ops.after_all(tokens, builder=builder)
        assert last.shape == token
        return xb.ops.get_tuple_element(xb.ops.opt_barrier(xb.tuple_([last, value])), index=1)

    return Instance("after_all", dtype, (chance.values(dtype, chance.dims()),), record=record)


def add_dependency(chance: Chance, dtype: PrimitiveType) -> Instance:
    def record(builder: xb.Builder, value: xb.Value) -> xb.Value:
        return xb.ops.add_dependency(value, xb.ops.after_all((), builder=builder))

    return Instance("add_dependency", dtype, (chance.values(dtype, chance.dims()),), record=record)


DRAWS: dict[str, Draw] = {
    "add_dependency": add_dependency,
    "after_all": after_all,
    "domain": domain,
    "get_tuple_element": get_tuple_element,
    "opt_barrier": opt_barrier,
    "tuple": tuple_,
}
