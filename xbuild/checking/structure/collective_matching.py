"""Matching of collectives across programs: faults of their groups, pairs, shapes, kinds and reducers."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TypeAlias

from attrs import evolve, frozen

from shape_inference import compatible

from ...core.graph import Computation, Instruction, Module
from ...process.limits import ask
from ...process.progress import over
from ...properties.device_groups import Group, Groups, Pairs, count_named, named_lists, named_pairs, pairs_of, strategy
from ...properties.effects import COVERING, LOOPS, Path, base_of, collective_in, is_in_place, nest, remembered, spelling
from ...properties.sites import Site, collectives_of
from ..model.describe import absent_row, finding, groups_text, named, nest_finding, payload
from ..model.program import DeviceClass, GridProgram, devices_text
from ..model.verdict import Finding

# ----------------------------------------------------------------------------
# Faults of source-target pairs of a transfer or a collective permute


def pair_faults(
    devices: tuple[int, ...], site: Site, pairs: Pairs, count: int, unit: str, named: Pairs | None = None, most: int = 0
) -> Iterator[Finding]:
    """Faults of pairs: ids out of range, sources or targets that occur twice.

    If some pairs are ignored, `named` are those that apply; ids of the others are out of range from `most` on.
    """
    applying = pairs if named is None else named
    name = site.instruction.name
    for place, role in ((0, "source"), (1, "target")):
        ids_applying = {pair[place] for pair in applying}
        for each, times in Counter(pair[place] for pair in pairs).items():
            ask()
            is_named = each in ids_applying
            if not 0 <= each < (count if is_named else max(count, most)):
                yield finding(
                    "device_out_of_range",
                    f"{name} names {unit} {each} as a {role}, but the {unit}s are 0..{count - 1}; its pairs are "
                    f"{_pairs_text(pairs)}",
                    (devices, site),
                    cause_text=f"the program has {count} {unit}{'s' * (count != 1)}, so {unit} {each} does not exist",
                    repair_text=f"name an existing {unit} in the pairs of {name}, or run the program on more {unit}s",
                )
            elif times > 1 and not is_in_place(site.instruction):  # several slices have pairs of their own
                yield finding(
                    "bad_pairs",
                    f"{name} names {unit} {each} as a {role} {times} times; its pairs are {_pairs_text(pairs)}",
                    (devices, site),
                    cause_text="each source sends at most once, and each target receives at most one value",
                )


MOST_SHOWN = 64


def _pairs_text(pairs: Pairs) -> str:
    """`(0,1), (1,0)`; only the first of many pairs."""
    more = len(pairs) - MOST_SHOWN
    shown = ", ".join(f"({source},{target})" for source, target in pairs[:MOST_SHOWN])
    return f"{shown} and {more:,} more" if more > 0 else shown


# ----------------------------------------------------------------------------
# Matching of collectives across programs, and faults of their groups, shapes, kinds and reducers

Runs: TypeAlias = Callable[[int, Site], bool]  # whether a device may reach a site


SIZED = ("all_gather", "all_to_all", "ragged_all_to_all", "reduce_scatter")


@frozen(eq=False)
class CollectiveIdentities:
    """The identity by which collectives of several devices match; it does not depend on timing.

    In one program for all devices it is the instruction and its call path; across programs, a channel id that each
    program has once, otherwise the names; `aligned` is that of sites whose names fit no other program.
    `fit` says that there are no faults between the programs, also at sites that never run.
    """

    unique: Mapping[Module, frozenset[int]]
    spmd: bool
    aligned: Mapping[tuple[Module, Hashable], Hashable] = {}
    fit: bool = False

    def of(self, module: Module, site: Site) -> Hashable:
        if self.spmd:
            return site.key
        aligned = self.aligned.get((module, place_key(site))) if self.aligned else None
        if aligned is not None:
            return aligned
        channel = channel_of(site.instruction)
        if channel in self.unique[module]:
            return channel
        return (*((step.instruction.name, step.role) for step in site.path), site.instruction.name)

    def key(self, module: Module, site: Site, group: Group) -> Hashable:
        """The key within which the executions of a collective by a group are counted; its groups are disjoint."""
        return self.of(module, site), group[0]


def place_key(site: Site) -> Hashable:
    """The instructions on the path to a site, and the site's own, each with the number of the branch that is taken."""
    path = ((id(step.instruction), step.role) for step in site.path)
    numbers = ((each, int(role.removeprefix("branch ")) if role.startswith("branch ") else None) for each, role in path)
    return (*numbers, (id(site.instruction), None))


