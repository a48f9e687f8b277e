"""The facts of the devices of a program: found together, since they give each other what decides, or one by one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from ...core.graph import Module
from ...running import as_in_a_run
from ..model.program import Program
from ..structure.meetings import Identities
from .backward_slice import BackwardSlice
from .constant_propagation import Propagation
from .exchange import AgainError, Exchange, ExhaustedError
from .facts import Facts

MOST_AGAIN = 8  # walks that are begun again, since a device brought more than one thing


def propagated(
    program: Program, identity: Identities, needed: Mapping[Module, BackwardSlice], devices: Sequence[int]
) -> Mapping[int, Facts]:
    """The facts of these devices, found together: each collective that they all come to may be known.

    Where that takes too long they are found one by one; those of a device for which that takes too long are none.
    """
    banned: frozenset[Hashable] = frozenset()
    while len(devices) > 1 and len(banned) < MOST_AGAIN:
        try:
            return _walked(Exchange(program, identity, banned), needed, devices)
        except AgainError as again:
            banned |= {again.key}
        except ExhaustedError:
            break
    found: dict[int, Facts] = {}
    for device in devices:
        try:
            found |= _walked(Exchange(program, identity, None), needed, (device,))
        except ExhaustedError:
            found[device] = Facts()
    return found


def _walked(exchange: Exchange, needed: Mapping[Module, BackwardSlice], devices: Sequence[int]) -> Mapping[int, Facts]:
    modules = {device: exchange.program.class_of[device].module for device in devices}
    walks = {device: Propagation(exchange, needed[module], device) for device, module in modules.items()}
    with as_in_a_run():
        exchange.run({device: each.walk() for device, each in walks.items()})
    return {device: each.facts for device, each in walks.items()}
