"""The cost of running a chain of small ops and a loop of scalars, against hand-written NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xbuild as xb
from interpreter import evaluate

UFUNCS = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "subtract": np.subtract}
CHAIN = 200
TRIPS = 100_000


def chain(names: list[str]) -> xb.Computation:
    builder = xb.Builder("chain")
    x, y = (xb.parameter(builder, number=n, shape=xb.f32[8]) for n in range(2))
    for name in names:
        x = getattr(xb.ops, name)(x, y)
    return builder.build(x)


def by_hand(names: list[str]) -> Callable[[Any, Any], Any]:
    """The same calls, one per line, as written by hand."""
    lines = "".join(f"    x = {name}(x, y)\n" for name in names)
    space: dict[str, Any] = dict(UFUNCS)
    exec(f"def chain(x, y):\n{lines}    return x\n", space)
    return space["chain"]


def test_chain_of_200_ops(side_by_side: Any) -> None:
    names = (list(UFUNCS) * CHAIN)[:CHAIN]
    x, y = np.linspace(0, 1, 8, dtype=np.float32), np.linspace(0.9, 1.0, 8, dtype=np.float32)
    ours, reference = chain(names), by_hand(names)
    np.testing.assert_array_equal(evaluate(ours, x, y), reference(x, y))
    side_by_side("run an op on f32[8], of a chain of 200", lambda: evaluate(ours, x, y), lambda: reference(x, y),
                 units=CHAIN, rounds=50)  # fmt: skip


def scalar_loop() -> xb.Computation:
    @xb.computation(xb.s32[()], xb.f32[()])
    def loop(n: xb.Value, x: xb.Value) -> xb.Value:
        def body(state: xb.Value) -> tuple[xb.Value, ...]:
            i, limit, value = state
            return i + 1, limit, value * 0.5 + 1.0

        start = xb.constant(n.builder, literal=np.int32(0))
        condition = lambda state: xb.lt(*list(state)[:2])  # noqa: E731
        return xb.get_tuple_element(xb.while_(xb.tuple_(start, n, x), condition=condition, body=body), index=2)

    return loop


def loop_by_hand(n: np.int32, x: np.float32) -> np.float32:
    i, one, half, single = np.int32(0), np.int32(1), np.float32(0.5), np.float32(1.0)
    while i < n:
        i, x = i + one, x * half + single
    return x


def test_loop_of_100k_scalar_trips(side_by_side: Any) -> None:
    n, x, loop = np.int32(TRIPS), np.float32(3.0), scalar_loop()
    assert evaluate(loop, n, x) == loop_by_hand(n, x)
    side_by_side("a trip of a scalar loop, of 100,000", lambda: evaluate(loop, n, x), lambda: loop_by_hand(n, x),
                 units=TRIPS, rounds=7)  # fmt: skip
