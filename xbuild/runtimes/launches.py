"""Launches: the programs that a host has in flight, on each device in an order of its own, as one group of modules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import TypeAlias

from attrs import evolve

from shape_inference import refuse

from .. import ops
from ..core.builder import Builder, Value
from ..core.context import control, marked
from ..core.graph import Computation, Instruction, Module, ModuleGroup
from ..properties.rewriting import mapped
from ..properties.sites import reached

NamedLaunch: TypeAlias = tuple[str, Module]

LAUNCH = "xbuild_launch"
"""The attribute of a call that launches a program; its value names the launch."""


def in_flight(launches: Mapping[int, Sequence[Module | Computation]]) -> ModuleGroup:
    """Return the programs that a host has in flight, as one program for each device.

    `launches` lists for each device the programs that the host launches on it, in order. A device runs them one after
    the other. The n-th launches of a program, by its name, on several devices belong together. A channel id belongs to
    its launch: if several launches use one, all but the first get ids of their own. The parameters of a device are
    those of all its launches, and its result is a tuple of their results. Raises invalid_attribute if the programs
    state different numbers of replicas or partitions.

    >>> import xbuild as xb
    >>> def program(name):
    ...     total = xb.computation(xb.f32[2])(lambda x: xb.all_reduce(x, xb.add, name=name))
    ...     return xb.Module(name, total, num_replicas=2)
    >>> train, evaluate = program("train"), program("evaluate")
    >>> xb.check(xb.in_flight({0: [train, evaluate], 1: [train, evaluate]})).kind
    'ok'
    >>> xb.check(xb.in_flight({0: [train, evaluate], 1: [evaluate, train]})).kind
    'deadlock'

    Source: JAX, asynchronous dispatch: each device runs the programs in the order in which they are launched on it.
    """
    programs = {device: [_as_module(each) for each in listed] for device, listed in launches.items()}
    grids = {(each.num_replicas, each.num_partitions) for listed in programs.values() for each in listed} - {(1, 1)}
    if len(grids) > 1:
        stated = " and ".join(
            f"{replicas} replicas of {partitions} partitions" for replicas, partitions in sorted(grids)
        )
        refuse("invalid_attribute", f"in_flight: the programs state {stated}",
               "programs that are in flight together run on the same devices")  # fmt: skip
    grid = next(iter(grids), (1, 1))
    named = {device: _named(listed) for device, listed in programs.items()}
    apart = _with_own_channels([one for own in named.values() for one in own])
    known = {own: _sequence([(name, apart[name, each]) for name, each in own], *grid) for own in {*named.values()}}
    return ModuleGroup({device: known[own] for device, own in named.items()})


def _as_module(program: Module | Computation) -> Module:
    if isinstance(program, Computation):
        return Module(program.name, program)
    if not isinstance(program, Module):
        raise TypeError(f"in_flight: expected a Module or a Computation for each launch, got {program!r}")
    return program


def _named(programs: Sequence[Module]) -> tuple[NamedLaunch, ...]:
    """The launches of a device, each with its name: that of the program, and from the second one on its number."""
    counts, found = Counter[str](), list[NamedLaunch]()
    for each in programs:
        counts[each.name] += 1
        found.append((each.name if counts[each.name] == 1 else f"{each.name}_{counts[each.name]}", each))
    return tuple(found)


def _with_own_channels(launches: Sequence[NamedLaunch]) -> dict[NamedLaunch, Module]:
    """The program of each launch, in which no channel id is one of another launch."""
    owners: dict[int, str] = {}
    numbers: dict[tuple[str, int], int] = {}
    used = {launch: _channels(launch[1]) for launch in dict.fromkeys(launches)}
    free = count(1 + max((channel for channels in used.values() for channel in channels), default=0))
    for (name, _), channels in used.items():
        for channel in channels:
            if owners.setdefault(channel, name) != name and (name, channel) not in numbers:
                numbers[name, channel] = next(free)

    def renumbered(name: str, module: Module) -> Module:
        def change(instruction: Instruction) -> Instruction:
            number = numbers.get((name, getattr(instruction.attributes, "channel_id", None) or 0))
            attributes = instruction.attributes
            return (
                instruction if number is None else evolve(instruction, attributes=evolve(attributes, channel_id=number))
            )

        return mapped(module, change)

    return {launch: renumbered(*launch) if numbers else launch[1] for launch in used}


def _channels(module: Module) -> dict[int, None]:
    """The channel ids of a program, in order."""
    found = (getattr(i.attributes, "channel_id", None) for each in reached(module.entry) for i in each.instructions)
    return {channel: None for channel in found if channel}


def _sequence(launches: Sequence[NamedLaunch], num_replicas: int, num_partitions: int) -> Module:
    """One program that runs these one after the other."""
    builder, results, first = Builder("launches"), list[Value](), 0
    for name, program in launches:
        own = [
            ops.parameter(builder, number=first + number, shape=parameter.shape)
            for number, parameter in enumerate(program.entry.parameters)
        ]
        first += len(own)
        with marked(**{LAUNCH: name}), control(after=results[-1:]):
            results.append(ops.call(own, to_apply=program.entry, name=name, builder=builder))
    root = ops.tuple_(results, builder=builder)
    return Module(
        "launches", builder.build(root), num_replicas=num_replicas, num_partitions=num_partitions, is_scheduled=True
    )


def launch_of(path: Sequence[Instruction]) -> str:
    """The launch that a path of calls begins with; empty without one."""
    return str(path[0].annotations.get("frontend_attributes", {}).get(LAUNCH, "")) if path else ""
