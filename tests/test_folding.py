"""What is known before a run is what the run gives: counters, truths, vectors, and what loops make of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate
from xbuild.scheduling.constants import Constants
from xbuild.scheduling.folding import LONGEST, Vector, known

TYPES = (np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64)
BINARY = ("add", "subtract", "multiply", "minimum", "maximum", "and_", "or_", "xor", "divide", "remainder")
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


class Draw:
    """Ops on small values of one type and on truths, of rank 0 and 1."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.builder = xb.Builder("drawn")
        self.dtype = TYPES[self.rng.integers(len(TYPES))]
        self.extent = int(self.rng.integers(1, 5))

    def computation(self) -> xb.Computation:
        pool = [self.constant(()), self.constant(()), self.constant((self.extent,)), self.iota()]
        for _ in range(12):
            pool.append(self.step(pool))
        return self.builder.build(xb.ops.tuple_(pool))

    def constant(self, dims: tuple[int, ...]) -> Any:
        limits = np.iinfo(self.dtype)
        ends = np.array([limits.min, limits.max, 0, 1, 2, 5], self.dtype)
        return xb.ops.constant(self.builder, literal=self.rng.choice(ends, dims))

    def iota(self) -> Any:
        return xb.ops.iota(self.builder, shape=self.constant((self.extent,)).shape, iota_dimension=0)

    def one_of(self, pool: list[Any], rank: int, kind: str | None = None) -> Any:
        fit = [v for v in pool if v.shape.rank == rank and (v.shape.dtype.kind == "pred") == (kind == "pred")]
        fit = [v for v in fit if not rank or v.shape.dims == (self.extent,)]
        return fit[self.rng.integers(len(fit))] if fit else None

    def step(self, pool: list[Any]) -> Any:
        rank = int(self.rng.integers(2))
        a, b, scalar = self.one_of(pool, rank), self.one_of(pool, rank), self.one_of(pool, 0)
        truth, vector = self.one_of(pool, rank, "pred"), self.one_of(pool, 1)
        words = [
            "binary",
            "binary",
            "compare",
            "negate",
            "not",
            "clamp",
            "convert",
            "slice",
            "broadcast",
            "scan",
            "loop",
        ]
        word = str(self.rng.choice(words))
        if word == "binary":
            return getattr(xb.ops, str(self.rng.choice(BINARY)))(a, b)
        if word == "compare":
            return xb.ops.compare(a, b, direction=str(self.rng.choice(DIRECTIONS)))
        if word == "clamp":
            return xb.ops.clamp(scalar, a, self.one_of(pool, 0))
        if word == "convert" and truth is not None:
            return xb.ops.convert(truth, new_element_type=a.shape.dtype)
        if word == "not" and truth is not None:
            return xb.ops.select(xb.ops.not_(truth), a, b)
        if word == "slice":
            return self.taken(vector, scalar)
        if word == "broadcast":
            return xb.ops.broadcast(scalar, sizes=(self.extent,), dimensions=())
        if word == "scan":
            return self.scanned(vector, scalar)
        if word == "loop":
            return self.looped(vector, scalar)
        return xb.ops.negate(a)

    def taken(self, vector: Any, scalar: Any) -> Any:
        some = xb.ops.dynamic_slice(vector, (scalar,), dynamic_slice_sizes=(1,))
        last = xb.ops.slice(
            xb.ops.reverse(vector, dimensions=(0,)), start_indices=(0,), limit_indices=(1,), strides=(1,)
        )
        return xb.ops.reshape(xb.ops.add(some, last), new_sizes=())

    def scanned(self, vector: Any, scalar: Any) -> Any:
        backwards = bool(self.rng.integers(2))

        def body(each: Any, carry: Any) -> Any:
            return xb.ops.tuple_([xb.ops.subtract(each, carry), xb.ops.add(xb.ops.multiply(each, carry), each)])

        found = xb.ops.scan((vector, scalar), dimension=0, num_carries=1, is_reverse=backwards, to_apply=body)
        return xb.ops.get_tuple_element(found, index=int(self.rng.integers(2)))

    def looped(self, vector: Any, scalar: Any) -> Any:
        """A table that a counter looks up."""
        state = xb.ops.tuple_([xb.ops.constant(self.builder, literal=np.int32(0)), vector, scalar])

        def body(state: Any) -> Any:
            trip, table, total = (xb.ops.get_tuple_element(state, index=n) for n in range(3))
            one = xb.ops.constant(trip.builder, literal=np.int32(1))
            found = xb.ops.dynamic_slice(table, (trip,), dynamic_slice_sizes=(1,))
            return xb.ops.tuple_([xb.ops.add(trip, one), table, xb.ops.add(total, xb.ops.reshape(found, new_sizes=()))])

        def condition(state: Any) -> Any:
            trip = xb.ops.get_tuple_element(state, index=0)
            return xb.ops.compare(trip, xb.ops.constant(trip.builder, literal=np.int32(self.extent)), direction="LT")

        return xb.ops.get_tuple_element(xb.ops.while_(state, condition=condition, body=body), index=2)


def reading(computation: xb.Computation) -> Any:
    with np.errstate(all="ignore"):
        return Constants(known, 0, 1).run(computation, [])


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_what_is_known_is_what_a_run_gives(first: int) -> None:
    count = 0
    for seed in range(first, first + 50):
        computation = Draw(seed).computation()
        for leaf, value in zip(reading(computation), evaluate(computation), strict=True):
            if leaf is not None:
                elements = leaf.elements if isinstance(leaf, Vector) else leaf
                assert np.asarray(elements).dtype == np.asarray(value).dtype
                np.testing.assert_array_equal(elements, value, err_msg=f"seed {seed}")
                count += 1
    assert count > 600


def test_only_small_vectors_are_looked_at() -> None:
    builder = xb.Builder("long")
    sizes = (LONGEST, LONGEST + 1)
    vectors = [xb.ops.iota(builder, shape=xb.s32[size], iota_dimension=0) for size in sizes]
    short, long = reading(builder.build(xb.ops.tuple_(vectors)))
    assert len(short.elements) == LONGEST
    assert long is None
