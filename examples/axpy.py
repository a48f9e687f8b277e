"""The smallest program: a * x + y."""

from __future__ import annotations

import xbuild as xb


@xb.computation(xb.f32[()], xb.f32[4], xb.f32[4])
def axpy(a: xb.Value, x: xb.Value, y: xb.Value) -> xb.Value:
    return a * x + y


if __name__ == "__main__":
    print(axpy)
    print(xb.evaluate(axpy, 2.0, [1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]))
