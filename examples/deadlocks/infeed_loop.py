"""A loop on two replicas that sum the items of their infeeds; one replica gets fewer items than the other."""

from __future__ import annotations

import numpy as np

import xbuild as xb

ITEM = xb.TupleShape((xb.pred[()], xb.f32[2]))


def _read(state: xb.Value) -> list[xb.Value]:
    _, total, token = state
    (goes_on, x), token = xb.infeed(token, shape=ITEM, name="batch")
    return [goes_on, total + xb.all_reduce(x, xb.add, name="sum"), token]


def program() -> xb.Module:
    builder = xb.Builder("infeed_loop")
    start = [
        xb.constant(builder, True),
        xb.constant(builder, np.zeros(2, np.float32)),
        xb.after_all(builder=builder),
    ]
    final = xb.while_(start, condition=lambda state: state[0], body=_read)
    return xb.Module("infeed_loop", builder.build(final[1]), num_replicas=2)


def main() -> str:
    """The report of a run in which replica 0 gets two items and replica 1 only one."""
    items = [(True, [1.0, 2.0]), (False, [10.0, 20.0])]
    try:
        xb.execute(program(), [[], []], infeed=[items, items[:1]])
    except xb.Stopped as stopped:
        return str(stopped)
    return "it ran"


if __name__ == "__main__":
    print(xb.check(program()))
    print(main())
