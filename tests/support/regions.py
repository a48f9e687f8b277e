"""Computations of scalars that are no known op, for the cases of the ops that apply one."""

from __future__ import annotations

import numpy as np

import xbuild as xb


def counted(current: xb.Value, update: xb.Value) -> xb.Value:
    """Adds one at a time in a loop: what it does with each element of an array is its own affair."""
    return xb.ops.while_(xb.ops.tuple_([current, update]), condition=_is_more, body=_one_more)[0]


def _is_more(state: xb.Value) -> xb.Value:
    return xb.ops.compare(state[1], xb.constant(state.builder, np.int32(0)), direction="GT")


def _one_more(state: xb.Value) -> tuple[xb.Value, xb.Value]:
    one = xb.constant(state.builder, np.int32(1))
    return xb.ops.add(state[0], one), xb.ops.subtract(state[1], one)