def collective_identities(program: GridProgram) -> CollectiveIdentities:
    """The identities of the collectives of all programs.

    Names differ between programs that were compiled apart, so where matching by name leaves faults, collectives that
    share a channel id, or have none, are aligned instead; see `align_collectives`.
    """
    if program.spmd:
        return CollectiveIdentities({}, True)
    classes = program.without_orders().classes
    unique = {each.module: unique_channels(each.module) for each in classes}
    channels = {m: {channel_of(site.instruction) for site in collectives_of(m.entry)} for m in unique}
    shared = {channel for m, used in channels.items() for channel in used if channel not in unique[m]}
    named_identities = CollectiveIdentities({m: ids - shared for m, ids in unique.items()}, False)
    if not any(_check_between(program, classes, named_identities, None)):
        return evolve(named_identities, fit=True)
    from .alignment import align_collectives  # few programs need it

    return evolve(named_identities, aligned=align_collectives(program, classes, shared | {None}))


def unique_channels(module: Module) -> frozenset[int]:
    """The channel ids that name one collective of the module, or equal collectives in exclusive branches."""
    places: dict[int, dict[Instruction, list[Site]]] = {}
    for site in collectives_of(module.entry):
        channel = channel_of(site.instruction)
        if channel is not None:
            places.setdefault(channel, {}).setdefault(site.instruction, []).append(site)
    return frozenset(channel for channel, found in places.items() if len(found) == 1 or _are_exclusive_equals(found))


def _are_exclusive_equals(found: Mapping[Instruction, list[Site]]) -> bool:
    """Whether these collectives are equal and in branches that exclude each other."""
    first, *rest = found
    if not all(_are_equal_collectives(first, each) for each in rest):
        return False
    for mine, others in itertools.combinations(found.values(), 2):
        ask()
        if not all(_exclude(a.path, b.path) for a in mine for b in others):
            return False
    return True


def _exclude(a: Path, b: Path) -> bool:
    """Whether two paths enter different branches of one conditional."""
    for here, there in zip(a, b, strict=False):
        if here.instruction is not there.instruction:
            return False
        if here.role != there.role:
            return here.instruction.opcode == "conditional"
    return False


def _are_equal_collectives(a: Instruction, b: Instruction) -> bool:
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


def collective_faults(program: GridProgram, identity: CollectiveIdentities, runs: Runs) -> list[Finding]:
    """Every fault of the collectives: of each by itself, and between programs at sites that may run (`runs`)."""
    classes = program.without_orders().classes
    found = faults_by_themselves(program)
    if not found and not program.spmd and not identity.fit and any(_check_between(program, classes, identity, None)):
        found += _check_between(program, classes, identity, runs)
    return found


def faults_by_themselves(program: GridProgram) -> list[Finding]:
    """The faults of each collective by itself: of its groups and pairs."""
    faultless = set[tuple[int, str, bool]]()
    return [
        fault
        for device_class in over(program.without_orders().classes, "matching collectives", "programs")
        for site in {site.instruction: site for site in collectives_of(device_class.module.entry)}.values()
        for fault in _check_one(program, device_class, site, faultless)
    ]


def groups_beyond(program: GridProgram) -> list[Finding]:
    """A fault for each collective that needs a device without a program."""
    if len(program.devices) == program.num_replicas * program.num_partitions:
        return []
    present, found = {*program.devices}, list[Finding]()
    for device_class in program.without_orders().classes:
        for site in {site.instruction: site for site in collectives_of(device_class.module.entry)}.values():
            collective = collective_in(site.instruction)
            assert collective is not None
            members = {member for device in device_class.devices for member in program.group(collective, device) or ()}
            if lacking := sorted(members - present):
                message = f"{named(site.instruction)} needs {devices_text(lacking)}, without a program"
                found.append(finding("invalid_group", message, (device_class.devices, site)))
    return found


