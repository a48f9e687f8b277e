"""Levels of collectives."""

from __future__ import annotations

from ...core.builder import Value
from ...core.graph import Module, ModuleGroup
from ..shipped import Body, group, level, one_program, received, sent, total

BOTH = (0, 1)
ALL = (0, 1, 2)


@level(2)
def one_sum() -> ModuleGroup:
    """One sum.

    A collective goes on when every member of its group has come.
    """
    return group(*[lambda x: [total(x, "sum", 1, BOTH)]] * 2)


@level(3)
def two_sums() -> ModuleGroup:
    """Two sums.

    Two sums that do not depend on each other: each device may begin with either.
    """
    return group(*[lambda x: [total(x, "sum_a", 1, BOTH), total(x, "sum_b", 2, BOTH)]] * 2)


@level(4)
def two_sums_of_one_program() -> Module:
    """Two sums of one program.

    The same sums, but both devices run one program, in one order: what device 0 begins first, device 1 does, too.
    """
    return one_program(lambda x: [total(x, "sum_a", 1, BOTH), total(x, "sum_b", 2, BOTH)], 2)


@level(5)
def three_devices() -> ModuleGroup:
    """Two sums of three devices.

    It is enough that one device differs.
    """
    return group(*[lambda x: [total(x, "sum_a", 1, ALL), total(x, "sum_b", 2, ALL)]] * 3)


@level(8)
def groups_that_overlap() -> ModuleGroup:
    """Groups that overlap.

    Each sum is over two neighbours, and each device is in two of the groups.
    """
    pairs = (0, 1), (1, 2), (2, 0)

    def of(x: Value, number: int) -> Value:
        """The sum of a pair; the device outside of it is a group of its own."""
        return total(x, f"sum_{number}", 1 + number, pairs[number], [each for each in ALL if each not in pairs[number]])

    def body(first: int, second: int) -> Body:
        return lambda x: [of(x, first), of(x, second)]

    return group(body(0, 2), body(0, 1), body(1, 2))


@level(6)
def a_chain_of_sums() -> ModuleGroup:
    """A chain of sums.

    Device 0 needs the first sum for the second; device 1 does not.
    """
    return group(
        lambda x: [total(total(x, "sum_a", 1, BOTH), "sum_b", 2, BOTH)],
        lambda x: [total(x, "sum_a", 1, BOTH), total(x, "sum_b", 2, BOTH)],
    )


@level(16)
def a_sum_and_a_send() -> ModuleGroup:
    """A sum and a send.

    Two kinds of waiting on the same two devices.
    """
    return group(
        lambda x: [total(x, "sum", 1, BOTH), sent(x, 0, 1, 2)],
        lambda x: [total(x, "sum", 1, BOTH), *received(x, 0, 1, 2)],
    )


@level(7)
def crossed_chains() -> ModuleGroup:
    """Crossed chains.

    Both devices need one sum for the other, and not the same one.
    """
    return group(
        lambda x: [total(total(x, "sum_a", 1, BOTH), "sum_b", 2, BOTH)],
        lambda x: [total(total(x, "sum_b", 2, BOTH), "sum_a", 1, BOTH)],
    )
