"""The instruction at which the values of a program diverge from those of another, found from a wrong result back.

A wrong value has a role: the value of the first program that it should be. If the same op computes both, their operands
have roles too, and those that are wrong lead further back; else all operands do that are nowhere in the first program.
A value that sums to its role over groups of devices is right, and so is a number that counts the place of each device.
The search ends at a wrong value all of whose operands are right. If it ends at several, those count that all wrong
elements depend on, which a run with other numbers in their place shows.

Sections:

    Roles: which value of the first program a value of the other one should be
    Numbers that depend on the device alone
    The search
    The groups over which values may have to be combined
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from attrs import define, field, frozen

from shape_inference import Dims, Shape
from xbuild.checking.dataflow.replication import COMMUTATIVE
from xbuild.core.attributes import Array
from xbuild.core.graph import Computation, Instruction, Module, ModuleGroup
from xbuild.core.op import opcodes
from xbuild.properties.device_groups import Groups, groups_of
from xbuild.properties.effects import MEETS
from xbuild.properties.order import users_of
from xbuild.properties.sites import reached
from xbuild.properties.structure import Structure, meant_values

from ..runtime.run import modules_of
from . import draws
from .rules import residues
from .rules.arithmetic import maximum, minimum
from .rules.functions import random_words
from .rules.tables import MOVED
from .value_flow import Origin, ValueHistory
from .value_matching import (
    Key,
    ObservedValue,
    ValueMatching,
    digest,
    place_key,
    tile_digests,
    tile_slices,
    tiles_of_devices,
)

# ----------------------------------------------------------------------------
# Roles: which value of the first program a value of the other one should be.

_IDS = opcodes(lambda op: op.depends_on == "device")
_SHAPING = frozenset({"reshape", "transpose", "broadcast", "bitcast", "copy", "reverse"})
"""Ops that arrange the elements of one operand."""
_PRODUCTS = frozenset({"dot", "convolution"})
_OF_EXTENTS = frozenset({
    "shape", "sizes", "new_sizes", "dynamic_slice_sizes", "slice_sizes", "replica_groups", "channel_id",
    "shard_count", "split_count", "operand_layout_constraints", "start_indices", "limit_indices",
})  # fmt: skip
"""Attributes that the parts of devices may have otherwise than whole arrays."""

_MOST_OF_A_SHAPE = 8
"""So many values of a shape show where devices have their parts of it."""

Pairs: TypeAlias = list[tuple[Origin, Origin]]


@define(eq=False)
class Roles:
    """Pairs of values that should be the same, by the ops that compute them."""

    one: ValueHistory
    other: ValueHistory
    matching: ValueMatching
    _structure: Structure = field(factory=lambda: Structure({}), init=False)
    _equal: dict[Key, set[Key]] = field(factory=dict, init=False)

    @cached_property
    def matched(self) -> set[Key]:
        """The values of the other program that the first one has."""
        return {key for keys in self.matching.found.values() for key in keys}

    def are_equal(self, one: Origin, other: Origin) -> bool:
        """Whether a value of the other program is one of the first, in full or in parts."""
        if one.key not in self._equal:
            self._equal[one.key] = set(self.matching.found.get(one.key, ()))
        return other.key in self._equal[one.key]

    @cached_property
    def _contents(self) -> set[int]:
        return {_content(kept) for kept in self.one.recorder.kept.values() if kept.is_float}

    def has_elements(self, other: Origin) -> bool:
        """Whether all devices together have the elements of a value of the first program, in any arrangement."""
        kept = self.other.kept(other)
        return kept is not None and kept.is_float and _content(kept) in self._contents

    def of_product(self, role: Origin, value: Origin) -> Pairs | None:
        """The wrong operand of a product and its role, by elements; none if all are right, None if all are wrong."""
        left, wrong = [*self.one.operands(role)], []
        for operand in self.other.operands(value):
            found = next((each for each in left if self._have_same_elements(each, operand)), None)
            if found is None:
                wrong.append(operand)
            else:
                left.remove(found)
        return [*zip(left, wrong, strict=True)] if len(left) == len(wrong) < 2 else None

    def _have_same_elements(self, one: Origin, other: Origin) -> bool:
        kept = [each for each in (self.one.kept(one), self.other.kept(other)) if each is not None]
        return len({_content(each) for each in kept}) == 1 and len(kept) == 2

    def cut_values(self) -> Iterator[tuple[Dims, Dims, dict[int, int]]]:
        """The values that devices have parts of: the dimensions of both, and the number of the part of each device."""
        seen: Counter[tuple[Dims, Dims]] = Counter()
        for key, others in self.matching.found.items():
            kept = self.one.recorder.kept[key]
            if len(kept.values) > 1 or not kept.is_float:
                continue
            (array,) = kept.values.values()
            for parts in (self.other.recorder.kept[each] for each in others):
                tile = next(iter(parts.values.values())).shape
                seen[array.shape, tile] += 1
                if tile == array.shape or len(tile) != array.ndim or seen[array.shape, tile] > _MOST_OF_A_SHAPE:
                    continue
                tiles = tiles_of_devices(array, parts.values)
                if all(len(each) == 1 for each in tiles.values()):
                    yield array.shape, tile, {device: min(each) for device, each in tiles.items()}

    @cached_property
    def placements(self) -> dict[Dims, list[dict[int, int]]]:
        """How values are cut, by the number of parts along each dimension: the number of the part of each device."""
        found: dict[Dims, list[dict[int, int]]] = {}
        for whole, tile, numbers in self.cut_values():
            several = found.setdefault(_grid(whole, tile), [])
            if numbers not in several:
                several.append(numbers)
        return found

    def operands(self, one: Origin, other: Origin) -> Pairs | None:
        """The operands of both that should be the same; None if other ops compute the values."""
        if not self._are_alike(one.instruction, other.instruction):
            return None
        left, right = self.one.operands(one), self.other.operands(other)
        if len(left) != len(right) or one.opcode == "while":
            return None
        pairs = [*zip(left, right, strict=True)]
        if not all(self._fit(*pair) for pair in pairs):
            return None
        if one.opcode in COMMUTATIVE and len(pairs) == 2:
            crossed = [*zip(left, right[::-1], strict=True)]
            return max((pairs, crossed), key=lambda each: sum(self.are_equal(*pair) for pair in each))
        return pairs

    def _fit(self, one: Origin, other: Origin) -> bool:
        """Whether the devices have room for all elements of a value."""
        whole, parts = self.one.kept(one), self.other.kept(other)
        if whole is None or parts is None or len(whole.values) > 1:
            return True
        sizes = [sum(array.size for array in each.values.values()) for each in (whole, parts)]
        return sizes[0] <= sizes[1]

    def behind(self, role: Origin) -> Iterator[Origin]:
        """A role, and what it arranges or a loop returns: the other program may do so otherwise."""
        yield role
        while role.opcode in _SHAPING | {"while"}:
            (role,) = self.one.operands(role)
            yield role

    def _are_alike(self, one: Instruction, other: Instruction) -> bool:
        if one.opcode != other.opcode or one.opcode in ("parameter", "constant"):
            return False
        if one.opcode == "slice" and [*_cuts(one)] != [*_cuts(other)]:
            return False
        if one.opcode == "concatenate" and [*_pieces(one)] != [*_pieces(other)]:
            return False
        left, right = meant_values(one), meant_values(other)
        value = self._structure.value
        return all(value(key, left[key]) == value(key, right[key]) for key in left.keys() - _OF_EXTENTS)


def _content(kept: ObservedValue) -> int:
    """A number for the elements of a value on all devices; parts that are equal count once, and order does not."""
    parts = {int(random_words("element", array).sum(dtype=np.uint64)) for array in kept.values.values()}
    return sum(parts) % 2**64


def _grid(whole: Dims, tile: Dims) -> Dims:
    """How many parts there are along each dimension."""
    return tuple(n // t for n, t in zip(whole, tile, strict=True))


def _cuts(slice_: Instruction) -> Iterator[Any]:
    """What a slice takes of each dimension; None for all of it."""
    a, whole = slice_.attributes, slice_.operands[0].shape
    assert isinstance(whole, Shape)
    for start, limit, extent in zip(a.start_indices, a.limit_indices, whole.dims, strict=True):
        yield None if (start, limit) == (0, extent) else (start, limit)


def _pieces(concatenate: Instruction) -> Iterator[int]:
    """The extents of what is concatenated, along that dimension."""
    for operand in concatenate.operands:
        assert isinstance(operand.shape, Shape)
        yield operand.shape.dims[concatenate.attributes.dimension]


# ----------------------------------------------------------------------------
# Numbers that depend on the device alone.


@frozen
class DependenceOnPlace:
    """Whether inputs of the program have part in a value, ids of devices, and ids that differ between devices."""

    has_inputs: bool
    has_number: bool
    varies: bool

    @property
    def is_of_one_id(self) -> bool:
        """Whether ids have part that are the same on all devices, such as that of the only replica, and no others."""
        return self.has_number and not self.varies


@define(eq=False)
class PlaceNumbers:
    """Values that no input of a program has part in, such as the offset of the part of each device."""

    flow: ValueHistory
    roles: Roles
    _kinds: dict[Origin, DependenceOnPlace] = field(factory=dict, init=False)

    def kind(self, origin: Origin) -> DependenceOnPlace:
        """What has part in a value."""
        stack = [origin]
        while stack:
            each = stack[-1]
            missing = [operand for operand in self.flow.operands(each) if operand not in self._kinds]
            if each in self._kinds or not missing:
                self._kinds.setdefault(each, self._own_kind(each))
                stack.pop()
            stack += missing
        return self._kinds[origin]

    def _own_kind(self, origin: Origin) -> DependenceOnPlace:
        kinds = [self._kinds[operand] for operand in self.flow.operands(origin)]
        is_id = origin.opcode in _IDS
        kept = self.flow.kept(origin)
        varies = is_id and kept is not None and len({kept.digest(device) for device in kept.values}) > 1
        return DependenceOnPlace(
            origin.opcode == "parameter" or any(kind.has_inputs for kind in kinds),
            is_id or any(kind.has_number for kind in kinds),
            varies or any(kind.varies for kind in kinds),
        )

    def are_places(self, kept: ObservedValue) -> bool:
        """Whether integers count where the part of each device begins, up to what is the same on all."""
        devices = sorted(kept.values)
        arrays = [np.asarray(kept.values[device]) for device in devices]
        if kept.is_float or arrays[0].dtype == bool or not arrays[0].size:
            return False
        away = [array.astype(np.int64) - arrays[0].astype(np.int64) for array in arrays]
        if any(each.size and each.min() != each.max() for each in away):
            return False
        steps = tuple(int(each.flat[0]) for each in away)
        return len(set(steps)) > 1 and steps in self._steps

    @cached_property
    def _steps(self) -> set[tuple[int, ...]]:
        """The places of the parts of arrays on each device, and their numbers, less that on the first device."""
        found = {tuple(range(len(next(iter(self.flow.recorder.kept.values())).values)))}
        for whole, tile, numbers in self.roles.cut_values():
            starts = [[part.start for part in tile_slices(whole, tile, numbers[d])] for d in sorted(numbers)]
            for extent, column in zip(tile, zip(*starts, strict=True), strict=True):
                away = [start - column[0] for start in column]
                found |= {tuple(away), tuple(each // extent for each in away)}
        return found


# ----------------------------------------------------------------------------
# The search.

Rerun: TypeAlias = Callable[[Callable[..., Any]], Any]
"""Runs the other program on the same inputs, with an observer that may replace values."""

_Join: TypeAlias = tuple[Instruction, Instruction, frozenset[Instruction]]
"""An instruction with several wrong operands, where its wrong elements were found, and the causes of the operands."""
_MOST_RUNS = 24
"""The most runs that show which elements depend on a value."""


@frozen(eq=False)
class _Wrong:
    """A wrong value of the other program and its role: what it should be if `is_exact`, else what comes of it."""

    value: Origin
    role: Origin | None
    is_exact: bool = False


@define(eq=False)
class _Node:
    """A wrong value in the search: the wrong operands, those computed from the device's number alone, and its user."""

    wrong: _Wrong
    user: _Node | None
    data: list[_Node] = field(factory=list)
    places: list[_Node] = field(factory=list)
    is_given: bool = False
    is_term: bool = False
    has_role: bool = False
    causes: list[_Node] | None = None


