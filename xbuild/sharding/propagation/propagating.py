"""Propagates shardings: from those that a program states to one for each of its values.

Sections:

    propagate: the way from a program to its result
    Stated shardings, given to the tensors of the program
    Manual regions, whose values propagate only along the axes that are not manual
    How axes pass along the factors of one instruction: the basic strategy and the aggressive one
    FixedPoint: every node propagates until none changes an array, level by level
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from attrs import evolve

from shape_inference import refuse

from ...core.graph import Computation, Instruction, Module, module_in
from ...process import limits, progress
from ...properties.effects import reaches_outside
from ...properties.mesh import Mesh
from ...properties.placement import GROUP_ID, IN_SHARDINGS, OUT_SHARDINGS, SHARDING_GROUP
from ..hlo_text import ShardGroup, parsed
from ..manual_regions import (
    FULL_TO_SHARD,
    OUT_OF,
    SHARD_TO_FULL,
    axes_of,
    check_is_global,
    is_complete,
    regions,
    stated_axes,
    target_of,
)
from ..rules import Factor, FactorMap, ShardingRule
from ..sharding import Axis, DimSharding, Placement, Sharding
from ..shardy_text import shardy_meshes, shardy_shardings
from ..stated_shardings import SHARDING, mesh_of_shardings, on_one_mesh, sharding_of, with_shardings
from .dialect import Dialect
from .flow import (
    Direction,
    Flow,
    FlowNode,
    copy_callees,
    flow_of,
    identity_rule,
    is_entrance,
    merge,
    number_nodes,
    of_one,
)
from .propagated import Propagated, shardings_of
from .tensors import (
    Axes,
    FactorState,
    ShardingStep,
    Tensor,
    Turn,
    View,
    begins,
    common,
    contains,
    count,
    dims_of,
    is_beginning,
    is_strict_beginning,
    outside,
    priorities,
    start_priority,
    view,
)

# ----------------------------------------------------------------------------
# propagate: the way from a program to its result

StrategyName: TypeAlias = Literal["shardy", "dialect"]


def propagate(
    module: Module | Computation,
    *,
    mesh: Mesh | None = None,
    strategy: StrategyName = "shardy",
    factors: str = "aggressive",
) -> Propagated:
    """The program with a sharding for every array, propagated from those that it states.

    `shardy` propagates forward and backward to a fixed point, by the priorities of the user, of ops, and of factors
    (`factors`: aggressive, basic, or basic_then_aggressive); open dimensions take axes, closed ones do not. `dialect`
    is the strategy of MLIR's shard dialect: each op once, backward and then forward, all or nothing.
    `mesh` defaults to the mesh that the program names. Raises TypeError if the argument is not a program;
    invalid_attribute if nothing is annotated and no mesh is given, or for an unknown strategy; invalid_operand for a
    program that is already partitioned.

    >>> import xbuild as xb
    >>> text = '''HloModule m
    ... ENTRY e {
    ...   a = f32[8,4] parameter(0), sharding={mesh['x'=2,'y'=2], [{'x'}, {'y'}]}
    ...   b = f32[4,6] parameter(1)
    ...   ROOT y = f32[8,6] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }'''
    >>> found = propagate(xb.parse_hlo(text))
    >>> [[[axis.name for axis in dim.axes] for dim in found.sharding(name).dims] for name in ("b", "y")]
    [[['y'], []], [['x'], []]]
    >>> found.cause("b").source
    'a'

    Source: Shardy, propagation; MLIR, shard dialect, sharding propagation.
    """
    program = global_program(module, "propagate")
    found_mesh = mesh or mesh_of_shardings(program)
    if found_mesh is None:
        refuse(
            "invalid_attribute",
            f"module {program.name} states no sharding, and no mesh is given, so there is nothing to propagate",
            "annotate a value: xb.shard.annotated(module, {name: sharding})",
            "or pass the mesh of the program: mesh=xb.Mesh(x=2)",
        )
    if strategy not in ("shardy", "dialect"):
        refuse("invalid_attribute", f"strategy={strategy!r}, expected 'shardy' or 'dialect'")
    if factors not in STRATEGIES:
        refuse("invalid_attribute", f"factors={factors!r}, expected one of {', '.join(STRATEGIES)}")
    program = on_one_mesh(program, found_mesh)
    check_is_global(program, found_mesh, "propagate")
    program = copy_callees(program)
    with limits.no_collection():
        flow = flow_of(program)
        read_stated_shardings(flow, found_mesh)
        read_regions(flow, found_mesh)
        number_nodes(flow)
        if strategy == "dialect":
            Dialect(flow).run()
        else:
            FixedPoint(flow, factors).run()
        shardings = shardings_of(flow, found_mesh)
        written = {each: sharding for each, sharding in shardings.items() if not _keeps_stated_sharding(each)}
        return Propagated(with_shardings(program, written), found_mesh, strategy, shardings, flow)


def _keeps_stated_sharding(instruction: Instruction) -> bool:
    """Whether a value keeps its stated sharding whatever its users state.

    So do infeeds, which the host shards, and effects that are placed on a device.
    """
    if SHARDING not in instruction.annotations or not reaches_outside(instruction):
        return False
    stated = sharding_of(instruction)
    several = stated if isinstance(stated, tuple) else (stated,)
    return instruction.opcode == "infeed" or any(
        isinstance(each, Placement) and each.device is not None for each in several
    )


def global_program(given: object, caller: str) -> Module:
    """The module that is given, or a module of what is: of a function that JAX lowered, before XLA partitions it."""
    found = module_in(given, is_global=True)
    if isinstance(found, Computation):
        return Module(found.name, found)
    if not isinstance(found, Module):
        raise TypeError(
            f"{caller}: expected a program, got {given!r}; xb.parse_hlo(text) and builder.build() return one"
        )
    return found


# ----------------------------------------------------------------------------
# Stated shardings, given to the tensors of the program

_UNSPECIFIED = re.compile(r"unspecified_dims=\[([\d,]+)\]")


def read_stated_shardings(flow: Flow, mesh: Mesh) -> None:
    """Give tensors the shardings that instructions state; if an array has several, the first one counts.

    If the root of the entry is a tuple, its shardings are those of the results, which are tensors of their own. Values
    of one group become one tensor. An array whose sharding axes cannot express keeps it, and takes no others.
    """
    groups: dict[int | str, Tensor] = {}
    kept = _manual_axes_at_ends(flow, mesh)
    root = flow.module.entry.root
    for instruction in flow.leaves:
        if target_of(instruction) == SHARDING_GROUP:
            number = instruction.annotations.get("frontend_attributes", {}).get(GROUP_ID, "")
            for tensor in (tensor for each in instruction.operands for tensor in flow.tensors_of(each)):
                merge(groups.setdefault(str(number), of_one(tensor)), of_one(tensor))
        if SHARDING not in instruction.annotations:
            continue
        found = sharding_of(instruction, mesh)
        each = found if isinstance(found, tuple) else (found,)
        tensors = flow.tensors_of(instruction)
        if instruction is root and instruction.opcode == "tuple":
            flow.results = [Tensor(tensor.dims, names=[(root, n)]) for n, tensor in enumerate(tensors)]
            tensors = tuple(flow.results)
        for tensor, sharding in zip(tensors, each, strict=False):
            _give_stated(of_one(tensor), _open_unspecified(instruction, sharding, kept.get(instruction, ())), mesh)
        for tensor, group in zip(tensors, _groups(instruction), strict=False):
            if group is not None:
                merge(groups.setdefault(group.number, of_one(tensor)), of_one(tensor))


def _manual_axes_at_ends(flow: Flow, mesh: Mesh) -> dict[Instruction, Axes]:
    """The manual axes where arrays enter and leave regions: there they split only the stated dimensions."""
    into = [each for each in flow.leaves if target_of(each) == FULL_TO_SHARD]
    out_of = [each for each in flow.leaves if target_of(each) == SHARD_TO_FULL]
    axes = {each.operands[0]: stated_axes(each, mesh) for each in into}
    return axes | {each: stated_axes(each.operands[0], mesh) for each in out_of}


def _open_unspecified(
    instruction: Instruction, sharding: Sharding | Placement | None, kept: Axes
) -> Sharding | Placement | None:
    """A constraint's sharding in which the dimensions that it leaves unspecified (`unspecified_dims`) are open.

    No dimension takes the axes that are `kept`.
    """
    if instruction.opcode != "custom_call" or not isinstance(sharding, Sharding):
        return sharding
    listed = _UNSPECIFIED.search(str(instruction.attributes.backend_config))
    places = {int(each) for each in listed[1].split(",")} if listed else {*()}
    dims = enumerate(sharding.padded(max(places, default=-1) + 1).dims)
    opened = tuple(evolve(dim, is_open=dim.is_open or n in places) for n, dim in dims)
    named = (*sharding.cut_axes, *sharding.replicated, *sharding.unreduced, *sharding.manual)
    free = tuple(axis for axis in kept if not any(axis.overlaps(each) for each in named))
    return evolve(sharding, dims=opened, replicated=(*sharding.replicated, *free) if places else sharding.replicated)


def _groups(instruction: Instruction) -> Iterator[ShardGroup | None]:
    found = parsed(str(instruction.annotations[SHARDING]))
    yield from (each.group for each in (found if isinstance(found, tuple) else (found,)))


def _give_stated(tensor: Tensor, sharding: Sharding | Placement | None, mesh: Mesh) -> None:
    """Give a tensor its stated sharding, unless it already has one; one without axes makes it fixed."""
    if tensor.stated is not None or sharding is None:
        return
    if isinstance(sharding, Placement):
        if sharding.kind == "replicated":
            sharding = Sharding(mesh)
        elif sharding.kind != "unknown":
            tensor.is_fixed = True
            tensor.placement = sharding
            return
        else:
            return
    tensor.stated = _drop_unit_axes(sharding.padded(len(tensor.dims)))
    if sharding.manual and not sharding.cut_axes and len(sharding.manual) == len(mesh.axes):
        tensor.is_fixed = True


def _drop_unit_axes(sharding: Sharding) -> Sharding:
    """A sharding without axes of size 1, which split nothing."""

    def large(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(axis for axis in axes if axis.size > 1)

    dims = tuple(evolve(dim, axes=large(dim.axes)) for dim in sharding.dims)
    return evolve(sharding, dims=dims, replicated=large(sharding.replicated), unreduced=large(sharding.unreduced),
                  manual=large(sharding.manual))  # fmt: skip


# ----------------------------------------------------------------------------
# Manual regions, whose values propagate only along the axes that are not manual
#
# Inside, values are those of each device along the manual axes.


def read_regions(flow: Flow, mesh: Mesh) -> None:
    """Give the arrays that enter and leave manual regions the shardings that the regions state.

    Inside, nothing propagates along the manual axes. Other axes pass from the global arrays to the local ones and back.

    Source: Shardy, sdy.manual_computation.
    """
    found = regions(flow.module, mesh)
    for instruction in flow.leaves:
        if is_entrance(instruction):
            _read_end_shardings(flow, instruction, flow.entrances[instruction], IN_SHARDINGS)
        elif target_of(instruction) == OUT_OF:
            _read_end_shardings(flow, instruction, flow.tensors_of(instruction), OUT_SHARDINGS)
    for instruction in flow.leaves:
        if manual := found.axes_at(instruction):
            for tensor in flow.tensors_of(instruction):
                _state_inside(tensor, manual, mesh)
    for instruction in flow.leaves:
        if is_entrance(instruction) or target_of(instruction) == OUT_OF:
            _connect_end(flow, instruction, axes_of(instruction, mesh))


def _read_end_shardings(flow: Flow, instruction: Instruction, tensors: tuple[Tensor, ...], key: str) -> None:
    """Give the arrays at an end of a region the shardings that its attribute states."""
    text = instruction.annotations.get("frontend_attributes", {}).get(key)
    if text is not None:
        found = shardy_shardings(str(text), shardy_meshes(flow.module))
        for tensor, sharding in zip(tensors, found, strict=False):
            if isinstance(sharding, Sharding):
                tensor.stated = sharding.padded(len(tensor.dims))


def _state_inside(tensor: Tensor, manual: tuple[Axis, ...], mesh: Mesh) -> None:
    """Keep an array inside a region from taking manual axes; if all axes are manual, it takes none."""
    if is_complete(manual, mesh):
        tensor.is_fixed, tensor.stated = True, Sharding(mesh, manual=manual).padded(len(tensor.dims))
    else:
        stated = tensor.stated or Sharding(mesh, (DimSharding(is_open=True),) * len(tensor.dims))
        tensor.stated = evolve(stated, manual=manual)


def _connect_end(flow: Flow, instruction: Instruction, manual: tuple[Axis, ...]) -> None:
    """Add the nodes by which axes that are not manual pass an end of a region."""
    is_into = is_entrance(instruction)
    values = flow.entrances[instruction] if is_into else flow.tensors_of(instruction)
    others = flow.tensors_of(instruction) if is_into else _operand_tensors(flow, instruction)
    for outside_array, local in zip(values, others, strict=True):
        if outside_array.stated is not None and not local.is_fixed:
            inner, outer = _maps(outside_array, local.dims, manual)
            rule = ShardingRule(
                _factors(outside_array, local.dims, manual), *((outer,), (inner,))[:: 1 if is_into else -1]
            )
            tensors = (outside_array, local) if is_into else (local, outside_array)
            flow.nodes.append(FlowNode(rule, tensors, 1, "alike", instruction, "manual region"))


def _operand_tensors(flow: Flow, instruction: Instruction) -> tuple[Tensor, ...]:
    return tuple(tensor for operand in instruction.operands for tensor in flow.tensors_of(operand))


def _count_manual_parts(outside_array: Tensor, manual: Sequence[Axis]) -> list[int]:
    """The number of parts into which the manual axes split each dimension."""
    assert outside_array.stated is not None
    return [count(axis for axis in dim.axes if axis in manual) for dim in outside_array.stated.dims]


def _factors(outside_array: Tensor, dims: Sequence[int], manual: Sequence[Axis]) -> tuple[Factor, ...]:
    pairs = zip(_count_manual_parts(outside_array, manual), dims, strict=True)
    return tuple(Factor(size) for pair in pairs for size in pair)


def _maps(outside_array: Tensor, dims: Sequence[int], manual: Sequence[Axis]) -> tuple[FactorMap, FactorMap]:
    """The factors of the local array and of the global one: parts along manual axes, then the elements of a part."""
    inner = tuple((2 * dim + 1,) for dim in range(len(dims)))
    sizes = enumerate(_count_manual_parts(outside_array, manual))
    return inner, tuple((2 * dim, 2 * dim + 1) if size > 1 else (2 * dim + 1,) for dim, size in sizes)


# ----------------------------------------------------------------------------
# How axes pass along the factors of one instruction: the basic strategy and the aggressive one

Directions: TypeAlias = Sequence[Direction]
Strategy: TypeAlias = Callable[[FlowNode, list[View], Directions], None]
"""Changes the views of an instruction's arrays; directions say for each factor where its axes may go."""


