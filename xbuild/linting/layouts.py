"""Rules of shardings: arrays made whole only to be split again, gathers and copies of state that a sharding avoids.

Sections:

    full_rematerialization
    replicated_state
    gathered_state
    avoidable_gather
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from attrs import frozen

from shape_inference import Shape
from shape_inference.escaping import in_line
from shape_inference.trees import flatten

from ..core.graph import Instruction, Source, TextSource
from ..core.issues import Issue
from ..core.report_text import join_words
from ..costs.report import shape_text, short
from ..properties.effects import UNITS, base_of, name_in_report, op_and_name
from ..sharding.partition import Advice, Partitioned, advise, partition
from ..sharding.partition.frame import local_dims
from ..sharding.partition.reasons import Communication, Reason, describe, name_of
from ..sharding.resharding import plan
from ..sharding.sharding import Sharding, merge_parts, shard_dims
from ..sharding.shardy_text import spec_of
from ..sharding.stated_shardings import annotated
from ..timelines.durations import PRODUCTS
from .facts import ProgramFacts, StatePair, size_of
from .flow import ELEMENTWISE, MOVES, SUMMING, ValueFlow
from .rematerialization import Rematerialization, Rematerializations
from .rules import issue, rule

# ----------------------------------------------------------------------------
# full_rematerialization


@rule("All devices gather an array only to split it again differently; XLA warns of this at compile time.")
def full_rematerialization(facts: ProgramFacts) -> Iterator[Issue]:
    """XLA warns of an "involuntary full rematerialization" of an instruction; the rule names the user's line."""
    every = Rematerializations(facts.flow)
    for found in every.all():
        row = facts.row(found.gather)
        times = facts.times(found.gather)
        size = row.collective.group_size if row is not None and row.collective is not None else facts.num_devices
        parts = (found.gather, *found.slices)
        lines = [facts.source(each) for each in parts]
        if every.is_of_one_device(found.gather):
            fix = _OF_ONE_DEVICE
        else:
            fix = _staged(facts, found, [each for each in lines if each is not None]) or (
                f"{_split_text(found)}: state the same sharding for both sides of this line, or put "
                "jax.lax.with_sharding_constraint between them with a sharding that differs from each along one axis"
            )
        yield issue(
            facts,
            "full_rematerialization",
            f"{op_and_name(found.gather)} makes {shape_text(found.gather.shape)} whole on each of {size} devices, and "
            f"{join_words([in_line(each.name) for each in found.slices[:3]])} splits it again",
            fix,
            found.gather,
            *found.slices,
            bytes=found.bytes * times,
            seconds=facts.seconds_once(found.gather) * times,
            line=next(filter(facts.has_own_line, parts), None) or next(filter(facts.source, parts), None),
        )


_OF_ONE_DEVICE = (
    "one device has the array, as the result of a callback, and sends all of it to all devices: pass the array as an "
    "argument with its sharding, as jax.make_array_from_callback makes it"
)


def _staged(facts: ProgramFacts, found: Rematerialization, lines: list[Source]) -> str:
    """The fix with shardings between the two, which split the move into moves that XLA makes without a full gather.

    It is known if the program's shardings are, and if a value on one of the lines moves between two of them; empty
    otherwise. Where one collective is enough for xbuild, XLA started from a sharding with fewer axes.
    """
    rank = len(_dims(found.gather))  # another one if XLA reshaped the array first
    every = () if facts.stated is None else facts.stated.communications
    for each in sorted(every, key=lambda one: len(_dims(one.move.value)) != rank):
        value, had, needed = each.move.value, each.had, each.needed
        if had is None or needed is None or not isinstance(value.shape, Shape):
            continue
        user = each.why.user if isinstance(each.why, Reason) else None
        if not any(line in lines for line in (each.source, None if user is None else user.source)):
            continue
        if not all(map(_has_whole_axes, (had, needed))):
            continue
        if _is_part(needed, had) and _is_split_as_before(found):
            place = f" at {in_line(str(user.source))}" if user is not None and user.source is not None else ""
            return (
                f"{_split_text(found)} again: state {spec_of(had)} between the two instead of "
                f"{spec_of(needed)}{place}, or state no sharding there"
            )
        between = _between(had, needed, value.shape)
        if not between and _count_steps(had, needed, value.shape) > 1:
            continue
        moved = f"the array moves from {spec_of(had)} to {spec_of(needed)} at once" if between else _split_text(found)
        stages = ", then to ".join(str(spec_of(each)) for each in between or [had])
        return (
            f"{moved}: move it in {len(between) + 1 if between else 2} steps, with jax.lax.with_sharding_constraint to "
            f"{stages} between them, or state the same sharding for both sides"
        )
    return ""