def _is_same_input(node: _Node) -> bool:
    """Whether a value is the input of both programs that it should be, of which devices may have any parts."""
    value, role = node.wrong.value.instruction, node.wrong.role
    if not node.is_given or role is None or role.opcode != "parameter":
        return False
    return bool(value.attributes.number == role.instruction.attributes.number)


@define(eq=False)
class DivergenceSearch:
    """The search for the value at which the other program diverges."""

    matching: ValueMatching
    one: ValueHistory
    other: ValueHistory
    groups: Sequence[Groups]
    rerun: Rerun
    roles: Roles = field(init=False)
    numbers: PlaceNumbers = field(init=False)
    _nodes: dict[tuple[Key, Key | None], _Node] = field(factory=dict, init=False)
    _order: dict[Key, int] = field(factory=dict, init=False)
    _chosen: dict[_Join, dict[Instruction, _Node]] = field(factory=dict, init=False)
    _runs: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.roles = Roles(self.one, self.other, self.matching)
        self.numbers = PlaceNumbers(self.other, self.roles)
        self._order = {key: n for n, key in enumerate(self.other.recorder.kept)}

    def cause(self, outputs: Sequence[int]) -> Instruction | None:
        """The instruction at which these wrong results diverge; None without results."""
        pairs = [*zip(self.one.results(), self.other.results(), strict=True)]
        found: dict[Instruction, tuple[int, Origin]] = {}
        for number in outputs:
            one, other = pairs[number]
            top = self._node(_Wrong(other, one, is_exact=True), None)
            for value in (node.wrong.value for node in self._causes_of(top) or [top]):
                count, first = found.get(value.instruction, (0, value))
                found[value.instruction] = count + 1, first
        if not found:
            return None
        _, value = min(found.values(), key=lambda each: (-each[0], self._order.get(each[1].key, 0)))
        return self._collective_of(value)

    def _collective_of(self, value: Origin) -> Instruction:
        """The instruction of a value, or the collective that alone uses what it moves."""
        instruction = value.instruction
        while instruction.opcode in MOVED and instruction in self.other.homes:
            users = users_of(self.other.homes[instruction]).get(instruction, ())
            if len(users) != 1 or users[0].opcode not in MEETS | _SHAPING:
                break
            instruction = users[0]
        return instruction if instruction.opcode in MEETS else value.instruction

    def _node(self, wrong: _Wrong, user: _Node | None) -> _Node:
        key = wrong.value.key, None if wrong.role is None else wrong.role.key
        return self._nodes.setdefault(key, _Node(wrong, user))

    def _causes_of(self, top: _Node) -> list[_Node]:
        """The values at which the search ends; none if the value is right."""
        stack, entered = [top], set[int]()
        while stack:
            node = stack[-1]
            if node.causes is not None:
                stack.pop()
            elif id(node) not in entered:
                entered.add(id(node))
                self._expand(node)
                stack += [*node.data, *node.places]
            else:
                node.causes = self._conclude(node)
        assert top.causes is not None
        return top.causes

    def _conclude(self, node: _Node) -> list[_Node]:
        if node.is_given or (node.data and not node.places and all(map(_is_same_input, node.data))):
            return []
        causes = self._causes_behind(node)
        is_order = all(each is node or each.wrong.value.opcode in MOVED for each in causes)
        return [] if is_order and self._has_right_parts(node.wrong.value) else causes

    def _causes_behind(self, node: _Node) -> list[_Node]:
        terms = [each for each in node.data if each.is_term]
        if terms and self._sums_or_spoils(node):
            for each in terms:
                node.data.remove(each)
        for several in (node.data, node.places):
            sets = [{cause.wrong.value.instruction: cause for cause in each.causes} for each in several if each.causes]
            if not sets:
                continue
            shared = set[Instruction].intersection(*map(set, sets))  # at several trips, perhaps
            if shared:
                return [cause for instruction, cause in sets[0].items() if instruction in shared]
            return self._explaining(node, [each for each in several if each.causes]) or [node]
        return [node]

    def _has_right_parts(self, value: Origin) -> bool:
        """Whether the first program has a part of what an op computes: the parts may be in another order here."""
        if value.opcode in MOVED | MEETS or value.instruction not in self.other.homes:
            return False
        users = users_of(self.other.homes[value.instruction])
        parts = [each for each in users.get(value.instruction, ()) if each.opcode in MOVED]
        while parts:
            part = parts.pop()
            key = value.site.beside(part).key
            kept = self.other.recorder.kept.get(key)
            if key in self.roles.matched and kept is not None and kept.is_float and _vary(kept):
                return True
            parts += [each for each in users.get(part, ()) if each.opcode in MOVED]
        return False

    @staticmethod
    def _sums_or_spoils(node: _Node) -> bool:
        """Whether a value is to blame for terms among its operands: it should sum them, or adds what is no term."""
        user = node.user
        while user is not None and user.wrong.value.opcode in _SHAPING:
            user = user.user
        is_summed = user is not None and user.wrong.value.opcode in MEETS and not node.is_term
        return node.wrong.value.opcode in MEETS | {"copy"} or node.has_role or is_summed

    # What is wrong behind a wrong value

    def _expand(self, node: _Node) -> None:
        value, role = node.wrong.value, node.wrong.role
        node.is_given = value.opcode == "parameter"
        node.is_term = role is not None and value.opcode not in MEETS and self._is_term_of(value, role)
        if node.is_given:
            return
        if value.opcode == "while":
            self._expand_loop(node, value, role)
            return
        pairs = None if role is None else self._pairs(role, value)
        if pairs is None:
            self._expand_unlike(node, value, role)
            return
        wrong = [pair for pair in pairs if self._is_wrong(pair[1], pair[:1])]
        if len(wrong) > 1 and not any(self._is_wrong(other, [one for one, _ in wrong]) for _, other in wrong):
            wrong = []  # the operands have changed places
        elif not wrong and not node.is_term:
            wrong = [pair for pair in pairs if pair[1].opcode in MEETS][:1]  # its parts are on other devices
        wrong += [pair for pair in pairs if pair not in wrong and self.numbers.kind(pair[1]).is_of_one_id]
        node.data = [self._node(_Wrong(other, one, is_exact=True), node) for one, other in wrong]

    def _pairs(self, role: Origin, value: Origin) -> Pairs | None:
        """The operands of a value and of what it should be: of its role, or of an operand of that."""
        behind = [*self.roles.behind(role)]
        for each in behind:
            pairs = self.roles.operands(each, value)
            if pairs is not None:
                return pairs
        for operand in self.one.operands(behind[-1]):
            for each in self.roles.behind(operand):
                pairs = self.roles.operands(each, value)
                if pairs is not None and any(self.roles.are_equal(*pair) for pair in pairs):
                    return pairs
        return None

    def _expand_loop(self, node: _Node, value: Origin, role: Origin | None) -> None:
        """The result of the last trip; of loops with different numbers of trips the condition that decides this."""
        result = _Wrong(self.other.result_of_loop(value), role, node.wrong.is_exact)
        if role is not None and role.opcode == "while":
            trips = self.one.count_trips(role.site), self.other.count_trips(value.site)
            if trips[0] == trips[1]:
                result = _Wrong(result.value, self.one.result_of_loop(role), node.wrong.is_exact)
            else:
                last = min(trips) + 1
                conditions = self.other.condition(value.site, last), self.one.condition(role.site, last)
                result = _Wrong(*conditions, is_exact=True)
        node.data = [self._node(result, node)]

    def _expand_unlike(self, node: _Node, value: Origin, role: Origin | None) -> None:
        """The operands of a value for which the first program has no counterpart."""
        roles = [] if role is None else [*self.roles.behind(role)]
        core = roles[-1] if roles else None
        passes = value.opcode in _SHAPING | MEETS
        product = next((each for each in roles if each.opcode == value.opcode and each.opcode in _PRODUCTS), None)
        pairs = None if product is None else self.roles.of_product(product, value)
        if pairs is not None:  # XLA multiplies in other dimensions
            node.data = [self._node(_Wrong(other, one), node) for one, other in pairs]
            return
        before = [] if core is None else self.one.operands(core)  # right if the op of the role is what is missing
        for operand in dict.fromkeys(self.other.operands(value)):
            kind = self.numbers.kind(operand)
            node.has_role |= role is not None and self.roles.are_equal(role, operand)
            if not kind.has_inputs and kind.has_number:
                if not self._is_place(operand):
                    node.places.append(self._node(_Wrong(operand, None), node))
            elif kind.is_of_one_id or (
                kind.has_inputs
                and self._is_wrong(operand, roles if operand.opcode == "copy" else [*roles, *before])
                and (passes or not (operand.key in self.roles.matched or self.roles.has_elements(operand)))
            ):
                node.data.append(self._node(_Wrong(operand, role if passes else core), node))

    def _is_place(self, operand: Origin) -> bool:
        """Whether a value that depends on the device alone is what it may be."""
        kept = self.other.kept(operand)
        if kept is None or self.numbers.are_places(kept):
            return True
        return operand.key in self.roles.matched and len({kept.digest(device) for device in kept.values}) > 1

    def _is_wrong(self, other: Origin, roles: Sequence[Origin]) -> bool:
        """Whether a value that the run has recorded is none of these."""
        return self.other.kept(other) is not None and not any(self.roles.are_equal(role, other) for role in roles)

    def _is_term_of(self, value: Origin, role: Origin) -> bool:
        """Whether the sum, maximum or minimum over groups of devices is what a value should be."""
        kept, whole = self.other.kept(value), self.one.kept(role)
        if kept is None or whole is None or len(kept.values) == 1 or not kept.is_float:
            return False
        tile = next(iter(kept.values.values())).shape
        parts = _digests_of_parts(whole, tile)
        if parts is None:
            return False
        corners = tuple(slice(None, None, t) for t in tile)
        first = np.concatenate([array[corners].reshape(-1) for array in whole.values.values()])
        folds = (residues.add, maximum, minimum) if role.opcode == "reduce" else (residues.add,)
        return any(_folds_to(kept, groups, fold, parts, first) for groups in self.groups for fold in folds)

    # Which of several values explain all wrong elements

    def _explaining(self, node: _Node, operands: list[_Node]) -> list[_Node]:
        """The causes on which all elements depend that are wrong here, or at the next value with a role.

        An operand on which they depend, but on none of its causes, is one itself.
        """
        every = {cause.wrong.value.instruction: cause for each in operands for cause in each.causes or ()}
        exact = {instruction for instruction, cause in every.items() if cause.wrong.is_exact}
        if exact and len(exact) < len(every):
            return [every[instruction] for instruction in exact]
        at: _Node | None = node
        wrong = None
        while at is not None and wrong is None:
            wrong, place = self._wrong_elements(at.wrong), at.wrong.value
            at = at.user
        key = node.wrong.value.instruction, place.instruction, frozenset(every)
        if key not in self._chosen:
            self._chosen[key] = self._choose(operands, place, wrong)
        return [every.get(instruction, cause) for instruction, cause in self._chosen[key].items()]

    def _choose(
        self, operands: list[_Node], place: Origin, wrong: Mapping[int, Array] | None
    ) -> dict[Instruction, _Node]:
        found: dict[Instruction, _Node] = {}
        for operand in operands:
            causes = operand.causes or []
            if wrong is not None and self._runs + len(causes) < _MOST_RUNS:
                if not self._affects(operand.wrong.value, place, wrong):
                    continue
                causes = [each for each in causes if self._affects(each.wrong.value, place, wrong)] or [operand]
            found |= {each.wrong.value.instruction: each for each in causes}
        return found

    def _wrong_elements(self, wrong: _Wrong) -> dict[int, Array] | None:
        """Which elements of each device are not those of its part; None if that is unknown."""
        kept, whole = self.other.kept(wrong.value), wrong.role and self.one.kept(wrong.role)
        if not kept or not whole or not wrong.is_exact:
            return None
        tile, (first, *others) = next(iter(kept.values.values())).shape, whole.values.values()
        if others:
            return {device: array != whole.values[device] for device, array in kept.values.items()}
        if not first.size or not _is_tiled(first.shape, tile):
            return None
        places = self.roles.placements.get(_grid(first.shape, tile)) or [dict.fromkeys(kept.values, 0)]
        found = [
            {d: first[tile_slices(first.shape, tile, numbers[d])] != array for d, array in kept.values.items()}
            for numbers in places
        ]
        return min(found, key=lambda each: sum(int(array.sum()) for array in each.values()))

    def _affects(self, cause: Origin, place: Origin, wrong: Mapping[int, Array]) -> bool:
        """Whether all wrong elements at a place change with the numbers of a value."""
        kept, before = self.other.kept(cause), self.other.kept(place)
        assert kept is not None
        assert before is not None
        if cause.key == place.key or not kept.is_float:
            return True
        random = np.random.default_rng(self._runs)
        after: dict[int, Array] = {}

        def observe(device: int, path: Any, trips: Any, value: Any) -> Any:
            key = place_key(path, trips)
            if key == cause.key:
                return draws.field_array(Shape(path[-1].instruction.shape.dtype, value.shape), random)
            if key == place.key:
                after[device] = np.asarray(value)
            return None

        self._runs += 1
        self.rerun(observe)
        return all(not (each & (after[d] == before.values[d])).any() for d, each in wrong.items() if d in after)


