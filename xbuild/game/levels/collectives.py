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

    A collective completes when every device of its group has reached it.
    """
    return group(*[lambda x: [total(x, "sum", 1, BOTH)]] * 2)


@level(3)
def two_sums() -> ModuleGroup:
    """Two sums.

    The two sums do not depend on each other, so each device may start either of them first.
    """
    return group(*[lambda x: [total(x, "sum_a", 1, BOTH), total(x, "sum_b", 2, BOTH)]] * 2)


@level(4)
def two_sums_of_one_program() -> Module:
    """Two sums of one program.

    The sums are those of level 3, but both devices run one program in one order: the sum that one device starts first,
    the other device starts first, too.
    """
    return one_program(lambda x: [total(x, "sum_a", 1, BOTH), total(x, "sum_b", 2, BOTH)], 2)


@level(5)
def three_devices() -> ModuleGroup:
    """Two sums of three devices.

    One device with a different order is enough for a hang.
    """
    return group(*[lambda x: [total(x, "sum_a", 1, ALL), total(x, "sum_b", 2, ALL)]] * 3)


@level(8)
def groups_that_overlap() -> ModuleGroup:
    """Groups that overlap.

    Each sum is over two neighbours, and each device belongs to two of the groups.
    """
    pairs = (0, 1), (1, 2), (2, 0)

    def of(x: Value, number: int) -> Value:
        """The sum over a pair of devices; the third device is a group of its own."""
        return total(x, f"sum_{number}", 1 + number, pairs[number], [each for each in ALL if each not in pairs[number]])

    def body(first: int, second: int) -> Body:
        return lambda x: [of(x, first), of(x, second)]

    return group(body(0, 2), body(0, 1), body(1, 2))


@level(6)
def a_chain_of_sums() -> ModuleGroup:
    """A chain of sums.

    Device 0 needs the result of sum_a for sum_b; device 1 does not.
    """
    return group(
        lambda x: [total(total(x, "sum_a", 1, BOTH), "sum_b", 2, BOTH)],
        lambda x: [total(x, "sum_a", 1, BOTH), total(x, "sum_b", 2, BOTH)],
    )


@level(16)
def a_sum_and_a_send() -> ModuleGroup:
    """A sum and a send.

    The same two devices wait for each other in a sum and in a transfer.
    """
    return group(
        lambda x: [total(x, "sum", 1, BOTH), sent(x, 0, 1, 2)],
        lambda x: [total(x, "sum", 1, BOTH), *received(x, 0, 1, 2)],
    )


@level(7)
def crossed_chains() -> ModuleGroup:
    """Crossed chains.

    Each device needs the result of one sum for the other sum: device 0 starts with sum_a, device 1 with sum_b.
    """
    return group(
        lambda x: [total(total(x, "sum_a", 1, BOTH), "sum_b", 2, BOTH)],
        lambda x: [total(total(x, "sum_b", 2, BOTH), "sum_a", 1, BOTH)],
    )
