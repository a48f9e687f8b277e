"""Rules of collectives: permutations that leave zeros, sums of equal values, missing sums, collectives in loops.

Sections:

    permutation_zeros
    reduced_twice and not_reduced
    sliced_reduction
    hoistable_collective
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from shape_inference import Shape
from shape_inference.escaping import in_line

from ..checking.dataflow.promises import tiles_of
from ..checking.model.program import devices_text
from ..core.graph import Computation, Instruction
from ..core.issues import Issue
from ..costs.report import short
from ..properties.device_groups import Groups
from ..properties.effects import (
    COLLECTIVES,
    base_of,
    has_effect,
    is_in_place,
    jax_primitive,
    op_and_name,
)
from ..properties.patterns import pairwise_reducers
from ..properties.trip_counts import is_invariant, known_trips, path_of
from .facts import ProgramFacts, size_of
from .flow import MOVES, SUMMING
from .rematerialization import Rematerializations
from .rules import issue, rule

# ----------------------------------------------------------------------------
# permutation_zeros

_PERMUTES = ("ppermute", "pshuffle", "collective_permute", "psend", "precv")


@rule("A permutation has no source for some devices, which receive zeros instead of data.", "none")
def permutation_zeros(facts: ProgramFacts) -> Iterator[Issue]:
    """Permutations that a partitioner inserted do not count, nor do those used only in selects on the device."""
    for row in facts.rows:
        permute = row.instruction
        if base_of(permute) != "collective_permute" or is_in_place(permute) or not _is_written_by_user(permute):
            continue
        targets = {target for _, target in facts.groups(permute)}
        zeros = tuple(device for device in range(facts.num_devices) if device not in targets)
        if not zeros or _is_masked(facts, permute):
            continue
        if len(zeros) == facts.num_devices:
            told = "sends nothing to any device, so every device receives zeros"
        else:
            receiver = "each of these devices" if len(zeros) > 1 else "this device"
            told = f"sends nothing to {devices_text(zeros)}, so {receiver} receives zeros"
        yield issue(
            facts,
            "permutation_zeros",
            f"{op_and_name(permute)} {told}",
            "add the missing pairs (a ring has (n-1, 0) too), or select other data where no device sends: "
            "jnp.where(axis_index(axis) == 0, own, received)",
            permute,
            bytes=size_of(permute.operands[0]) * row.times,
            seconds=facts.seconds_once(permute) * row.times,
            devices=zeros,
        )


def _is_written_by_user(permute: Instruction) -> bool:
    """Whether no metadata says that the partitioner inserted a permutation for another op."""
    has_name = bool((permute.annotations.get("metadata") or {}).get("op_name"))
    return not has_name or jax_primitive(permute) in _PERMUTES


def _is_masked(facts: ProgramFacts, permute: Instruction) -> bool:
    """Whether every use selects by the number of the device, or multiplies by what is computed from it."""

    def is_mask(value: Instruction) -> bool:
        return value in facts.flow.of_ids and value not in facts.flow.of_data

    users = [
        user
        for user in facts.flow.reached(permute, lambda each: each.opcode in MOVES or each.opcode.endswith("_done"))
        if user.opcode not in MOVES and not user.opcode.endswith("_done")
    ]
    return bool(users) and all(
        (user.opcode == "select" and is_mask(user.operands[0]))
        or (user.opcode in ("multiply", "and") and any(map(is_mask, user.operands)))
        for user in users
    )


# ----------------------------------------------------------------------------
# reduced_twice and not_reduced


@rule(
    "An all-reduce sums values that its devices already hold equal, so the sum is only a multiple of the value.", "none"
)
def reduced_twice(facts: ProgramFacts) -> Iterator[Issue]:
    """Values that are computed from constants do not count: `psum(1)` is the number of devices."""
    for row in facts.rows:
        reduce = row.instruction
        if base_of(reduce) not in SUMMING or not row.collective or row.collective.group_size < 2:
            continue
        reducers = pairwise_reducers(reduce.attributes.to_apply) or ()
        groups = facts.groups(reduce)
        for number, operand in enumerate(reduce.operands):
            opcode = reducers[number] if number < len(reducers) else reducers[0] if len(reducers) == 1 else ""
            if opcode not in ("add", "maximum", "minimum", "and", "or"):
                continue
            if not facts.is_equal_within(operand, groups) or operand not in facts.flow.of_data:
                continue
            count = row.collective.group_size
            result = f"the sum is {count} times the value" if opcode == "add" else "the result is the value itself"
            before = _reduced_before(facts, operand)
            reason = f": {op_and_name(before)} has made them equal" if before is not None else ""
            yield issue(
                facts,
                "reduced_twice",
                f"{op_and_name(reduce)} combines equal values of {in_line(operand.name)} from "
                f"{row.collective.axes or 'the devices of each group'}{reason}; {result}",
                "remove one of the two reductions; if the values are already means, use the value as it is",
                reduce,
                *([before] if before is not None else []),
                bytes=size_of(operand) * row.times,
                seconds=facts.seconds_once(reduce) * row.times,
                factor=count if opcode == "add" else 1,
            )


def _reduced_before(facts: ProgramFacts, value: Instruction) -> Instruction | None:
    """The nearest collective behind a value."""
    return next((each for each in facts.flow.sources([value]) if base_of(each) in _MIXING), None)


_MIXING = COLLECTIVES - {"collective_permute"}
"""The collectives after which devices may hold equal values."""


@rule(
    "A result that all devices of an axis must hold equal is computed from their own data, without a reduction.", "none"
)
def not_reduced(facts: ProgramFacts) -> Iterator[Issue]:
    """A result must be equal if its sharding says so, or if it replaces state that is equal.

    The rule needs shardings, which HLO text states for parameters. State of replicas counts as equal at first if a
    reduction keeps some of it equal.
    """
    if facts.num_devices < 2:
        return
    required = {**dict(_stated_results(facts)), **dict(_state_results(facts))}
    for place, (groups, what, instruction) in sorted(required.items()):
        value = facts.flow.origin(facts.results[place], lambda each: each.opcode in _SAME)
        differing = [group for group in groups if not facts.is_equal_within(value, (group,), in_steps=True)]
        apart = _not_joined(facts, value, differing[0]) if differing else ()
        data = _own_data(facts, value, apart) if len(apart) > 1 else None
        if data is None:
            continue
        yield issue(
            facts,
            "not_reduced",
            f"{in_line(value.name)} {what}, but it is computed from {facts.name_of_parameter(data)}, which "
            f"differs between {devices_text(apart)}, and no collective between them combines it",
            "reduce it over the missing axis, as the other gradients: jax.lax.pmean(gradient, axis)",
            value,
            instruction,
            bytes=size_of(value),
            devices=apart,
        )


_SAME = frozenset({"get_tuple_element", "copy", "bitcast", "reshape"})
"""Ops through which a result is followed to the instruction that computes it."""

Required = tuple[int, tuple[Groups, str, Instruction]]


def _state_results(facts: ProgramFacts) -> Iterator[Required]:
    """The results that replace state, with the groups of devices that hold this state equal at first.

    Only of a program that keeps some of its state equal by a reduction.
    """
    kept = False
    found: list[Required] = []
    for pair in facts.state:
        several = tuple(group for group in facts.equal_groups(pair.parameter, in_steps=True) if len(group) > 1)
        if several:
            name = facts.name_of_parameter(pair.parameter)
            told = f"replaces {name}, which these devices hold equal"
            found.append((pair.number, (several, told, pair.parameter)))
            is_equal = facts.is_equal_within(pair.value, several, in_steps=True)
            kept |= is_equal and facts.flow.depends_on([pair.value], lambda each: base_of(each) in SUMMING)
    yield from found if kept else ()


def _stated_results(facts: ProgramFacts) -> Iterator[Required]:
    """The results whose sharding states that several devices hold the same tile."""
    several = facts.stated_results
    count = facts.module.num_partitions
    for place, each in enumerate(several):
        tiles: dict[int, list[int]] = {}
        for device, tile in enumerate(tiles_of(each, count)):
            tiles.setdefault(tile, []).append(device)
        groups = tuple(tuple(group) for group in tiles.values() if len(group) > 1)
        if groups:
            yield place, (groups, "is stated as equal on these devices", facts.results[place])


def _not_joined(facts: ProgramFacts, value: Instruction, group: Sequence[int]) -> tuple[int, ...]:
    """Devices of the group, one of each set that the collectives behind a value do not join with the others.

    Where collectives join all, the value may be equal without a proof.
    """
    of = {device: device for device in group}

    def first(device: int) -> int:
        while of[device] != device:
            device = of[device]
        return device

    for each in facts.flow.sources([value]):
        for joined in facts.groups(each) if base_of(each) in COLLECTIVES else ():
            members = [device for device in joined if device in of]
            for device in members[1:]:
                of[first(device)] = first(members[0])
    return tuple(sorted({first(device) for device in group}))


def _own_data(facts: ProgramFacts, value: Instruction, group: Sequence[int]) -> Instruction | None:
    """The nearest parameter behind a value that differs between the devices of the group, if only sums are behind."""
    entry = facts.module.entry
    for each in facts.flow.sources([value]):
        is_parameter = each.opcode == "parameter" and facts.flow.home[each] is entry
        if is_parameter and not facts.is_equal_within(each, (tuple(group),), in_steps=True):
            return each
    return None


# ----------------------------------------------------------------------------
# sliced_reduction


@rule("All devices receive a sum of which each keeps only its part: a reduce-scatter sends half of the bytes.")
def sliced_reduction(facts: ProgramFacts) -> Iterator[Issue]:
    """Every use of the all-reduce, or of one of its results, ends in a slice for the device, of which the devices of a
    group keep different parts. In a program that XLA has not scheduled yet, only reductions that the user wrote count,
    since XLA for GPU and TPU makes a reduce-scatter of the others later.
    """
    walk = Rematerializations(facts.flow)
    for row in facts.rows:
        reduce = row.instruction
        if base_of(reduce) != "all_reduce" or not row.collective or row.collective.group_size < 2:
            continue
        is_written = jax_primitive(reduce) in _SUMS
        if not (is_written or facts.module.is_scheduled):
            continue
        groups, size = facts.groups(reduce), row.collective.group_size
        parts = [each for each in _results_of(facts, reduce) if _is_scattered(facts, walk, each, groups, size)]
        if not parts:
            continue
        whole = sum(map(size_of, reduce.operands))
        share = min(sum(map(size_of, parts)) / max(whole, 1), 1.0)
        scattered = (
            f"{in_line(parts[0].name)} of {op_and_name(reduce)}" if parts[0] is not reduce else op_and_name(reduce)
        )
        yield issue(
            facts,
            "sliced_reduction",
            f"of the sum {scattered}{f' and {len(parts) - 1} more' if len(parts) > 1 else ''}, each of {size} devices "
            f"({row.collective.axes}) keeps only its part",
            "use jax.lax.psum_scatter(x, axis, scatter_dimension=..., tiled=True) instead of psum and a slice"
            if is_written
            else "XLA for GPU and TPU makes a reduce-scatter of this, and XLA:CPU does not; to be independent of it, "
            "write the sum in jax.shard_map with jax.lax.psum_scatter",
            reduce,
            bytes=int(share * row.collective.link_bytes / 2) * row.times,
            seconds=share * facts.seconds_once(reduce) / 2 * row.times,
        )


_SUMS = ("psum", "psum2", "psum_invariant", "pmean")


def _results_of(facts: ProgramFacts, reduce: Instruction) -> Iterator[Instruction]:
    """The arrays that an all-reduce returns: itself, or the elements of its tuple that are used."""
    done = [each for each in facts.flow.users.get(reduce, ()) if each.opcode == "all_reduce_done"]
    result = done[0] if done else reduce
    if isinstance(result.shape, Shape):
        yield result
    else:
        yield from (each for each in facts.flow.users.get(result, ()) if each.opcode == "get_tuple_element")


def _is_scattered(facts: ProgramFacts, walk: Rematerializations, value: Instruction, groups: Groups, size: int) -> bool:
    """Whether each device of a group uses a different part of a value, of a share of it."""
    slices = walk.slices_of(value)
    return bool(slices) and all(
        size_of(each) * size == size_of(value)
        and not all(facts.is_equal_within(start, groups) for start in each.operands[1:])
        for each in slices
    )


# ----------------------------------------------------------------------------
# hoistable_collective


@frozen
class _Hoistable:
    """A collective of a loop, why it can leave the loop, and how."""

    collective: Instruction
    reason: str
    fix: str


@rule("A collective inside a loop can run once, before or after the loop.")
def hoistable_collective(facts: ProgramFacts) -> Iterator[Issue]:
    """Its operands are the same in every trip, or its result, a sum over devices, is only added to the loop's state."""
    for row in facts.rows:
        loop = row.instruction
        if loop.opcode != "while":
            continue
        trips = known_trips(loop)
        if trips is not None and trips < 2:
            continue
        hoistable = {each.collective: each for each in (*_accumulated(facts, loop), *_invariant(loop))}
        for found in hoistable.values():
            own = facts.row(found.collective)
            if own is None or own.collective is None or own.collective.group_size < 2:
                continue
            runs = own.times if trips is not None else 2
            saved = runs - row.times if trips is not None else 1
            trips_text = f"{trips:,} trips" if trips is not None else "an unknown number of trips"
            yield issue(
                facts,
                "hoistable_collective",
                f"{op_and_name(found.collective)} runs in each of {trips_text} of {op_and_name(loop)}, and "
                f"{found.reason}",
                found.fix,
                found.collective,
                loop,
                bytes=own.collective.link_bytes * saved,
                seconds=facts.seconds_once(found.collective) * saved,
            )