def _is_tiled(dims: Dims, tile: Dims) -> bool:
    return len(dims) == len(tile) and all(t and n % t == 0 for n, t in zip(dims, tile, strict=True))


def _vary(kept: ObservedValue) -> bool:
    """Whether the elements of a value are not all the same."""
    return all(np.unique(array).size > 1 for array in kept.values.values())


def _digests_of_parts(whole: ObservedValue, tile: Dims) -> set[int] | None:
    """The digests of the parts of a value; None if it has no such parts."""
    arrays = [*whole.values.values()]
    if not arrays[0].size or not _is_tiled(arrays[0].shape, tile):
        return None
    return {int(each) for array in arrays for each in tile_digests(array, tile)}


def _folds_to(kept: ObservedValue, groups: Groups, fold: Callable[..., Array], parts: set[int], first: Array) -> bool:
    """Whether the values of each group, which are not the same, combine to one of these digests, and to all of them.

    `first` are the first elements of what has these digests, one of which is the first to be tried.
    """
    if not np.isin(_fold([kept.values[device].reshape(-1)[:1] for device in groups[0]], fold), first).all():
        return False
    if any(len({kept.digest(device) for device in group}) == 1 for group in groups):
        return False
    return {digest(_fold([kept.values[device] for device in group], fold)) for group in groups} == parts