def find_compatible_axes(node: FlowNode, views: Sequence[View], factor: int, direction: Direction) -> Axes:
    """The axes of a factor on which all arrays agree; operands, results, or both propose them."""
    if direction == "none":
        return ()
    proposing, taking = list(views[: node.num_operands]), list(views[node.num_operands :])
    if direction == "backward":
        proposing, taking = taking, proposing
    axes: Axes = ()
    may_grow = True
    for each in proposing:
        if factor in each:
            axes, may_grow = common(axes, each[factor].axes, may_grow)
    may_grow = may_grow and direction == "both"
    for each in taking:
        if factor in each:
            axes, may_grow = common(axes, each[factor].axes, may_grow)
    return axes


def _truncate(axes: Axes, keep: Callable[[Axis, int], Axis | None]) -> Axes:
    """Axes up to the first that must change; `keep` returns the part of an axis to keep, given the parts before it."""
    parts = 1
    for place, axis in enumerate(axes):
        kept = keep(axis, parts)
        if kept is None:
            return axes[:place]
        if kept != axis:
            return (*axes[:place], kept)
        parts *= axis.size
    return axes


def _restrict_to_array(axis: Axis, tensor: Tensor, state: FactorState, parts: int, size: int) -> Axis | None:
    """The part of an axis that an array can take along a factor of this size that is already split into `parts`."""
    kept = outside(axis, tensor.banned)
    if kept is None or any(contains(each, kept) for each in state.axes):
        return kept
    if not state.is_closed and not state.overflow:
        fitting = kept if state.is_innermost else _restrict_to_divisor(kept, parts, size)
        if fitting is not None:
            return fitting
    return state.axes[-1] if state.axes and begins(state.axes[-1], kept) else None


