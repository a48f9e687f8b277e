"""Levels in which one control edge prevents every hang."""

from __future__ import annotations

from collections.abc import Sequence

import xbuild as xb

from ...core.builder import Value
from ...core.graph import ModuleGroup
from ..shipped import Body, group, level, received, sent, total

BOTH = (0, 1)


@level(26, is_repair=True)
def repair_two_sums() -> ModuleGroup:
    """Repair: two sums.

    Device 0 starts sum_a, then sum_b. Device 1 may start either first. Make the program hang; then find an edge that
    prevents every hang.
    """
    return group(
        lambda x: [total(total(x, "sum_a", 1, BOTH), "sum_b", 2, BOTH)],
        lambda x: [total(x, "sum_a", 1, BOTH), total(x, "sum_b", 2, BOTH)],
    )


@level(27, is_repair=True)
def repair_the_swap() -> ModuleGroup:
    """Repair: the swap.

    Two devices swap values, and each reads the value that it received only after its send. One edge on one device is
    enough.
    """

    def body(device: int) -> Body:
        other = 1 - device

        def swap(x: Value) -> Sequence[Value]:
            pairs, token = [(other, device)], xb.create_token(x.builder)
            posted = xb.recv(
                token, shape=x.shape, channel_id=1 + other, source_target_pairs=pairs, name=f"recv_from_{other}"
            )
            begun = sent(x, device, other, 1 + device)
            with xb.control(after=[begun]):
                return [*xb.recv_done(posted, channel_id=1 + other, name=f"recv_done_from_{other}")]

        return swap

    return group(body(0), body(1))


@level(28, is_repair=True)
def repair_the_sum_and_the_send() -> ModuleGroup:
    """Repair: a sum and a send.

    Device 0 sends, then sums. Which order on device 1 prevents every hang?
    """

    def first(x: Value) -> Sequence[Value]:
        token = sent(x, 0, 1, 2)
        with xb.control(after=[token]):
            return [total(x, "sum", 1, BOTH)]

    return group(first, lambda x: [total(x, "sum", 1, BOTH), *received(x, 0, 1, 2)])