def _check_one(
    program: GridProgram, device_class: DeviceClass, site: Site, faultless: set[tuple[int, str, bool]]
) -> Iterator[Finding]:
    """The faults of one collective; `right` keeps which lists of groups, read in which way, were found without."""
    collective = collective_in(site.instruction)
    assert collective is not None
    reading = strategy(collective, program.is_own)
    count = count_named(reading, program.num_replicas, program.num_partitions)
    pairs = getattr(collective.attributes, "source_target_pairs", None)
    if pairs is not None:
        unit = "partition" if reading == "cross_partition" else "device"
        applying = named_pairs(pairs, reading, count)
        yield from pair_faults(device_class.devices, site, pairs, count, unit, applying, len(program.devices))
        return
    unit = {"cross_partition": "partition", "flattened_ids": "device"}.get(reading, "replica")
    lists, covers = getattr(collective.attributes, "replica_groups", ()), base_of(collective) in COVERING
    key = id(lists), reading, covers
    problem = None
    if key not in faultless:
        meant = named_lists(lists, reading, count)
        ignored = tuple(ids for ids in lists if ids not in meant) if meant is not lists else ()
        problem = _list_fault(meant, count, unit, covers) or _list_fault(ignored, len(program.devices), "device", False)
    if problem is None:
        faultless.add(key)
        problem = _size_fault(program, collective)
    if problem:
        yield finding(
            "invalid_group",
            f"{named(site.instruction)}, {groups_text(collective)}: {problem}",
            (device_class.devices, site),
            repair_text=_missing_channel(program, collective, unit),
        )


def _missing_channel(program: GridProgram, collective: Instruction, unit: str) -> str:
    """The repair of groups that name replicas because the collective has no channel_id; empty where they do not."""
    ids = [each for group in getattr(collective.attributes, "replica_groups", ()) for each in group]
    devices = len(program.devices)
    if unit != "replica" or program.num_partitions == 1 or not all(0 <= each < devices for each in ids):
        return ""
    with_global_ids = hasattr(collective.attributes, "use_global_device_ids")
    has_channel = (getattr(collective.attributes, "channel_id", None) or 0) > 0
    if has_channel:
        return (
            "add use_global_device_ids=true, so that the groups name devices, not replicas" if with_global_ids else ""
        )
    more = " and use_global_device_ids=true" if with_global_ids else ""
    named_units = "devices" if with_global_ids else "partitions"
    return f"add channel_id=1{more}: without a channel_id, the groups name replicas, not {named_units}"


@functools.lru_cache(maxsize=1024)
def _list_fault(lists: Groups, count: int, unit: str, covers: bool) -> str | None:
    """The fault of lists of ids of `count` replicas, partitions or devices; if it `covers`, every id must be listed."""
    ids = Counter(each for group in lists for each in group)
    for number, group in enumerate(lists):
        if not group:
            return f"group {number} is empty"
    for each, times in ids.items():
        if not 0 <= each < count:
            return f"{unit} {each} is outside 0..{count - 1}"
        if times > 1:
            return f"{unit} {each} is named {times} times"
    if lists and covers:
        for each in range(count):
            if each not in ids:
                return f"{unit} {each} is in no group"
    return None


def _size_fault(program: GridProgram, collective: Instruction) -> str | None:
    """The fault of group sizes: some ops require one size, or the size that an attribute or operand states."""
    opcode, attributes = base_of(collective), collective.attributes
    if opcode not in SIZED:
        return None
    sizes = program.grouping(collective).sizes
    if len(sizes) > 1:
        return (
            f"the groups have {sizes[0]} to {sizes[-1]} devices, but {spelling(opcode)} requires groups of equal size"
        )
    attribute = "split_count" if opcode == "all_to_all" else "shard_count"
    expected = getattr(attributes, attribute, None)
    if opcode == "all_to_all" and expected is None:
        attribute, expected = "the number of operands", len(collective.operands)
    if opcode == "ragged_all_to_all":
        attribute, expected = "dimension 0 of input_offsets", collective.operands[2].shape.dims[0]  # type: ignore[union-attr]
    if expected is not None and expected != sizes[0]:
        return f"the groups have {sizes[0]} devices, but {attribute} is {expected}"
    return None


def _check_between(
    program: GridProgram, classes: tuple[DeviceClass, ...], identity: CollectiveIdentities, runs: Runs | None
) -> Iterator[Finding]:
    """Faults between programs at sites that may run according to `runs`: different attributes, and members of a group
    without the collective."""
    by_identity: dict[Hashable, list[tuple[DeviceClass, Site]]] = {}
    for each in classes:
        for site in collectives_of(each.module.entry):
            if runs is None or any(runs(device, site) for device in each.devices):
                by_identity.setdefault(identity.of(each.module, site), []).append((each, site))
    for places in by_identity.values():
        different = next((other for other in places[1:] if compare_places(program, places[0], other) is not None), None)
        if different is None:
            yield from _find_missing(program, places, identity)
        else:
            partners = sorted(places, key=lambda each: not _share_group(program, each, different))
            faults = (compare_places(program, partner, different) for partner in partners if partner is not different)
            yield next(fault for fault in faults if fault is not None)