def _between(had: Sharding, needed: Sharding, shape: Shape) -> list[Sharding]:
    """The shardings between two, of whole axes, with one step from each to the next; as few as possible.

    Source: Shardy, reshard to collectives.
    """
    after = [step.after for step in plan(had, needed, shape).steps[:-1]]
    states = [shard_dims(had.mesh, map(merge_parts, each.dims), each.unreduced) for each in after]
    states = [state for state in states if _has_whole_axes(state)]
    for stages in (*([state] for state in states), states):
        if all(_count_steps(*pair, shape) <= 1 for pair in pairwise([had, *stages, needed])):
            return stages
    return []


def _is_part(one: Sharding, other: Sharding) -> bool:
    """Whether a sharding splits each dimension along axes along which the other splits it, too."""
    pairs = zip(one.dims, other.dims, strict=True)
    return one.unreduced == other.unreduced and all({*own.axes} <= {*others.axes} for own, others in pairs)


def _is_split_as_before(found: Rematerialization) -> bool:
    """Whether the slices give each device a part of the shape that was gathered, along the same dimension."""
    (gathered, *_), dim = found.gather.operands, getattr(found.gather.attributes, "all_gather_dimension", None)
    return dim is not None and all(_dims(each) == _dims(gathered) and _cut_dims(each) == [dim] for each in found.slices)


def _has_whole_axes(sharding: Sharding) -> bool:
    return all(axis.size == sharding.mesh.size(axis.name) for axis in sharding.cut_axes)


def _count_steps(had: Sharding, needed: Sharding, shape: Shape) -> int:
    return len(plan(had, needed, shape).steps)


def _split_text(found: Rematerialization) -> str:
    """How the array was split before, and how it is split afterwards."""
    before = getattr(found.gather.attributes, "all_gather_dimension", None)
    after = _cut_dims(found.slices[0])
    was = f"the array was split along dimension {before}" if before is not None else "the array was split"
    return f"{was}, and is then split along dimension {join_words(map(str, after))}" if after else was


def _cut_dims(cut: Instruction) -> list[int]:
    """The dimensions along which a slice takes a part."""
    pairs = zip(_dims(cut.operands[0]), _dims(cut), strict=False)
    return [number for number, (whole, part) in enumerate(pairs) if whole != part]


def _dims(instruction: Instruction) -> tuple[int, ...]:
    return instruction.shape.dims if isinstance(instruction.shape, Shape) else ()


# ----------------------------------------------------------------------------
# replicated_state

_WEIGHS = PRODUCTS | UNITS | {"custom_call", "gather"}
"""Ops that use weights: products, look-ups, and what may have products inside."""


