"""Constant propagation of several devices: together, since collectives carry values between them, or one by one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from ...core.graph import Module
from ...running import as_in_a_run
from ..model.program import Program
from ..structure.collective_matching import CollectiveIdentities
from .backward_slice import BackwardSlice
from .constant_propagation import Propagation
from .exchange import Exchange, ExhaustedError, RepeatedArrivalError
from .facts import Facts

MOST_RESTARTS = 8  # restarts, each after a RepeatedArrivalError


def propagate_constants(
    program: Program, identity: CollectiveIdentities, needed: Mapping[Module, BackwardSlice], devices: Sequence[int]
) -> Mapping[int, Facts]:
    """The facts of these devices, propagated together, so that results of collectives may be known.

    Where that takes too long the devices are analysed one by one; a device for which that takes too long has no facts.
    """
    banned: frozenset[Hashable] = frozenset()
    while len(devices) > 1 and len(banned) < MOST_RESTARTS:
        try:
            return _walked(Exchange(program, identity, banned), needed, devices)
        except RepeatedArrivalError as again:
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
