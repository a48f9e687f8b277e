"""A loop that the infeed controls: each item is (continue, x), and the outfeed receives the running sum."""

from __future__ import annotations

from typing import Any

import numpy as np

import xbuild as xb

ITEM = xb.TupleShape((xb.pred[()], xb.f32[2]))


def _read(state: xb.Value) -> list[xb.Value]:
    _, total, token = state
    (goes_on, x), token = xb.infeed(token, shape=ITEM)
    total = total + x
    return [goes_on, total, xb.outfeed(total, token)]


def program() -> xb.Module:
    builder = xb.Builder("infeed_loop")
    start = [
        xb.constant(builder, True),
        xb.constant(builder, np.zeros(2, np.float32)),
        xb.after_all(builder=builder),
    ]
    final = xb.while_(start, condition=lambda state: state[0], body=_read)
    return xb.Module("infeed_loop", builder.build(final[1]))


def main() -> tuple[Any, list[Any]]:
    """The sum of three items, and the running sums that the outfeed received."""
    items = [(True, [1.0, 2.0]), (True, [10.0, 20.0]), (False, [100.0, 200.0])]
    seen: list[Any] = []
    results = xb.execute(program(), [[]], infeed=[items], outfeed=lambda device, item: seen.append(item))
    return results[0], seen


if __name__ == "__main__":
    print(xb.check(program()))
    print(*main())
