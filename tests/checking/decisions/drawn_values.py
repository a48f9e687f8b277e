"""Random computations on small arrays, of which some are parameters that nobody knows."""

from __future__ import annotations

from typing import Any

import numpy as np

import xbuild as xb

TYPES = (np.int8, np.uint8, np.int32, np.uint32, np.int64, np.float32, np.float64)
BINARY = ("add", "subtract", "multiply", "minimum", "maximum", "divide", "remainder", "power")
BITWISE = ("and_", "or_", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical")
UNARY = ("negate", "abs", "sign")
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


class Draw:
    """Ops of every kind on small arrays of one type, of which some are parameters that nobody knows."""

    def __init__(self, seed: int, parameters: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.builder = xb.Builder("drawn")
        self.dtype = TYPES[self.rng.integers(len(TYPES))]
        self.is_float = np.issubdtype(self.dtype, np.floating)
        self.extent = int(self.rng.integers(1, 5))
        self.given = parameters

    def computation(self) -> xb.Computation:
        shape = self.constant(()).shape
        known = [self.constant(()), self.constant(()), self.constant((self.extent,)), self.iota()]
        shapes = [shape, self.constant((self.extent,)).shape][: self.given]
        pool = [*known, *(xb.parameter(self.builder, number=n, shape=each) for n, each in enumerate(shapes))]
        for _ in range(14):
            pool.append(self.step(pool))
        return self.builder.build(xb.ops.tuple_(pool[4:]))

    def arguments(self) -> list[Any]:
        return [np.asarray(self.some(dims)).astype(self.dtype) for dims in [(), (self.extent,)][: self.given]]

    def some(self, dims: tuple[int, ...]) -> Any:
        if self.is_float:
            return self.rng.choice([0.0, -0.0, 1.0, -2.5, np.nan, np.inf, 1e-40, 3.0], dims)
        limits = np.iinfo(self.dtype)
        return self.rng.choice(np.array([limits.min, limits.max, 0, 1, 2, 3, 5], self.dtype), dims)

    def constant(self, dims: tuple[int, ...]) -> Any:
        return xb.ops.constant(self.builder, literal=np.asarray(self.some(dims)).astype(self.dtype))

    def iota(self) -> Any:
        return xb.ops.iota(self.builder, shape=self.constant((self.extent,)).shape, iota_dimension=0)

    def one_of(self, pool: list[Any], rank: int, kind: str | None = None) -> Any:
        fit = [v for v in pool if v.shape.rank == rank and (v.shape.dtype.kind == "pred") == (kind == "pred")]
        fit = [v for v in fit if not rank or v.shape.dims == (self.extent,)]
        return fit[self.rng.integers(len(fit))] if fit else None

    def step(self, pool: list[Any]) -> Any:
        rng, rank = self.rng, int(self.rng.integers(2))
        a, b, scalar = self.one_of(pool, rank), self.one_of(pool, rank), self.one_of(pool, 0)
        truth, one, vector = self.one_of(pool, rank, "pred"), self.one_of(pool, 0, "pred"), self.one_of(pool, 1)
        word = str(rng.choice([*STEPS]))
        if word in ("select", "truth") and truth is None:
            word = "compare"
        if word == "branch" and one is None:
            word = "compare"
        if word == "unary" and not np.issubdtype(self.dtype, np.signedinteger):
            word = "compare"
        if word in ("table", "loop", "bits", "scan", "until") and self.is_float:  # an infinity is never small
            word = "binary"
        return STEPS[word](self, a, b, scalar, truth, one, vector)

    def loop(self, vector: Any, scalar: Any) -> Any:
        """A table that a counter looks up."""
        state = xb.ops.tuple_([xb.ops.constant(self.builder, literal=np.int32(0)), vector, scalar])

        def body(state: Any) -> Any:
            trip, table, total = (xb.ops.get_tuple_element(state, index=n) for n in range(3))
            found = xb.ops.dynamic_slice(table, (trip,), dynamic_slice_sizes=(1,))
            total = xb.ops.add(total, xb.ops.reshape(found, new_sizes=()))
            return xb.ops.tuple_([trip + np.int32(1), table, total])

        def condition(state: Any) -> Any:
            return xb.ops.get_tuple_element(state, index=0) < np.int32(self.extent)

        return xb.ops.get_tuple_element(xb.ops.while_(state, condition=condition, body=body), index=2)

    def until(self, scalar: Any, other: Any) -> Any:
        """A loop whose trips only the run may tell: it halves until it is small, and keeps what is either of two."""
        state = xb.ops.tuple_([scalar, other, scalar])

        def body(state: Any) -> Any:
            left, kept, other = (xb.ops.get_tuple_element(state, index=n) for n in range(3))
            return xb.ops.tuple_(
                [xb.ops.divide(left, xb.ops.constant(left.builder, literal=self.dtype(3))), other, kept]
            )

        def condition(state: Any) -> Any:
            left = xb.ops.get_tuple_element(state, index=0)
            return xb.ops.compare(left, xb.ops.constant(left.builder, literal=self.dtype(1)), direction="GT")

        found = xb.ops.while_(state, condition=condition, body=body)
        return xb.ops.get_tuple_element(found, index=int(self.rng.integers(3)))

    def scanned(self, vector: Any, scalar: Any) -> Any:
        def body(each: Any, carry: Any) -> Any:
            return xb.ops.tuple_([xb.ops.subtract(each, carry), xb.ops.add(xb.ops.multiply(each, carry), each)])

        backwards = bool(self.rng.integers(2))
        found = xb.ops.scan((vector, scalar), dimension=0, num_carries=1, is_reverse=backwards, to_apply=body)
        return xb.ops.get_tuple_element(found, index=int(self.rng.integers(2)))

    def reduced(self, vector: Any, scalar: Any) -> Any:
        name = str(self.rng.choice(["add", "maximum", "multiply"]))
        return xb.ops.reduce((vector,), (scalar,), dimensions=(0,), to_apply=getattr(xb.ops, name))

    def branch(self, pred: Any, a: Any, b: Any) -> Any:
        opcode = str(self.rng.choice(["add", "maximum"]))
        return xb.ops.conditional(
            pred, (a, a), branch_computations=(lambda x: getattr(xb.ops, opcode)(x, x), lambda x: xb.ops.negate(x))
        )

    def masked(self, a: Any) -> Any:
        bits = xb.ops.constant(self.builder, literal=self.dtype(self.rng.choice([1, 2, 3, 5])))
        return xb.ops.and_(a, bits if not a.shape.dims else xb.ops.broadcast(bits, sizes=a.shape.dims, dimensions=()))

    def taken(self, vector: Any, scalar: Any) -> Any:
        return xb.ops.reshape(xb.ops.dynamic_slice(vector, (scalar,), dynamic_slice_sizes=(1,)), new_sizes=())


STEPS: dict[str, Any] = {
    "binary": lambda d, a, b, *_: getattr(xb.ops, str(d.rng.choice(BINARY)))(a, b),
    "bits": lambda d, a, b, *_: getattr(xb.ops, str(d.rng.choice(BITWISE)))(a, b),
    "mask": lambda d, a, *_: d.masked(a) if not d.is_float else xb.ops.floor(a),
    "unary": lambda d, a, *_: getattr(xb.ops, str(d.rng.choice(UNARY)))(a),
    "compare": lambda d, a, b, *_: xb.ops.compare(a, b, direction=str(d.rng.choice(DIRECTIONS))),
    "itself": lambda d, a, *_: xb.ops.compare(a, a, direction=str(d.rng.choice(DIRECTIONS))),
    "clamp": lambda d, a, b, scalar, *_: xb.ops.clamp(scalar, a, d.constant(())),
    "select": lambda d, a, b, scalar, truth, *_: xb.ops.select(truth, a, b),
    "truth": lambda d, a, b, scalar, truth, *_: xb.ops.convert(truth, new_element_type=a.shape.dtype),
    "table": lambda d, a, b, scalar, truth, one, vector: d.taken(vector, scalar),
    "loop": lambda d, a, b, scalar, truth, one, vector: d.loop(vector, scalar),
    "scan": lambda d, a, b, scalar, truth, one, vector: d.scanned(vector, scalar),
    "until": lambda d, a, b, scalar, *_: d.until(scalar, d.constant(())),
    "reduce": lambda d, a, b, scalar, truth, one, vector: d.reduced(vector, scalar),
    "branch": lambda d, a, b, scalar, truth, one, vector: d.branch(one, a, b),
    "concatenate": lambda d, a, b, scalar, truth, one, vector: xb.ops.slice(
        xb.ops.concatenate((vector, xb.ops.reverse(vector, dimensions=(0,))), dimension=0),
        start_indices=(d.extent - 1,), limit_indices=(2 * d.extent - 1,), strides=(1,),
    ),
}  # fmt: skip
