"""What must hold of the reasons of a partitioned program, read against the program that devices run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from shape_inference import Shape
from xbuild.core.graph import Instruction
from xbuild.properties.effects import communicates_itself
from xbuild.sharding.partition import Communication, Partitioned
from xbuild.sharding.partition.frame import local_dims
from xbuild.sharding.partition.reasons import Neighbours, Operand, Partial, Reason, Result
from xbuild.sharding.sharding import count, groups_along

MOVED = ("slice", "pad", "reverse", "reduce_window", "convolution", "dynamic_slice", "dynamic_update_slice")
"""Ops whose operands on a device have neighbours' elements, or padding, around what the reason names."""


def faults(found: Partitioned) -> Iterator[str]:
    """What a reason says and the program of a device does not show."""
    local = {each.name: each for comp in found.module.computations for each in comp.instructions}
    yield from _listed(found, local)
    for each in found.communications:
        for what in _of(found, each, local):
            yield f"{each.name}: {what}: {each.reason}"


def _listed(found: Partitioned, local: dict[str, Instruction]) -> Iterator[str]:
    """Each inserted collective has a reason, and each reason a collective."""
    given = {each.name for comp in found.whole.computations for each in comp.instructions if communicates_itself(each)}
    made = {name for name, each in local.items() if communicates_itself(each)} - given
    listed = {each.name for each in found.communications}
    if made - listed:
        yield f"no reason of {sorted(made - listed)}"


def _of(found: Partitioned, each: Communication, local: dict[str, Instruction]) -> Iterator[str]:
    why, collective = each.why, local.get(each.name)
    if collective is None:
        return
    if not isinstance(why, Reason):
        yield "a reason that is a text alone"
        return
    if collective.opcode != each.opcode:
        yield f"it is a {collective.opcode}"
    groups = getattr(collective.attributes, "replica_groups", None)
    if groups is not None and set(map(frozenset, groups)) != set(map(frozenset, groups_along(found.mesh, each.axes))):
        yield f"its groups {groups} are not those of {each.axes}"
    if each.had is not None and each.needed is not None:
        yield from _shaped(each, collective)
    if isinstance(why, Partial):
        yield from _partial(each, why, local)
    if isinstance(why, Operand | Result):
        yield from _chosen(each, why, local)
    if isinstance(why, Neighbours):
        yield from _neighbours(why, collective)


def _shaped(each: Communication, collective: Instruction) -> Iterator[str]:
    """A collective has as many elements as some way between the two shardings can have."""
    shape = collective.operands[0].shape
    assert isinstance(shape, Shape)
    assert each.had is not None
    assert each.needed is not None
    if each.had == each.needed:
        yield "it leaves the sharding as it is"
    lost = {*each.had.cut_axes, *each.had.unreduced} ^ {*each.needed.cut_axes, *each.needed.unreduced}
    moved = {axis.name for axis in lost} | {axis.name for axis in _placed(each)}
    if not {axis.name for axis in each.axes} <= moved:
        yield f"it goes over {each.axes}, which stay as they are"


def _placed(each: Communication) -> Iterator[Any]:
    """The axes that cut another dimension before than after."""
    assert each.had is not None
    assert each.needed is not None
    for old, new in zip(each.had.dims, each.needed.dims, strict=True):
        if old.axes != new.axes:
            yield from (*old.axes, *new.axes)


def _partial(each: Communication, why: Partial, local: dict[str, Instruction]) -> Iterator[str]:
    """The factors that are named are reduced, and cut on all sides; those who want the result take it so."""
    cut = list(why.factors())
    axes = {axis for factor in cut for axis in factor.axes}
    if each.opcode in ("all_reduce", "reduce_scatter") and not {a.name for a in each.axes} <= {a.name for a in axes}:
        yield f"no reduced factor is cut over {each.axes}"
    done = local.get(why.user.name)
    for factor in cut:
        for value, dim in factor.places:
            given = why.user.operands.index(value)
            if done is not None and done.opcode == why.user.opcode and done.opcode not in MOVED:
                have, whole = _extent(done.operands[given], dim), _extent(value, dim)
                if have != -(-whole // math.prod(axis.size for axis in _along(why, given, dim))):
                    yield f"a device has {have} of {whole} along dimension {dim} of {value.name}"
    yield from _takers(each, why, local)


def _along(why: Partial, number: int, dim: int) -> list[Any]:
    return [axis for factor in why.rule.operands[number][dim] for axis in why.assignment[factor]]


def _extent(value: Instruction, dim: int) -> int:
    return value.shape.dims[dim]  # type: ignore[union-attr]


def _takers(each: Communication, why: Partial, local: dict[str, Instruction]) -> Iterator[str]:
    for reason, sharding in why.uses:
        if isinstance(reason, Operand) and sharding == each.needed:
            yield from _taken(reason, sharding, local)


def _taken(reason: Operand, sharding: Any, local: dict[str, Instruction]) -> Iterator[str]:
    """The user has an operand of the extents that its sharding gives."""
    done, shape = local.get(reason.user.name), reason.operand.shape
    if done is None or done.opcode != reason.user.opcode or done.opcode in MOVED or not isinstance(shape, Shape):
        return
    if _is_changed(reason.user):
        return
    have, wanted = done.operands[reason.number].shape, local_dims(sharding, shape.dims)
    if have.dims != wanted:  # type: ignore[union-attr]
        yield f"{reason.user.name} takes {have}, and {wanted} is said"


def _is_changed(op: Instruction) -> bool:
    """Whether the partitioner records other operands than parts: starts and indices of other types."""
    return op.opcode in ("gather", "scatter")


def _chosen(each: Communication, why: Operand | Result, local: dict[str, Instruction]) -> Iterator[str]:
    if isinstance(why, Operand):
        assert each.needed is not None
        yield from _taken(why, each.needed, local)
        given = each.had
        dims = why.chosen.rule.operands[why.number]
    else:
        given = each.needed
        dims = why.chosen.rule.results[why.number] if why.chosen is not None else ()
    if why.chosen is None or given is None:
        return
    other = why.other(each.move)
    if other is not None and other.bytes < other.chosen:
        yield f"the other way sends {other.bytes}, and the chosen one {other.chosen}"
    if len(dims) != len(given.dims):
        yield "the rule has other dimensions"
    if isinstance(why, Operand) and each.opcode in ("all_gather", "all_to_all") and not why.obstacles(each.move):
        yield "no obstacle is told"
    sizes = [why.chosen.rule.factors[n].size for n in range(len(why.chosen.rule.factors))]
    if any(count(axes) > max(1, size) * 8 for axes, size in zip(why.chosen.assignment, sizes, strict=True)):
        yield "a factor is cut into more parts than it has elements"


def _neighbours(why: Neighbours, collective: Instruction) -> Iterator[str]:
    """The permute sends as many elements, along as many places, as the reason says."""
    if _extent(collective.operands[0], why.dim) != why.permute.size:
        yield f"it sends {_extent(collective.operands[0], why.dim)} elements"
    groups = groups_along(why.mesh, why.axes)
    pairs = {(group[part], group[place]) for group in groups for part, place in why.pairs()}
    if {tuple(pair) for pair in collective.attributes.source_target_pairs} != pairs:
        yield f"its pairs are {collective.attributes.source_target_pairs}"


__all__ = ["faults"]
