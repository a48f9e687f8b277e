"""Draws of calls, loops, branches, maps and scans."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import evolve

import xbuild as xb
from shape_inference import PrimitiveType, pred

from ..chance import Chance
from ..instance import Instance
from .collectives import DEVICES, groups
from .draw import Draw
from .reduction import COMBINERS, combiner, neutral, summands

MEETING = ("add", "multiply"), ("and", "or")  # what XLA:CPU combines over devices of any other type, and of pred


def call(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims, word = chance.dims(), combiner(chance, dtype)
    operands = chance.values(dtype, dims), chance.values(dtype, dims)
    return Instance("call", dtype, (operands,), {"to_apply": COMBINERS[word]})


def map_(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims, word = chance.dims(), combiner(chance, dtype)
    operands = chance.values(dtype, dims), chance.values(dtype, dims)
    attributes = {"to_apply": COMBINERS[word], "dimensions": tuple(range(len(dims)))}
    return Instance("map", dtype, (operands,), attributes)


def while_(chance: Chance, dtype: PrimitiveType) -> Instance:
    """A loop that counts to a limit and turns an array round at each trip."""
    dims = chance.dims(rank=chance.between(1, 5))
    dimension = chance.between(0, len(dims) - 1)
    counter, limit = (np.asarray(chance.any(range(-2, 7)), np.int32) for _ in "cl")

    def condition(state: xb.Value) -> xb.Value:
        return xb.ops.compare(state[0], state[1], direction="LT")

    def body(state: xb.Value) -> Any:
        n, end, value = state
        return xb.tuple_([n + 1, end, xb.ops.reverse(value, dimensions=(dimension,))])

    state = (counter, limit, chance.values(dtype, dims))
    return Instance("while", dtype, (state,), {"condition": condition, "body": body})


def conditional(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = chance.dims()
    is_pred = chance.odds(0.4)
    branches = 2 if is_pred else chance.between(1, 4)
    index = (
        chance.values(pred) if is_pred else np.asarray(chance.any((-(2**31), -1, 0, 1, 2, 3, 4, 2**31 - 1)), np.int32)
    )
    computations = [_same, _twice, _same, _twice][:branches]
    operands = tuple(chance.values(dtype, dims) for _ in range(branches))
    return Instance("conditional", dtype, (index, operands), {"branch_computations": computations})


def _same(value: xb.Value) -> Any:
    return xb.tuple_([value, value])


def _twice(value: xb.Value) -> Any:
    return xb.tuple_([value, xb.ops.reverse(value, dimensions=range(value.shape.rank))])


def fusion(chance: Chance, dtype: PrimitiveType) -> Instance:
    """Of arrays that are not empty: what XLA:CPU folds inside of a fusion it then refuses."""
    drawn = call(chance, dtype)
    while not drawn.operands[0][0].size:
        drawn = call(chance, dtype)
    return evolve(drawn, opcode="fusion", attributes={"kind": "kLoop", "calls": drawn.attributes["to_apply"]})


def scan(chance: Chance, dtype: PrimitiveType) -> Instance:
    """The running combination along one dimension, and the last one."""
    dims, word = chance.dims(rank=chance.between(1, 4), least=1), combiner(chance, dtype)
    if dtype.is_native and word in MEETING[dtype.kind == "pred"] and chance.odds(0.3):
        return _meeting(chance, word, dtype, dims)
    dimension = chance.between(0, len(dims) - 1)
    operand, is_exact = summands(chance, word, dtype, dims)
    init = np.full([*dims[:dimension], *dims[dimension + 1 :]], neutral(word, dtype))

    def step(each: xb.Value, before: xb.Value) -> Any:
        after = COMBINERS[word](before, each)
        return xb.tuple_([after, after])

    attributes = {"dimension": dimension, "num_carries": 1, "is_reverse": chance.odds(0.5), "to_apply": step}
    return Instance("scan", dtype, ((operand, init),), attributes, is_exact)


def _meeting(chance: Chance, word: str, dtype: PrimitiveType, dims: tuple[int, ...]) -> Instance:
    """On several devices: what is carried goes round, and each trip gives what the devices have together."""
    dimension, chosen, order = chance.between(0, len(dims) - 1), groups(chance), chance.shuffled(range(DEVICES))
    operand, is_exact = summands(chance, word, dtype, (DEVICES, *dims))
    init = np.full([DEVICES, *dims[:dimension], *dims[dimension + 1 :]], neutral(word, dtype))
    pairs = [(source, order[(n + 1) % DEVICES]) for n, source in enumerate(order)]

    def step(each: xb.Value, before: xb.Value) -> Any:
        after = COMBINERS[word](xb.ops.collective_permute(before, source_target_pairs=pairs), each)
        return xb.tuple_([xb.ops.all_reduce(after, to_apply=COMBINERS[word], replica_groups=chosen), after])

    attributes = {"dimension": dimension, "num_carries": 1, "is_reverse": chance.odds(0.5), "to_apply": step}
    return Instance("scan", dtype, ((operand, init),), attributes, is_exact, num_replicas=DEVICES)


DRAWS: dict[str, Draw] = {
    "call": call,
    "conditional": conditional,
    "fusion": fusion,
    "map": map_,
    "scan": scan,
    "while": while_,
}