@rule(
    "Optimizer state is equal on all devices of an axis along which gradients are summed, and could be split.", "memory"
)
def replicated_state(facts: ProgramFacts) -> Iterator[Issue]:
    """Optimizer state has the shape of a weight, and only elementwise ops use it.

    In a program that is annotated with shardings, or one that JAX lowered, state that is split less than the weights of
    its shape counts too.
    """
    if facts.partitioned is not None:
        yield from _split_less(facts, facts.partitioned)
    state = [pair for pair in facts.state if isinstance(pair.parameter.shape, Shape) and pair.parameter.shape.rank]
    weights = {_shape(pair) for pair in state if _feeds_products(facts.flow, pair.parameter)}
    found: dict[tuple[str, int], list[StatePair]] = defaultdict(list)
    axes = _summed_axes(facts)
    for pair in state:
        if _shape(pair) not in weights or _feeds_products(facts.flow, pair.parameter):
            continue
        dims = _dims(pair.parameter)
        for axis in axes:
            if any(dim % axis.size == 0 for dim in dims) and facts.is_equal_within(
                pair.parameter, axis.groups, in_steps=True
            ):
                found[axis.name, axis.size].append(pair)
                break
    for (name, size), pairs in found.items():
        held = sum(size_of(pair.parameter) for pair in pairs)
        saved = held - held // size
        names = [facts.name_of_parameter(pair.parameter) for pair in pairs[:3]]
        more = [f"{len(pairs) - 3} more"] * (len(pairs) > 3)
        yield issue(
            facts,
            "replicated_state",
            f"{join_words([*names, *more])} {'are' if len(pairs) > 1 else 'is'} optimizer state of {short(held, 'B')} "
            f"that each of {size} devices along {name} holds equal and updates alike",
            f"split this state along {name} (ZeRO), which frees {short(saved, 'B')} on each device: give it a sharding "
            "that names the axis, reduce-scatter the gradients and gather the new weights",
            pairs[0].parameter,
            *(pair.parameter for pair in pairs[1:]),
            bytes=saved,
            seconds=2 * saved / facts.machine.memory_bandwidth,
            line=pairs[0].value,
        )


