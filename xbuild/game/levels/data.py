"""Levels in which loops, branches or the host decide who waits."""

from __future__ import annotations

from collections.abc import Sequence

import xbuild as xb

from ...core.builder import Value
from ...core.graph import Module, ModuleGroup
from ..shipped import Body, group, level, one_program, total

BOTH = (0, 1)


def _loop(x: Value, trips: int) -> Value:
    """x, summed over both devices once in each trip of a loop."""
    state = xb.tuple_(xb.constant(x.builder, 0, xb.s32), x)
    found = xb.while_(
        state,
        condition=lambda s: s[0] < trips,
        body=lambda s: xb.tuple_(s[0] + 1, total(s[1], "sum_in_loop", 1, BOTH)),
        name=f"loop_of_{trips}",
    )
    return found[1]


@level(21)
def unequal_loops() -> ModuleGroup:
    """Unequal loops.

    Device 0 sums twice, and device 1 three times. Who takes part in the third sum?
    """
    return group(lambda x: [_loop(x, 2)], lambda x: [_loop(x, 3)])


@level(22)
def one_device_skips() -> Module:
    """One device skips.

    Both devices run one program. The sum is in a branch that only replica 0 takes.
    """

    def body(x: Value) -> Sequence[Value]:
        is_first = xb.eq(xb.replica_id(x.builder), xb.constant(x.builder, 0, xb.u32))
        return [xb.conditional(is_first, x, lambda v: total(v, "sum", 1, BOTH), x, lambda v: v, name="if_first")]

    return one_program(body, 2)


def _if_positive(x: Value) -> Value:
    is_positive = xb.gt(xb.reduce(x, 0.0, xb.add, dimensions=[0]), xb.constant(x.builder, 0.0, xb.f32))
    return xb.conditional(is_positive, x, lambda v: total(v, "sum", 1, BOTH), x, lambda v: v, name="if_positive")


@level(23)
def the_data_decide() -> Module:
    """The data decide.

    Each device takes part in the sum if the total of its own values is positive. Choose the data, then move.
    """
    return one_program(lambda x: [_if_positive(x)], 2)


@level(24)
def asked_together() -> Module:
    """Decided together.

    The program is that of level 23, but a sum over both devices decides, so both take the same branch.
    """

    def body(x: Value) -> Sequence[Value]:
        return [_if_positive(total(x, "ask", 2, BOTH))]

    return one_program(body, 2)


def _fed(trips: int) -> Body:
    def body(x: Value) -> Sequence[Value]:
        token: Value | None = None
        for number in range(trips):
            token = token if token is not None else xb.create_token(x.builder)
            item, token = xb.infeed(token, shape=xb.f32[2], name=f"item_{number}")
            x = x + item
        return [total(x, "sum", 1, BOTH)]

    return body


@level(25, infeed={0: 2, 1: 1})
def a_short_infeed() -> ModuleGroup:
    """A short infeed.

    Each device takes two items of its infeed before the sum. The host has two items for device 0 and one for device 1.
    """
    return group(_fed(2), _fed(2))
