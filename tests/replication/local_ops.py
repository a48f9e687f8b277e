"""What a device computes by itself in random programs, for each kind of value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xbuild as xb
from tests.replication.drawing import Drawing, Pool, constant

Make = Callable[[Drawing, Pool], None]
ELEMENTWISE = (xb.ops.add, xb.ops.subtract, xb.ops.multiply, xb.ops.maximum, xb.ops.minimum)


def entered(function: Callable[[Drawing, Pool], xb.Value]) -> Make:
    return lambda drawing, pool: pool.add(function(drawing, pool))


def _two(kind: str) -> Make:
    def make(drawing: Drawing, pool: Pool) -> xb.Value:
        return drawing.local.choice(ELEMENTWISE)(pool.pick(drawing, kind), pool.pick(drawing, kind))

    return entered(make)


def _constant(kind: str) -> Make:
    return entered(lambda drawing, pool: constant(pool.builder, kind, drawing.local))


@entered
def _id(drawing: Drawing, pool: Pool) -> xb.Value:
    op = drawing.local.choice((xb.ops.replica_id, xb.ops.partition_id))
    return xb.ops.convert(op(pool.builder), new_element_type=xb.s32)


@entered
def _of_id(drawing: Drawing, pool: Pool) -> xb.Value:
    """A coordinate on a mesh: the remainder or the quotient of a number."""
    op = drawing.local.choice((xb.ops.remainder, xb.ops.divide))
    return op(pool.pick(drawing, "i"), pool.number(drawing.local.randrange(2, 4)))


@entered
def _from_table(drawing: Drawing, pool: Pool) -> xb.Value:
    table = [drawing.local.randrange(3) for _ in range(6)]
    rows = xb.ops.constant(pool.builder, literal=np.array(table, np.int32))
    part = xb.ops.dynamic_slice(rows, [pool.pick(drawing, "i")], dynamic_slice_sizes=[1])
    return xb.ops.reshape(part, new_sizes=[])


@entered
def _element(drawing: Drawing, pool: Pool) -> xb.Value:
    part = xb.ops.dynamic_slice(pool.pick(drawing, "v"), [pool.pick(drawing, "i")], dynamic_slice_sizes=[1])
    return xb.ops.reshape(part, new_sizes=[])


@entered
def _total(drawing: Drawing, pool: Pool) -> xb.Value:
    op = drawing.local.choice((xb.ops.add, xb.ops.maximum))
    return xb.ops.reduce([pool.pick(drawing, "v")], [pool.number(0)], dimensions=[0], to_apply=op)


@entered
def _compared(drawing: Drawing, pool: Pool) -> xb.Value:
    direction: Any = drawing.local.choice(("LT", "EQ", "GE", "NE"))
    return xb.ops.compare(pool.pick(drawing, "i"), pool.pick(drawing, "i"), direction=direction)


@entered
def _joined(drawing: Drawing, pool: Pool) -> xb.Value:
    op = drawing.local.choice((xb.ops.and_, xb.ops.or_, xb.ops.xor))
    return op(pool.pick(drawing, "b"), pool.pick(drawing, "b"))


@entered
def _spread(drawing: Drawing, pool: Pool) -> xb.Value:
    return xb.ops.broadcast(pool.pick(drawing, "i"), sizes=[4], dimensions=[])


@entered
def _moved(drawing: Drawing, pool: Pool) -> xb.Value:
    v = pool.pick(drawing, "v")
    ways: list[Callable[[], Any]] = [
        lambda: xb.ops.reverse(v, dimensions=[0]),
        lambda: xb.ops.copy(v),
        lambda: xb.ops.opt_barrier(v),
        lambda: xb.ops.iota(pool.builder, shape=xb.s32[4], iota_dimension=0),
        lambda: xb.ops.dynamic_update_slice(v, xb.ops.slice(v, start_indices=[1], limit_indices=[2], strides=[1]),
                                            [pool.pick(drawing, "i")]),
        lambda: xb.ops.convert(pool.pick(drawing, "f"), new_element_type=xb.s32),
    ]  # fmt: skip
    return drawing.local.choice(ways)()  # type: ignore[no-any-return]


@entered
def _chosen(drawing: Drawing, pool: Pool) -> xb.Value:
    holds = xb.ops.broadcast(pool.pick(drawing, "b"), sizes=[4], dimensions=[])
    return xb.ops.select(holds, pool.pick(drawing, "v"), pool.pick(drawing, "v"))


@entered
def _converted(drawing: Drawing, pool: Pool) -> xb.Value:
    """Thirds of integers, whose sums are rounded."""
    third = xb.ops.constant(pool.builder, literal=np.full(4, 1 / 3, np.float32))
    return xb.ops.multiply(xb.ops.convert(pool.pick(drawing, "v"), new_element_type=xb.f32), third)


@entered
def _drawn(drawing: Drawing, pool: Pool) -> xb.Value:
    zero, one = (xb.ops.constant(pool.builder, literal=np.float32(n)) for n in (0, 4))
    return xb.ops.rng(zero, one, shape=xb.f32[4], distribution="rng_uniform")


@entered
def _generated(drawing: Drawing, pool: Pool) -> xb.Value:
    """Random bits of a state that may be equal: equal ones."""
    v = xb.ops.convert(pool.pick(drawing, "v"), new_element_type=xb.u64)
    state = xb.ops.slice(v, start_indices=[0], limit_indices=[2], strides=[1])
    made = xb.ops.rng_bit_generator(state, algorithm="rng_three_fry", shape=xb.u32[4])
    bits = xb.ops.get_tuple_element(made, index=1)
    four = xb.ops.constant(pool.builder, literal=np.full(4, 4, np.uint32))
    return xb.ops.convert(xb.ops.remainder(bits, four), new_element_type=xb.s32)


@entered
def _sorted(drawing: Drawing, pool: Pool) -> xb.Value:
    def less(a: Any, b: Any, c: Any, d: Any) -> Any:
        return xb.ops.compare(a, b, direction="LT")

    keys, values = pool.pick(drawing, "v"), pool.pick(drawing, "v")
    found = xb.ops.sort([keys, values], dimension=0, to_apply=less, is_stable=True)
    return xb.ops.get_tuple_element(found, index=drawing.local.randrange(2))


LOCAL: dict[str, tuple[Make, ...]] = {
    "i": (_two("i"), _two("i"), _constant("i"), _id, _id, _of_id, _of_id, _from_table, _element, _total),
    "b": (_compared, _compared, _joined),
    "v": (_two("v"), _two("v"), _constant("v"), _spread, _moved, _moved, _chosen, _generated, _sorted),
    "f": (_two("f"), _converted, _converted, _drawn),
}
