"""Matching of collectives across programs, and faults of their groups, shapes, kinds and reducers."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TypeAlias

from attrs import frozen

from shape_inference import compatible

from ...core.graph import Computation, Instruction, Module
from ...properties.device_groups import Groups, count_of_ids, named_lists, named_pairs, pairs_of, strategy
from ...properties.effects import COVERING, LOOPS, Path, base_of, collective_in, nest, remembered, spelling
from ...properties.sites import Site, collectives_of
from ..model.describe import absent_row, finding, groups_text, named, nest_finding, payload
from ..model.program import DeviceClass, Program, devices_text
from ..model.verdict import Finding
from .pairs import pair_faults

Runs: TypeAlias = Callable[[int, Site], bool]  # whether a device may reach a site


SIZED = ("all_gather", "all_to_all", "ragged_all_to_all", "reduce_scatter")


@frozen(eq=False)
class CollectiveIdentities:
    """The identity by which collectives of several devices match; it does not depend on timing.

    In one program for all devices it is the instruction and its call path; across programs a channel id that each
    program has once, else the names.
    """

    unique: Mapping[Module, frozenset[int]]
    spmd: bool

    def of(self, module: Module, site: Site) -> Hashable:
        if self.spmd:
            return site.key
        channel = channel_of(site.instruction)
        if channel in self.unique[module]:
            return channel
        return (*((step.instruction.name, step.role) for step in site.path), site.instruction.name)


def collective_identities(program: Program) -> CollectiveIdentities:
    modules = list(dict.fromkeys(each.module for each in program.classes))
    return CollectiveIdentities({} if program.spmd else {m: unique_channels(m) for m in modules}, program.spmd)


def unique_channels(module: Module) -> frozenset[int]:
    """The channel ids that name one collective of the module, or equal collectives in exclusive branches."""
    places: dict[int, dict[Instruction, list[Site]]] = {}
    for site in collectives_of(module.entry):
        channel = channel_of(site.instruction)
        if channel is not None:
            places.setdefault(channel, {}).setdefault(site.instruction, []).append(site)
    return frozenset(channel for channel, found in places.items() if len(found) == 1 or _is_one(found))


def _is_one(found: Mapping[Instruction, list[Site]]) -> bool:
    """Whether these collectives are equal, and stand in branches that exclude each other."""
    first, *rest = found
    if not all(_does_the_same(first, each) for each in rest):
        return False
    pairs = itertools.combinations(found.values(), 2)
    return all(_exclude(a.path, b.path) for mine, others in pairs for a in mine for b in others)


def _exclude(a: Path, b: Path) -> bool:
    """Whether two paths enter different branches of one conditional."""
    for here, there in zip(a, b, strict=False):
        if here.instruction is not there.instruction:
            return False
        if here.role != there.role:
            return here.instruction.opcode == "conditional"
    return False


def _does_the_same(a: Instruction, b: Instruction) -> bool:
    """Whether two collectives have the same op, groups, shape and reducer."""
    first, second = collective_in(a), collective_in(b)
    assert first is not None
    assert second is not None
    return (
        a.opcode == b.opcode
        and first.opcode == second.opcode
        and all(
            getattr(first.attributes, key, None) == getattr(second.attributes, key, None)
            for key in ("replica_groups", "source_target_pairs", "use_global_device_ids")
        )
        and compatible(payload(first), payload(second))
        and same_reducer(*(getattr(each.attributes, "to_apply", None) for each in (first, second)))
    )


def channel_of(instruction: Instruction) -> int | None:
    """The channel of the collective that an instruction is or starts."""
    collective = collective_in(instruction)
    return None if collective is None else getattr(collective.attributes, "channel_id", None)


def collective_faults(program: Program, identity: CollectiveIdentities, runs: Runs) -> list[Finding]:
    """Every fault of the collectives: of each alone, and between programs at sites that may run by `runs`."""
    classes = program.freed().classes
    found: list[Finding] = []
    for each in classes:
        for site in {site.instruction: site for site in collectives_of(each.module.entry)}.values():
            found += _alone(program, each, site)
    if not found and not program.spmd and any(_between(program, classes, identity, lambda *_: True)):
        found += _between(program, classes, identity, runs)
    return found


def _alone(program: Program, each: DeviceClass, site: Site) -> Iterator[Finding]:
    collective = collective_in(site.instruction)
    assert collective is not None
    count, how = count_of_ids(collective, *program.grid), strategy(collective, program.is_own)
    pairs = getattr(collective.attributes, "source_target_pairs", None)
    if pairs is not None:
        what = "partition" if how == "cross_partition" else "device"
        yield from pair_faults(each.devices, site, pairs, count, what, named_pairs(pairs, how, count))
        return
    what = {"cross_partition": "partition", "flattened_ids": "device"}.get(how, "replica")
    lists = named_lists(getattr(collective.attributes, "replica_groups", ()), how, count)
    covers = base_of(collective) in COVERING
    problem = _problem(lists, count, what, covers) or _wrong_size(program, collective)
    if problem:
        yield finding(
            "invalid_group", f"{named(site.instruction)}, {groups_text(collective)}: {problem}", (each.devices, site)
        )


@functools.lru_cache(maxsize=1024)
def _problem(lists: Groups, count: int, what: str, covers: bool) -> str | None:
    """The fault of lists of ids out of `count` replicas, partitions or devices; `covers`: every id must be listed."""
    ids = Counter(each for group in lists for each in group)
    for number, group in enumerate(lists):
        if not group:
            return f"group {number} is empty"
    for each, times in ids.items():
        if not 0 <= each < count:
            return f"{what} {each} is none of the {count}: 0..{count - 1}"
        if times > 1:
            return f"{what} {each} is named {times} times"
    if lists and covers:
        for each in range(count):
            if each not in ids:
                return f"{what} {each} is in no group"
    return None


def _wrong_size(program: Program, collective: Instruction) -> str | None:
    """The fault of group sizes: some ops demand one size, and the size that an attribute or operand says."""
    opcode, attributes = base_of(collective), collective.attributes
    if opcode not in SIZED:
        return None
    sizes = program.grouping(collective).sizes
    if len(sizes) > 1:
        return f"groups of {sizes[0]} and of {sizes[-1]} devices, and {spelling(opcode)} wants one size"
    attribute = "split_count" if opcode == "all_to_all" else "shard_count"
    wanted = getattr(attributes, attribute, None)
    if opcode == "all_to_all" and wanted is None:
        attribute, wanted = "the number of operands", len(collective.operands)
    if opcode == "ragged_all_to_all":
        attribute, wanted = "dimension 0 of input_offsets", collective.operands[2].shape.dims[0]  # type: ignore[union-attr]
    if wanted is not None and wanted != sizes[0]:
        return f"the groups have {sizes[0]} devices, and {attribute} is {wanted}"
    return None


def _between(
    program: Program, classes: tuple[DeviceClass, ...], identity: CollectiveIdentities, runs: Runs
) -> Iterator[Finding]:
    """Faults between programs: a collective with different attributes, and members of a group that lack it."""
    found: dict[Hashable, list[tuple[DeviceClass, Site]]] = {}
    for each in classes:
        for site in collectives_of(each.module.entry):
            if any(runs(device, site) for device in each.devices):
                found.setdefault(identity.of(each.module, site), []).append((each, site))
    for places in found.values():
        first = places[0]
        faults = [fault for other in places[1:] if (fault := _disagreement(program, first, other)) is not None]
        yield from faults[:1] or _missing(program, places)


def _disagreement(program: Program, a: tuple[DeviceClass, Site], b: tuple[DeviceClass, Site]) -> Finding | None:
    """The fault of two collectives of one identity that differ in kind, loops, groups, shape or reducer."""
    places = (a[0].devices, a[1]), (b[0].devices, b[1])
    first, second = collective_in(a[1].instruction), collective_in(b[1].instruction)
    assert first is not None
    assert second is not None
    kinds = [base_of(first), base_of(second)]
    if kinds[0] != kinds[1]:
        text = f"{spelling(kinds[0])} and {spelling(kinds[1])}"
        return finding("channel_kind_mix", f"{_one(a, b)} of two kinds: {text}", *places)
    if _loops(a[1].path) != _loops(b[1].path):
        return nest_finding(f"{spelling(kinds[0])} {first.name}", *places)
    if not _meet_alike(program, first, second):
        told = f"{groups_text(first)} here, {groups_text(second)} there"
        return finding("group_disagreement", f"{_one(a, b)}: {told}", *places)
    if not compatible(payload(first), payload(second)):
        return finding("shape_mismatch", f"{_one(a, b)}: {payload(first)} here, {payload(second)} there", *places)
    if not same_reducer(*(getattr(each.attributes, "to_apply", None) for each in (first, second))):
        return finding("reducer_mismatch", f"{_one(a, b)}, and they reduce by different computations", *places)
    return None


def _loops(path: Path) -> tuple[str, ...]:
    """The kinds of the loops around a collective; conditionals do not count: a branch may meet what stands outside."""
    return tuple(role for step, role in zip(path, nest(path), strict=True) if step.instruction.opcode in LOOPS)


def _one(a: tuple[DeviceClass, Site], b: tuple[DeviceClass, Site]) -> str:
    names = (getattr(collective_in(site.instruction), "name", "") for _, site in (a, b))
    parts = (f"{name} of {devices_text(each.devices)}" for name, (each, _) in zip(names, (a, b), strict=True))
    return f"{' and '.join(parts)} are one collective"


def same_reducer(a: Computation | None, b: Computation | None) -> bool:
    """Whether two computations have the same structure."""
    return a is b or (a is not None and b is not None and _fingerprint(a) == _fingerprint(b))


@remembered
def _fingerprint(computation: Computation) -> str:
    from ...properties.structure import fingerprint

    return fingerprint(computation)


def _meet_alike(program: Program, a: Instruction, b: Instruction) -> bool:
    """Whether two collectives name the same groups or pairs, in any order."""
    grid = program.grid
    if hasattr(a.attributes, "source_target_pairs"):
        return a.attributes == b.attributes or frozenset(pairs_of(a, *grid)) == frozenset(pairs_of(b, *grid))
    first, second = program.groups(a), program.groups(b)
    return first is second or frozenset(first) == frozenset(second)


def _missing(program: Program, places: list[tuple[DeviceClass, Site]]) -> Iterator[Finding]:
    """The finding for members of a group whose program does not have the collective."""
    have = {device for each, _ in places for device in each.devices}
    seen: set[int] = set()  # groups by their first member, since groups are disjoint
    for each, site in places:
        collective = collective_in(site.instruction)
        assert collective is not None
        groups = {group[0]: group for device in each.devices if (group := program.group(collective, device))}
        lacking = sorted({member for first in groups.keys() - seen for member in groups[first]} - have)
        seen |= groups.keys()
        if lacking:
            yield finding(
                "missing_participant",
                f"{named(site.instruction)} of {devices_text(each.devices)} waits for {devices_text(lacking)}, "
                "whose program has no such collective",
                *((one.devices, place) for one, place in places),
                rows=[absent_row(lacking, f"nothing that is {site.instruction.name}")],
                cause_text="across programs a collective is known by a channel id that is unique, else by its name",
                repair_text=f"add {site.instruction.name} to their program, or take them out of its groups",
            )
            return
