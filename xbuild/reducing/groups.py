"""Reduction of one program for each device: each program in turn, beside the others as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from time import monotonic
from typing import TypeAlias

from ..core.graph import Module, ModuleGroup
from ..process.limits import DeadlineError, within
from .conditions import read_condition

Holds: TypeAlias = Callable[[ModuleGroup], object]
Shrink: TypeAlias = Callable[[Module, Callable[[Module], object], float], tuple[Module, int, str]]
"""Reduces a program while a condition holds, for some seconds: the program, the number of tries, why it stopped."""

_MOST_IN_PAIRS = 16
"""The most devices of which all pairs are tried."""


def condition_of_group(condition: str, group: ModuleGroup, seconds: float) -> Holds:
    """A condition in words as a function of the programs of all devices, with what it finds for the given ones.

    Raises ValueError for a condition of a single program.
    """
    read = read_condition(condition)
    if not read.takes_groups:
        raise ValueError(f"minimize: the condition {condition!r} takes one program for all devices")
    with within(seconds):
        given = read.judge([group], (), seconds)

    def holds(group: ModuleGroup) -> bool:
        try:
            with within(seconds):
                found = read.judge([group], (), seconds)
        except DeadlineError:
            return False
        return found.holds and found.signature == given.signature

    return holds


def reduce_group(group: ModuleGroup, holds: Holds, shrink: Shrink, seconds: float) -> tuple[ModuleGroup, int, str]:
    """The smallest programs for which a condition holds, the number of tries, and why the search stopped early.

    Devices are removed, the rest numbered anew; devices with one program keep one program.
    """
    end, tries, stopped = monotonic() + seconds, 0, ""
    while not stopped:
        before = group
        for smaller in _without_devices(group):
            tries += 1
            if _is_held(holds, smaller):
                group = smaller
                break
        else:
            for module in dict.fromkeys(group.modules.values()):
                found, more, stopped = shrink(module, _beside(group, module, holds), end - monotonic())
                tries += more
                if found.to_hlo() != module.to_hlo():
                    group = _with(group, module, found)
                if stopped:
                    break
        if group is before:
            break
    return group, tries, stopped


def _is_held(holds: Holds, group: ModuleGroup) -> bool:
    try:
        return bool(holds(group))
    except Exception:  # it held for the given programs without an error, so the smaller ones are at fault
        return False


def _without_devices(group: ModuleGroup) -> Iterator[ModuleGroup]:
    """The programs without half of the devices, then without one, and of few devices without two that may be peers."""
    devices, half = [*group.modules], group.num_devices // 2
    removed = [{*devices[half:]}, {*devices[:half]}, *({each} for each in devices)]
    if len(devices) <= _MOST_IN_PAIRS:
        removed += [{*pair} for pair in combinations(devices, 2)]
    for each in removed:
        if 0 < len(each) < len(devices):
            yield ModuleGroup([module for device, module in group.modules.items() if device not in each])


def _beside(group: ModuleGroup, module: Module, holds: Holds) -> Callable[[Module], object]:
    return lambda found: holds(_with(group, module, found))


def _with(group: ModuleGroup, module: Module, found: Module) -> ModuleGroup:
    """The programs with another one in the place of one, on all devices that run it."""
    return ModuleGroup({device: found if each is module else each for device, each in group.modules.items()})