def _share_group(program: GridProgram, a: tuple[DeviceClass, Site], b: tuple[DeviceClass, Site]) -> bool:
    """Whether a device of one class is in the group of the first device of the other."""
    collective = collective_in(b[1].instruction)
    assert collective is not None
    return not {*a[0].devices}.isdisjoint(program.group(collective, b[0].devices[0]))


def compare_places(program: GridProgram, a: tuple[DeviceClass, Site], b: tuple[DeviceClass, Site]) -> Finding | None:
    """The fault of two collectives of one identity that differ in kind, loops, groups, shape or reducer."""
    places = (a[0].devices, a[1]), (b[0].devices, b[1])
    first, second = collective_in(a[1].instruction), collective_in(b[1].instruction)
    assert first is not None
    assert second is not None
    kinds = [base_of(first), base_of(second)]
    if kinds[0] != kinds[1]:
        text = f"{spelling(kinds[0])} and {spelling(kinds[1])}"
        return finding("channel_kind_mix", f"{_are_one_text(a, b)}, but their kinds differ: {text}", *places)
    if a[1].path != b[1].path and _loops(a[1].path) != _loops(b[1].path):
        return nest_finding(f"{spelling(kinds[0])} {first.name}", *places)
    if not _have_equal_groups(program, first, second):
        groups_of_both = f"{groups_text(first)} and {groups_text(second)}"
        return finding(
            "group_disagreement", f"{_are_one_text(a, b)}, but their groups differ: {groups_of_both}", *places
        )
    if not compatible(payload(first), payload(second)):
        return finding(
            "shape_mismatch",
            f"{_are_one_text(a, b)}, but their shapes differ: {payload(first)} and {payload(second)}",
            *places,
        )
    if not same_reducer(*(getattr(each.attributes, "to_apply", None) for each in (first, second))):
        return finding(
            "reducer_mismatch", f"{_are_one_text(a, b)}, but they reduce with different computations", *places
        )
    return None


def _loops(path: Path) -> tuple[str, ...]:
    """The kinds of the loops around a collective; conditionals do not count: a branch may meet a site outside of it."""
    return nest(tuple(step for step in path if step.instruction.opcode in LOOPS))


def _are_one_text(a: tuple[DeviceClass, Site], b: tuple[DeviceClass, Site]) -> str:
    names = (getattr(collective_in(site.instruction), "name", "") for _, site in (a, b))
    parts = (f"{name} of {devices_text(each.devices)}" for name, (each, _) in zip(names, (a, b), strict=True))
    return f"{' and '.join(parts)} form one collective"


def same_reducer(a: Computation | None, b: Computation | None) -> bool:
    """Whether two computations have the same structure."""
    return a is b or (a is not None and b is not None and _fingerprint(a) == _fingerprint(b))


@remembered
def _fingerprint(computation: Computation) -> str:
    from ...properties.structure import fingerprint

    return fingerprint(computation)


def _have_equal_groups(program: GridProgram, a: Instruction, b: Instruction) -> bool:
    """Whether two collectives name the same groups or pairs, in any order."""
    grid = program.grid
    if hasattr(a.attributes, "source_target_pairs"):
        return a.attributes == b.attributes or frozenset(pairs_of(a, *grid)) == frozenset(pairs_of(b, *grid))
    first, second = program.groups(a), program.groups(b)
    return first is second or frozenset(first) == frozenset(second)


def _find_missing(
    program: GridProgram, places: list[tuple[DeviceClass, Site]], identity: CollectiveIdentities
) -> Iterator[Finding]:
    """The finding for participants of a group whose program does not have the collective."""
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
                rows=[absent_row(lacking, f"no {site.instruction.name}")],
                cause_text=_how_they_match(identity, each.module, site),
                repair_text=(
                    f"add {site.instruction.name} to the program of {devices_text(lacking)}, or remove "
                    f"{devices_text(lacking)} from its groups"
                ),
            )
            return


def _how_they_match(identity: CollectiveIdentities, module: Module, site: Site) -> str:
    if (module, place_key(site)) not in identity.aligned:
        return "across programs, collectives match by a unique channel id or, without one, by name"
    channel = channel_of(site.instruction)
    which = "without a channel id" if channel is None else f"that share channel {channel}"
    return f"across programs, collectives {which} match by kind, type, groups, source line and order"