def _fold(values: Sequence[Array], fold: Callable[..., Array]) -> Array:
    total = values[0]
    for value in values[1:]:
        total = fold(total, value)
    return total


# ----------------------------------------------------------------------------
# The groups over which values may have to be combined.

_MOST_DEVICES = 64
"""The most devices of which all groups of equal strides are tried."""


def _groups_of_program(program: Module | ModuleGroup) -> list[Groups]:
    """The groups over which values may have to be combined: those of collectives, and of equal strides of devices."""
    count = program.num_devices
    found: dict[Groups, None] = {(tuple(range(count)),): None}
    for module in modules_of(program):
        for computation in reached(module.entry):
            for each in computation.instructions:
                if each.opcode in MEETS and hasattr(each.attributes, "replica_groups"):
                    found[groups_of(each, module.num_replicas, module.num_partitions)] = None
    for size in range(2, count if count <= _MOST_DEVICES else 0):
        for stride in range(1, count // size + 1):
            if count % (size * stride) == 0:
                table = np.arange(count).reshape(-1, size, stride).transpose(0, 2, 1).reshape(-1, size)
                found[tuple(map(tuple, table.tolist()))] = None
    return [*found]


def find_divergence(
    matching: ValueMatching, entry: Computation, program: Module | ModuleGroup, outputs: Sequence[int], rerun: Rerun
) -> Instruction | None:
    """The instruction of a program at which these results diverge from those of a computation; None without results.

    `matching` has the values of both in one run; `rerun` repeats that of the program.
    """
    other = modules_of(program)[0].entry
    flows = ValueHistory(matching.one, entry), ValueHistory(matching.other, other)
    return DivergenceSearch(matching, *flows, _groups_of_program(program), rerun).cause(outputs)
