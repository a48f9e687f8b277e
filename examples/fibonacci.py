"""Fibonacci numbers by While: the state is a tuple of the count and the last two numbers."""

from __future__ import annotations

import xbuild as xb


def _next(state: xb.Value) -> list[xb.Value]:
    count, a, b = state
    return [count - 1, b, a + b]


@xb.computation(xb.s32[()])
def fibonacci(n: xb.Value) -> xb.Value:
    zero, one = xb.constant(n.builder, 0, xb.u64), xb.constant(n.builder, 1, xb.u64)
    return xb.while_([n, zero, one], condition=lambda state: state[0] > 0, body=_next)[1]


if __name__ == "__main__":
    print([int(xb.evaluate(fibonacci, n)) for n in (0, 1, 2, 10, 50, 93)])