def _split_less(facts: ProgramFacts, partitioned: Partitioned) -> Iterator[Issue]:
    """State that enters and leaves in larger shards than each weight of its shape."""
    flow, outputs = facts.global_flow, flatten(partitioned.out_shardings)
    if flow is None:
        return
    shares: dict[tuple[int, ...], list[int]] = defaultdict(list)
    state: list[tuple[StatePair, int]] = []
    for pair in facts.global_state:
        given, returned = partitioned.in_shardings[pair.parameter.attributes.number], outputs[pair.number]
        if not isinstance(pair.value.shape, Shape):
            continue
        held = [_held_bytes(pair.value.shape, each) for each in (given, returned) if isinstance(each, Sharding)]
        found = [size_of(pair.value) // max(each, 1) for each in held]
        if len(found) < 2:
            continue
        if _feeds_products(flow, pair.parameter):
            shares[_shape(pair)].append(min(found))
        else:
            state.append((pair, max(found)))
    larger = [(pair, share) for pair, share in state if share < min(shares.get(_shape(pair), [0]))]
    if not larger:
        return
    pairs = [pair for pair, _ in larger]
    holds = sum(size_of(pair.value) // share for pair, share in larger)
    fits = sum(size_of(pair.value) // min(shares[_shape(pair)]) for pair in pairs)
    names = [in_line(name_in_report(pair.parameter)) for pair in pairs[:3]]
    more = [f"{len(pairs) - 3} more"] * (len(pairs) > 3)
    several = len(pairs) > 1
    yield issue(
        facts,
        "replicated_state",
        f"{join_words([*names, *more])} {'are' if several else 'is'} optimizer state that is split less than the "
        f"{'weights' if several else 'weight'} of {'their' if several else 'its'} shape: a device holds "
        f"{short(holds, 'B')} of it instead of {short(fits, 'B')}, and each step gathers the update",
        "give this state the sharding of its weight, in in_shardings and in out_shardings",
        pairs[0].value,
        *(pair.parameter for pair in pairs),
        bytes=holds - fits,
        seconds=_seconds_of_updates(facts, partitioned, pairs),
    )


@frozen
class _SummedAxis:
    """An axis along which the program sums, with one of its groups of devices for each place on the other axes."""

    name: str
    size: int
    groups: tuple[tuple[int, ...], ...]


def _summed_axes(facts: ProgramFacts) -> list[_SummedAxis]:
    """The axes of the reductions of arrays in a program, the most bytes first."""
    sums: dict[str, int] = defaultdict(int)
    axes: dict[str, _SummedAxis] = {}
    for row in facts.rows:
        is_sum = base_of(row.instruction) in SUMMING
        if is_sum and row.collective is not None and row.collective.group_size > 1:
            name = row.collective.axes or "the devices of each group"
            sums[name] += row.collective.payload * row.times
            axes[name] = _SummedAxis(name, row.collective.group_size, facts.groups(row.instruction))
    return [axes[name] for name in sorted(axes, key=lambda name: -sums[name])]


def _shape(pair: StatePair) -> tuple[int, ...]:
    return _dims(pair.parameter)


def _feeds_products(flow: ValueFlow, parameter: Instruction) -> bool:
    """Whether products use a parameter, so that it is a weight and not only state of the optimizer."""
    passed = MOVES | ELEMENTWISE | {"tuple"}
    reached = flow.reached(parameter, lambda each: each.opcode in passed)
    return any(each.opcode in _WEIGHS for each in reached)


# ----------------------------------------------------------------------------
# gathered_state


@rule("State enters in shards and leaves in larger ones: each step gathers it, and the next splits it again.", "memory")
def gathered_state(facts: ProgramFacts) -> Iterator[Issue]:
    """The rule needs a program that is annotated with shardings, or one that JAX lowered.

    State is a result that elementwise ops compute from an argument of its shape.
    """
    if facts.partitioned is None:
        return
    grown = [*_grown_state(facts, facts.partitioned)]
    if not grown:
        return
    pairs = [each.pair for each in grown]
    names = [in_line(name_in_report(pair.parameter)) for pair in pairs[:3]]
    more = [f"{len(pairs) - 3} more"] * (len(pairs) > 3)
    enter, leave, them = ("enter", "leave", "them") if len(pairs) > 1 else ("enters", "leaves", "it")
    form = "replicated" if all(each.is_whole for each in grown) else "in larger shards"
    before, after = sum(each.before for each in grown), sum(each.after for each in grown)
    yield issue(
        facts,
        "gathered_state",
        f"{join_words([*names, *more])} {enter} in shards and {leave} {form}: each step gathers {them}, and a device "
        f"holds {short(after, 'B')} of the new state instead of {short(before, 'B')}",
        "return this state with the sharding of its argument, such as the same specs in out_shardings as in "
        "in_shardings; then donate_argnums also reuses its memory",
        pairs[0].value,
        *(pair.parameter for pair in pairs),
        bytes=after - before,
        seconds=_seconds_of_updates(facts, facts.partitioned, pairs),
    )


@frozen
class _GrownState:
    """State of which a device holds `before` bytes of the argument and `after` bytes of the result."""

    pair: StatePair
    before: int
    after: int
    is_whole: bool


def _grown_state(facts: ProgramFacts, partitioned: Partitioned) -> Iterator[_GrownState]:
    """The state of which a device holds more when the program ends than when it begins."""
    outputs = flatten(partitioned.out_shardings)
    for pair in facts.global_state:
        shape = pair.value.shape
        given, returned = partitioned.in_shardings[pair.parameter.attributes.number], outputs[pair.number]
        if isinstance(shape, Shape) and isinstance(given, Sharding) and isinstance(returned, Sharding):
            before, after = _held_bytes(shape, given), _held_bytes(shape, returned)
            if after > before:
                yield _GrownState(pair, before, after, not returned.cut_axes)


def _seconds_of_updates(facts: ProgramFacts, partitioned: Partitioned, pairs: list[StatePair]) -> float:
    """The seconds of the collectives that move state to be updated or returned."""
    state = {each.name for pair in pairs for each in (pair.parameter, pair.value)}
    root = partitioned.whole.entry.root

    def is_update(each: Communication) -> bool:
        return isinstance(each.why, Reason) and (each.why.user is root or each.why.user.opcode in ELEMENTWISE)

    moves = (each for each in partitioned.costs(facts.machine) if each.communication.value in state)
    return sum(each.total_seconds for each in moves if is_update(each.communication))


def _held_bytes(shape: Shape, sharding: Sharding) -> int:
    return shape.dtype[local_dims(sharding.padded(shape.rank), shape.dims)].bytes


# ----------------------------------------------------------------------------
# avoidable_gather

MOST_TRIED = 5
"""The collectives of a program for which other shardings are tried, the slowest first."""

MOST_PARTITIONED = 3_000
"""The instructions of the largest program that is partitioned once for each sharding that is tried."""


@rule("The partitioner gathers or moves an array that would stay in place if one value stated a different sharding.")
def avoidable_gather(facts: ProgramFacts) -> Iterator[Issue]:
    """The rule needs a program that is annotated with shardings, or one that JAX lowered.

    The program is partitioned again by xbuild with each other sharding. It must be faster as a whole and send fewer
    bytes, by the least share that is reported; state is not replicated.
    """
    partitioned = facts.partitioned
    if partitioned is None or len(facts.flow.home) > MOST_PARTITIONED:
        return
    state = {pair.parameter.name for pair in facts.state}
    names = {each.name: name_of(each) for each in partitioned.whole.entry.parameters}
    moves = [each for each in partitioned.costs(facts.machine) if each.communication.opcode not in SUMMING]
    for each in sorted(moves, key=lambda cost: -cost.total_seconds)[:MOST_TRIED]:
        if each.total_seconds < facts.least_seconds:
            break
        communication = each.communication
        tried = (
            _gain(facts, partitioned, one) for one in advise(partitioned, communication.name) if one.value not in state
        )
        gains = [
            gain
            for gain in tried
            if gain.seconds > facts.least_seconds and gain.is_lighter and gain.share_of_bytes > facts.least_share
        ]
        if not gains:
            continue
        best = max(gains, key=lambda gain: gain.seconds)
        advice = best.advice
        bytes_saved = advice.bytes_before - advice.bytes
        held = f"{short(advice.held, 'B')} of it instead of {short(advice.held_before, 'B')}"
        yield Issue(
            "avoidable_gather",
            "warning",
            f"{communication.opcode.replace('_', '-')} {in_line(communication.name)}, which xbuild's partitioner "
            f"inserts and XLA's may not, moves {name_of(communication.move.value)}: {communication.reason}",
            _line_of(facts, communication),
            (communication.name, communication.value, advice.value),
            fix=f"state {names.get(advice.value, in_line(advice.value))} as {describe(advice.sharding)}: a device then "
            f"sends {_sent_text(advice)}, and holds "
            f"{'as much of it as before' if advice.held == advice.held_before else held}",
            facts={"bytes": bytes_saved, "seconds": best.seconds},
        )


def _sent_text(advice: Advice) -> str:
    """What a device sends, against what it sent before; the difference where both read the same."""
    now, before = short(advice.bytes, "B"), short(advice.bytes_before, "B")
    if now == before:
        return f"{short(advice.bytes_before - advice.bytes, 'B')} less of {before}"
    return f"{now} in total instead of {before}"


def _line_of(facts: ProgramFacts, communication: Communication) -> Source | None:
    """The user's line of the value that is moved; without metadata, of the op that takes it, or of the nearest one."""
    own, why = communication.source, communication.why
    user = why.user if isinstance(why, Reason) else None
    place = next((each for each in facts.flow.home if each.name == communication.name), None)
    lines = (
        own,
        None if user is None else user.source,
        None if user is None else facts.line_of_caller(user),
        None if place is None else facts.source(place),
    )
    return next((each for each in lines if each is not None and type(each) is not TextSource), own)


@frozen
class _Gain:
    """The seconds that a program saves with a sharding, collectives and replicated work included."""

    advice: Advice
    seconds: float

    @property
    def is_lighter(self) -> bool:
        """Whether at least as many bytes are no longer sent as a device holds in addition."""
        advice = self.advice
        return advice.bytes_before - advice.bytes >= advice.held - advice.held_before

    @property
    def share_of_bytes(self) -> float:
        """The share of the bytes that a device sends which is no longer sent."""
        return 1 - self.advice.bytes / max(self.advice.bytes_before, 1)


def _gain(facts: ProgramFacts, partitioned: Partitioned, advice: Advice) -> _Gain:
    propagated = partitioned.propagated
    assert propagated is not None
    other = partition(annotated(propagated.given, {advice.value: advice.sharding}), mesh=partitioned.mesh)
    return _Gain(advice, facts.total_seconds - facts.of_partition(other).total_seconds)