def _restrict_to_divisor(axis: Axis, parts: int, size: int) -> Axis | None:
    """The outer part of an axis that divides the rest of a factor."""
    if size % parts:
        return None
    shared = math.gcd(size // parts, axis.size)
    return axis if shared == axis.size else Axis(axis.name, shared, axis.pre_size) if shared > 1 else None


def _restrict_to_unused(axis: Axis, own: View, factor: int) -> Axis | None:
    """The part of an axis that no other factor of the array uses."""
    kept: Axis | None = axis
    for other, state in own.items():
        if other != factor and kept is not None and (state.axes or state.overflow):
            kept = outside(kept, state.axes + state.overflow)
    return kept


def basic(node: FlowNode, views: list[View], directions: Directions) -> None:
    """Give each factor the axes that fit all arrays.

    Source: Shardy, basic propagation.
    """
    for factor, record in enumerate(node.rule.factors):
        axes = find_compatible_axes(node, views, factor, directions[factor])
        if not axes:
            continue
        for tensor, own in zip(node.tensors, views, strict=True):
            axes = _truncate(axes, lambda axis, parts, own=own, factor=factor: _restrict_to_unused(axis, own, factor))  # type: ignore[misc]
            if factor in own:
                axes = _fit(axes, tensor, own[factor], record.size)
        for own in views:
            if factor in own and is_strict_beginning(own[factor].axes, axes):
                own[factor].axes = axes


def _fit(axes: Axes, tensor: Tensor, state: FactorState, size: int) -> Axes:
    return _truncate(axes, lambda axis, parts: _restrict_to_array(axis, tensor, state, parts, size))


def aggressive(node: FlowNode, views: list[View], directions: Directions) -> None:
    """Give each factor of each array as many axes as fit it.

    Of two factors that compete for an axis, the one from the larger array gets it; then (elementwise) the one with more
    parts, of the earlier array, the earlier factor.

    Source: Shardy, aggressive propagation.
    """
    proposed = [
        find_compatible_axes(node, views, factor, directions[factor]) for factor in range(len(node.rule.factors))
    ]
    if not any(proposed):
        return
    order = _order_factors(node, views, proposed)
    places = [*range(node.num_operands, len(views)), *range(node.num_operands)]
    for place in places:
        for factor in order:
            axes = _expand(node, place, views, factor, proposed[factor])
            if axes:
                views[place][factor].axes = axes


def _expand(node: FlowNode, place: int, views: Sequence[View], factor: int, proposed: Axes) -> Axes:
    """The axes that an array gets along a factor; none if it gets no more than it has."""
    own = views[place]
    if factor not in own:
        return ()
    before = own[factor].axes
    axes = _fit(proposed, node.tensors[place], own[factor], node.rule.factors[factor].size)
    if not is_strict_beginning(before, axes):
        return ()
    axes = _truncate(axes, lambda axis, parts: _restrict_to_unused(axis, own, factor))
    if node.is_elementwise and place < node.num_operands:
        axes = _restrict_to_results(axes, factor, views[node.num_operands :])
    return axes if is_strict_beginning(before, axes) else ()


def _restrict_to_results(axes: Axes, factor: int, results: Iterable[View]) -> Axes:
    """Axes of an elementwise op's operand, limited to those of each result, so that operands pass on none."""
    for own in results:
        if factor in own and is_strict_beginning(own[factor].axes, axes):
            axes = own[factor].axes
    return axes


def _order_factors(node: FlowNode, views: Sequence[View], proposed: Sequence[Axes]) -> list[int]:
    """The factors in the order in which they win conflicts."""
    sizes = [math.prod(node.rule.factors[factor].size for factor in own) for own in views]
    keys = {}
    for factor, axes in enumerate(proposed):
        sources = [n for n, own in enumerate(views) if axes and factor in own and is_beginning(axes, own[factor].axes)]
        best = max(sources, key=lambda n: (sizes[n], -n), default=-1)
        parts = count(axes) if node.is_elementwise else 0
        keys[factor] = (-sizes[best] if sources else 1, -parts, best, factor)
    return sorted((f for f in keys if proposed[f]), key=keys.__getitem__)


# ----------------------------------------------------------------------------
# FixedPoint: every node propagates until none changes an array, level by level

STRATEGIES: dict[str, tuple[Strategy, ...]] = {
    "aggressive": (aggressive,),
    "basic": (basic,),
    "basic_then_aggressive": (basic, aggressive),
}
LEVELS = range(5)


class FixedPoint:
    """Propagation over the nodes of a flow, by an order of turns: priorities of the user, levels, strategies."""

    def __init__(self, flow: Flow, strategy: str = "aggressive", levels: Iterable[int] = LEVELS) -> None:
        self._flow, self._strategies, self._levels = flow, STRATEGIES[strategy], tuple(levels)
        self._nodes = flow.nodes
        self._results = [_make_result_node(flow, number) for number in range(len(flow.results))]
        self._making: dict[Tensor, list[FlowNode]] = {}
        self._taking: dict[Tensor, list[FlowNode]] = {}
        for node in self._nodes:
            for place, tensor in enumerate(node.tensors):
                nodes = self._taking if place < node.num_operands else self._making
                nodes.setdefault(tensor, []).append(node)
        self._turn, self._count = Turn(0, 0, ""), 0
        self._changes: dict[Hashable, list[Change]] = {}
        self._numbers: dict[Hashable, int] = {}  # of equal rules, and of equal states of arrays
        self._rules: dict[FlowNode, int] = {}
        self._states: dict[Tensor, tuple[int, int]] = {}  # with the version that had the state

    def run(self) -> None:
        """Propagate at all levels for each priority of the user."""
        tensors = [*self._flow.tensors(), *self._flow.results]
        for priority in priorities(tensors):
            for tensor in tensors:
                start_priority(tensor, priority)
            for level in self._levels:
                for strategy in self._strategies:
                    self._turn = Turn(priority, level, strategy.__name__)
                    self._propagate_level(strategy, level)

    def _propagate_level(self, strategy: Strategy, level: int) -> None:
        directions = [node.directions(level) for node in self._nodes]
        self._propagate_to_results(strategy)
        waiting = [node for node in reversed(self._nodes) if any(each != "none" for each in directions[node.number])]
        listed = [False] * len(self._nodes)
        for node in waiting:
            listed[node.number] = True
        with progress.during("propagating shardings", lambda: len(waiting), None, "instructions left to visit"):
            self._visit(waiting, listed, strategy, directions)
        self._propagate_to_results(strategy)

    def _visit(
        self,
        waiting: list[FlowNode],
        listed: list[bool],
        strategy: Strategy,
        directions: Sequence[Sequence[Direction]],
    ) -> None:
        """Visit the nodes that wait, and those whose arrays change meanwhile."""
        while waiting:
            limits.ask()
            node = waiting.pop()
            listed[node.number] = False
            for tensor in self._propagate(node, strategy, directions[node.number]):
                is_twice = node.tensors.count(tensor) > 1  # axes along one of its factors lead to axes along another
                for other in self._nodes_of(tensor):
                    if (other is not node or is_twice) and not listed[other.number]:
                        listed[other.number] = True
                        waiting.append(other)

    def _propagate_to_results(self, strategy: Strategy) -> None:
        for node in self._results:
            self._propagate(node, strategy, node.directions(4))

    def _nodes_of(self, tensor: Tensor) -> list[FlowNode]:
        """The nodes of an array: those that produce it, then those that take it, the last one first."""
        return self._making.get(tensor, []) + self._taking.get(tensor, [])[::-1]

    def _propagate(self, node: FlowNode, strategy: Strategy, directions: Sequence[Direction]) -> list[Tensor]:
        """Propagate along one node, with the source of each step; the arrays whose axes changed."""
        tensors = node.tensors
        if not any(tensor.is_cut for tensor in tensors):
            return []
        seen = (strategy, directions, *[tensor.version for tensor in tensors])
        if seen == node.seen:
            return []
        changes = self._find_changes(node, strategy, directions)
        for number, axes, sources in changes:
            tensor = tensors[number]
            for dim, source, source_dim in sources:
                self._count += 1
                step = (dim, tensor.axes[dim], axes[dim], node, tensors[source], source_dim, self._turn, self._count)
                tensor.steps.append(ShardingStep(*step))
        for number, axes, _ in changes:
            tensors[number].axes = [*axes]
            tensors[number].version += 1
        node.seen = (strategy, directions, *[tensor.version for tensor in tensors])
        if any(tensors.count(tensors[number]) > 1 for number, _, _ in changes):
            node.seen = ()
        return [tensors[number] for number, _, _ in changes]

    def _find_changes(self, node: FlowNode, strategy: Strategy, directions: Sequence[Direction]) -> list[Change]:
        """The changes along a node, computed once for nodes with equal rules whose arrays have equal states."""
        rule = node.rule, node.num_operands, node.is_elementwise
        if node not in self._rules:
            self._rules[node] = self._numbers.setdefault(rule, len(self._numbers))
        key = (strategy, directions, self._rules[node], *map(self._state, node.tensors))
        if key not in self._changes:
            self._changes[key] = [*_list_changes(node, strategy, directions)]
        return self._changes[key]

    def _state(self, tensor: Tensor) -> int:
        """A number for all about an array on which its changes depend."""
        version, number = self._states.get(tensor, (-1, 0))
        if version != tensor.version:
            state = (*tensor.axes,), (*tensor.closed,), tensor.banned, tensor.is_fixed
            number = self._numbers.setdefault(state, len(self._numbers))
            self._states[tensor] = tensor.version, number
        return number


Change: TypeAlias = tuple[int, list[Axes], list[tuple[int, int, int]]]
"""The place of an array at a node, its new axes, and for each dimension that changes the place of the array, and its
dimension, from which the axes come."""


def _list_changes(node: FlowNode, strategy: Strategy, directions: Sequence[Direction]) -> Iterator[Change]:
    """The arrays of a node to which a strategy gives other axes."""
    views = _views(node)
    strategy(node, views, directions)
    before: list[View] = []
    for number, (tensor, own, dims) in enumerate(zip(node.tensors, views, node.maps, strict=True)):
        axes = dims_of(own, dims, node.rule.factors)
        if axes != tensor.axes and not tensor.is_fixed:
            before = before or _views(node)
            moved = [dim for dim, (old, new) in enumerate(zip(tensor.axes, axes, strict=True)) if old != new]
            yield number, axes, [(dim, *_find_source(node, before, number, dim)) for dim in moved]


def _views(node: FlowNode) -> list[View]:
    factors = node.rule.factors
    return [view(tensor, dims, factors) for tensor, dims in zip(node.tensors, node.maps, strict=True)]


def _find_source(node: FlowNode, views: Sequence[View], number: int, dim: int) -> tuple[int, int]:
    """The place of the array, and its dimension, from which a dimension gets its axes.

    It is one with more axes along the same factor.
    """
    best: tuple[int, int, int, int] | None = None
    for factor in node.maps[number][dim]:
        own = views[number][factor].axes
        for other, tensor in enumerate(node.tensors):
            axes = views[other][factor].axes if factor in views[other] and other != number else ()
            if len(axes) and axes != own and is_beginning(own, axes):
                place = next(n for n, numbers in enumerate(node.maps[other]) if factor in numbers)
                size = sum(len(each) for each in tensor.axes)
                if best is None or (len(axes), size) > best[:2]:
                    best = (len(axes), size, other, place)
    return (best[2], best[3]) if best is not None else (number, dim)


def _make_result_node(flow: Flow, number: int) -> FlowNode:
    """The edge from a leaf of the entry's root to the result whose sharding the program states."""
    root, result = flow.module.entry.root, flow.results[number]
    value = of_one(flow.leaves[root][number].resolve().tensor)
    return FlowNode(identity_rule(result.dims, 1), (value, result), 1, "alike", root, "result")