def _invariant(loop: Instruction) -> Iterator[_Hoistable]:
    """The collectives of a body whose operands no trip changes."""
    body: Computation = loop.attributes.body
    fixed: set[Instruction] = set()
    for each in body.instructions:
        path = path_of(each) if each.opcode == "get_tuple_element" else None
        is_collective = base_of(each) in COLLECTIVES
        if each.opcode == "parameter":
            continue
        if path is not None:
            is_fixed = is_invariant(body, path[1])
        else:
            is_fixed = (is_collective or not has_effect(each)) and all(o in fixed for o in each.operands)
            is_fixed = is_fixed and not each.opcode.startswith(("rng", "infeed", "recv"))
        if is_fixed:
            fixed.add(each)
        if is_fixed and is_collective:
            memory = short(size_of(each), "B")
            yield _Hoistable(
                each,
                "no trip changes its operands",
                f"move it before the loop and pass its result to the body, which keeps {memory} for the whole loop",
            )


def _accumulated(facts: ProgramFacts, loop: Instruction) -> Iterator[_Hoistable]:
    """The sums over devices of a body that are only added to an element of the state."""
    body: Computation = loop.attributes.body
    root = body.root
    if root.opcode != "tuple":
        return
    for number, after in enumerate(root.operands):
        added = facts.flow.origin(after, lambda each: each.opcode == "copy")
        if added.opcode != "add" or not isinstance(added.shape, Shape):
            continue
        for carry, term in (added.operands, added.operands[::-1]):
            start = facts.flow.origin(carry, lambda each: each.opcode == "copy")
            reduce = facts.flow.origin(term, lambda each: each.opcode in MOVES or each.opcode.endswith("_done"))
            if (
                path_of(start) != (0, (number,))
                or base_of(reduce) != "all_reduce"
                or facts.flow.home[reduce] is not body
            ):
                continue
            reducers = pairwise_reducers(reduce.attributes.to_apply) or ()
            element = next((e for e in body.instructions if path_of(e) == (0, (number,))), None)
            if set(reducers) != {"add"} or element is None or not _is_used_only_by(facts, element, added):
                continue
            if not _is_used_only_by(facts, reduce, added):
                continue
            yield _Hoistable(
                reduce,
                f"its result is only added to element {number} of the loop's state",
                "add the operands of each device in the loop, and reduce the sum once after the loop",
            )
            break


def _is_used_only_by(facts: ProgramFacts, value: Instruction, user: Instruction) -> bool:
    """Whether all uses of a value, through moves, are one instruction."""
    passed = facts.flow.reached(value, lambda each: each.opcode in MOVES or each.opcode.endswith("_done"))
    users = [each for each in passed if each.opcode not in MOVES and not each.opcode.endswith("_done")]
    return users == [user]
