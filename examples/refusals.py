"""Three errors raised at the call; each names the conflict, every operand, the user's line and a fix."""

from __future__ import annotations

from collections.abc import Callable

import xbuild as xb

builder = xb.Builder("attention")
queries = xb.parameter(builder, number=0, shape=xb.f32[2, 3], name="queries")
keys = xb.parameter(builder, number=1, shape=xb.f32[5, 4], name="keys")
bias = xb.parameter(builder, number=2, shape=xb.f32[3], name="bias")


def scores() -> xb.Value:
    return xb.dot(queries, keys)


def shifted() -> xb.Value:
    return queries + bias


def halved() -> xb.Value:
    return xb.while_(queries, condition=lambda q: q > 1.0, body=lambda q: q / 2.0)


def refusals() -> list[str]:
    """The messages of the three errors."""
    found = []
    steps: list[Callable[[], xb.Value]] = [scores, shifted, halved]
    for step in steps:
        try:
            step()
        except xb.ShapeError as error:
            found.append(str(error))
    return found


if __name__ == "__main__":
    print("\n\n".join(refusals()))
