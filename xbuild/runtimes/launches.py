"""Launches: the programs that a host has in flight, on each device in an order of its own, as one group of modules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from shape_inference import refuse

from .. import ops
from ..core.builder import Builder, Value
from ..core.context import control, marked
from ..core.graph import Computation, Instruction, Module, ModuleGroup

LAUNCH = "xbuild_launch"
"""The attribute of a call that launches a program; its value names the launch."""


def in_flight(launches: Mapping[int, Sequence[Module | Computation]]) -> ModuleGroup:
    """Return the programs that a host has in flight, as one program for each device.

    `launches` lists for each device the programs that the host launches on it, in order. A device runs them one after
    the other. The n-th launches of a program, by its name, on several devices belong together. The parameters of a
    device are those of all its launches, and its result is a tuple of their results. Raises invalid_attribute if the
    programs state different numbers of replicas or partitions.

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
    known: dict[tuple[Module, ...], Module] = {}
    for listed in programs.values():
        known.setdefault(tuple(listed), _sequence(listed, *grid))
    return ModuleGroup({device: known[tuple(listed)] for device, listed in programs.items()})


def _as_module(program: Module | Computation) -> Module:
    if isinstance(program, Computation):
        return Module(program.name, program)
    if not isinstance(program, Module):
        raise TypeError(f"in_flight: expected a Module or a Computation for each launch, got {program!r}")
    return program


def _sequence(programs: Sequence[Module], num_replicas: int, num_partitions: int) -> Module:
    """One program that runs these one after the other."""
    builder, results, counts = Builder("launches"), list[Value](), Counter[str]()
    for program in programs:
        first = sum(len(each.entry.parameters) for each in programs[: len(results)])
        own = [
            ops.parameter(builder, number=first + number, shape=parameter.shape)
            for number, parameter in enumerate(program.entry.parameters)
        ]
        counts[program.name] += 1
        name = program.name if counts[program.name] == 1 else f"{program.name}_{counts[program.name]}"
        with marked(**{LAUNCH: name}), control(after=results[-1:]):
            results.append(ops.call(own, to_apply=program.entry, name=name, builder=builder))
    root = ops.tuple_(results, builder=builder)
    return Module(
        "launches", builder.build(root), num_replicas=num_replicas, num_partitions=num_partitions, is_scheduled=True
    )


def launch_of(path: Sequence[Instruction]) -> str:
    """The launch that a path of calls begins with; empty without one."""
    return str(path[0].annotations.get("frontend_attributes", {}).get(LAUNCH, "")) if path else ""
