"""Long loops, of which a few trips are evaluated, from states that are new variables.

Let two loops have the same number of trips, and bodies that turn states that correspond into states that correspond.
Then their results correspond, by induction over the trips. So the bodies are evaluated at the first two trips, at one
in the middle and at the last: both start from the same random state, and the states after the trip are compared.
Integers of the state, such as the counter, are computed at all trips. Arrays of which each trip writes a part, such as
the stacked results of a scan, keep what is written. The state after the loop is compared, and is one of new variables
from there on.
`trip_kinds` tells which trips do the same; if that is not known, it is assumed, and the verdict says so.

What each device has of the state of the other loop is read off the first trips of a run.

Sections:

    The parts of the state of a loop
    The trips that are evaluated
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, Protocol, TypeAlias

import numpy as np
from attrs import define, field, frozen

from shape_inference import Shape, TupleShape
from xbuild.core.attributes import Array
from xbuild.core.graph import Computation, Instruction
from xbuild.core.op import OPS
from xbuild.properties.order import needed_by, users_of

from ..compiler.lines import Path
from ..rules.limits import trips
from . import draws
from .rules.evaluation import is_float
from .value_matching import Digested, digest, path_key, tile_slices, tiles_of_devices

Values: TypeAlias = Sequence[Any]
"""The arrays of a state."""
_MOST_INTEGERS = 1 << 10
"""The elements of the largest array of integers that trips change: its values are kept for all trips."""

# ----------------------------------------------------------------------------
# The parts of the state of a loop.


@frozen(eq=False)
class LoopParts:
    """The places in the state of a loop: of integers, of arrays that no trip changes, and of those that trips write.

    `condition` and `body` are the instructions that compute the integers.
    """

    integers: tuple[int, ...]
    constant: frozenset[int]
    written: frozenset[int]
    condition: frozenset[Instruction]
    body: frozenset[Instruction]


def arrays_of(loop: Instruction) -> list[Shape]:
    """The shapes of the arrays of the state of a loop; empty if it has other elements."""
    elements = loop.shape.elements if isinstance(loop.shape, TupleShape) else ()
    arrays = [each for each in elements if isinstance(each, Shape)]
    return arrays if len(arrays) == len(elements) else []


@lru_cache(maxsize=1 << 10)
def parts_of(loop: Instruction) -> LoopParts | None:
    """The parts of the state of a loop; None if its integers depend on floats or on other devices, or are too many."""
    shapes, a = arrays_of(loop), loop.attributes
    if not shapes or a.body.root.opcode != "tuple":
        return None
    integers = tuple(n for n, shape in enumerate(shapes) if not is_float(shape))
    condition = _computing_integers(a.condition, [a.condition.root], integers)
    body = _computing_integers(a.body, [a.body.root.operands[n] for n in integers], integers)
    if condition is None or body is None:
        return None
    results, users = [*enumerate(map(copied, a.body.root.operands))], users_of(a.body)
    constant = {n for n, each in results if place_of(each) == n}
    if any(shapes[n].size > _MOST_INTEGERS for n in {*integers} - constant):
        return None
    written = {
        n
        for n, each in results
        if each.opcode == "dynamic_update_slice"
        and place_of(copied(each.operands[0])) == n
        and len(users.get(copied(each.operands[0]), ())) == 1
        and n not in integers
    }
    return LoopParts(integers, frozenset(constant), frozenset(written), condition, body)


def copied(instruction: Instruction) -> Instruction:
    """What an instruction copies, or itself."""
    while instruction.opcode == "copy":
        (instruction,) = instruction.operands
    return instruction


def place_of(instruction: Instruction) -> int | None:
    """The place of the state that an instruction of a body takes; None if it is another instruction."""
    is_element = instruction.opcode == "get_tuple_element" and instruction.operands[0].opcode == "parameter"
    return instruction.attributes.index if is_element else None


def _computing_integers(
    computation: Computation, wanted: Sequence[Instruction], integers: Sequence[int]
) -> frozenset[Instruction] | None:
    """The instructions that compute integers from those of the state; None if they need more than these."""
    found = needed_by(wanted, lambda each: each.operands)
    for each in found:
        place, properties = place_of(each), OPS[each.opcode].properties
        is_known = place is None or place in integers
        is_array = isinstance(each.shape, Shape) and not is_float(each.shape)
        if each.opcode != "parameter" and not (
            is_known and is_array and not each.called and properties.needs == "nobody"
        ):
            return None
        if each.opcode in ("custom_call", "rng", "rng_get_and_update_state"):
            return None
    return frozenset(found)


def states_of_integers(loop: Instruction, parts: LoopParts, state: Values, evaluate: Any) -> list[dict[int, Any]]:
    """The integers of the state before each trip, and after the last; `evaluate` gives the value of an instruction."""
    a, states = loop.attributes, [{n: state[n] for n in parts.integers}]

    def values(computation: Computation, needed: frozenset[Instruction]) -> dict[Instruction, Any]:
        local: dict[Instruction, Any] = {}
        for each in computation.instructions:
            if each in needed and each.opcode != "parameter":
                place = place_of(each)
                given = tuple(local[operand] for operand in each.operands if operand in local)
                local[each] = evaluate(each, given) if place is None else states[-1][place]
        return local

    for _ in trips():
        if not values(a.condition, parts.condition)[a.condition.root]:
            break
        local = values(a.body, parts.body)
        states.append({n: local[a.body.root.operands[n]] for n in parts.integers})
    return states


# ----------------------------------------------------------------------------
# The trips that are evaluated.


@frozen(eq=False)
class IntegerStates:
    """The integers of the state of a loop on a device before each trip, and after the last.

    `evaluate` gives the value of an instruction from those of its operands.
    """

    device: int
    states: Sequence[Mapping[int, Any]]
    evaluate: Any

    @property
    def total(self) -> int:
        """The number of trips."""
        return len(self.states) - 1

    def are_those_of(self, other: IntegerStates) -> bool:
        """Whether another device has the same integers at all trips."""
        pairs = zip(self.states, other.states, strict=False)
        return self.total == other.total and all(
            one.keys() == two.keys() and all(np.array_equal(one[n], two[n]) for n in one) for one, two in pairs
        )


FIRST = 3
"""So many trips show what each device has of a state."""

LoopKey: TypeAlias = tuple[int, ...]
"""The ids of the instructions of the call path of a loop."""
Part: TypeAlias = tuple[int, tuple[slice, ...]]
"""The place of an array in the state of the first program, and the part of it that a device has."""


class LoopVisitor(Protocol):
    """What a run asks at each loop: the trips to evaluate, the state to start one from, and the state to go on with.

    The floats of a state are those after the last trip that was evaluated, or before the first.
    """

    def trips(self, path: Path, states: IntegerStates) -> Sequence[int]: ...
    def start(self, device: int, path: Path, trip: int, state: list[Any]) -> list[Any]: ...
    def end(self, device: int, path: Path, state: list[Any]) -> list[Any]: ...


@frozen
class FewTrips:
    """A run that ends each loop after a few trips: where programs differ can be seen there if they do so at all."""

    def trips(self, path: Path, states: IntegerStates) -> Sequence[int]:
        return range(1, min(states.total, FIRST) + 1)

    def start(self, device: int, path: Path, trip: int, state: list[Any]) -> list[Any]:
        return state

    def end(self, device: int, path: Path, state: list[Any]) -> list[Any]:
        return state


@define(eq=False)
class FirstTrips:
    """A run that ends each loop after a few trips, and keeps the states: by the loop, the trip and the device.

    Arrays that change are kept, those of which trips write a part after the last of these trips alone. `digests`:
    whether digests are kept instead, as of the many devices of a program.
    """

    digests: bool = False
    states: dict[LoopKey, dict[int, dict[int, list[Any]]]] = field(factory=dict)
    integers: dict[LoopKey, IntegerStates | None] = field(factory=dict)
    totals: dict[LoopKey, int] = field(factory=dict)
    loops: dict[LoopKey, Instruction] = field(factory=dict)

    def trips(self, path: Path, states: IntegerStates) -> Sequence[int]:
        key = path_key(path)
        self.totals[key], self.loops[key] = states.total, path[-1].instruction
        known = self.integers.setdefault(key, states)
        if known is None or not known.are_those_of(states):  # devices are at different integers
            self.integers[key] = None
        return range(1, min(states.total, FIRST) + 1)

    def start(self, device: int, path: Path, trip: int, state: list[Any]) -> list[Any]:
        return self._kept(device, path, trip, state) if trip > 1 else state

    def end(self, device: int, path: Path, state: list[Any]) -> list[Any]:
        return self._kept(device, path, FIRST + 1, state)

    def _kept(self, device: int, path: Path, trip: int, state: list[Any]) -> list[Any]:
        parts = parts_of(path[-1].instruction)
        assert parts is not None
        gone = {*parts.integers, *parts.constant, *(parts.written if trip <= FIRST else ())}
        kept = [None if n in gone else self._of(np.asarray(value)) for n, value in enumerate(state)]
        self.states.setdefault(path_key(path), {}).setdefault(trip, {})[device] = kept
        return state

    def _of(self, value: Array) -> Array | Digested:
        return Digested(value.shape, digest(value)) if self.digests else value


@frozen(eq=False)
class LoopPair:
    """Two loops that correspond, with the part of each device of each array of the second one's state, by its place.

    `written` are the places of both whose arrays trips write. `kinds` has the first trip of each kind, so that each
    trip does what one of these does; it is None if that is not known.
    """

    keys: tuple[LoopKey, LoopKey]
    loops: tuple[Instruction, Instruction]
    total: int
    parts: Mapping[int, Mapping[int, Part]]
    written: tuple[frozenset[int], frozenset[int]]
    kinds: Sequence[int] | None = None

    @property
    def sources(self) -> dict[int, int]:
        """The place of the first program's state of whose array one of the second's has parts."""
        return {place: next(iter(parts.values()))[0] for place, parts in self.parts.items()}

    @property
    def evaluated(self) -> list[int]:
        """The trips that are evaluated."""
        some = {1, 2, (self.total + 3) // 2, self.total, *(self.kinds or ())}
        return sorted(some & {*range(1, self.total + 1)})

    def carried(self, side: int) -> list[int]:
        """The places of a program's state that are new variables at each trip."""
        loop = self.loops[side]
        parts = parts_of(loop)
        assert parts is not None
        fixed = {*parts.integers, *parts.constant, *self.written[side]}
        return [n for n in range(len(arrays_of(loop))) if n not in fixed]

    def renewed(self, side: int) -> list[int]:
        """The places of a program's state that are new variables after the loop."""
        return sorted({*self.carried(side), *self.written[side]})

    def __str__(self) -> str:
        *several, last = self.evaluated
        return f"{self.loops[0].name}: trips {', '.join(map(str, several))} and {last} of {self.total}"


def next_pair(one: FirstTrips, other: FirstTrips, axes: Sequence[int]) -> LoopPair | None:
    """The first loops of two runs, as a pair; None if their states do not correspond.

    The devices form a grid of these extents, along whose axes they probably have their parts.
    """
    if not one.states or not other.states:
        return None
    keys = next(iter(one.states)), next(iter(other.states))
    loops = one.loops[keys[0]], other.loops[keys[1]]
    states = one.states[keys[0]], other.states[keys[1]]
    total = one.totals[keys[0]]
    left, right = map(parts_of, loops)
    if total != other.totals[keys[1]] or states[0].keys() != states[1].keys() or left is None or right is None:
        return None
    parts: dict[int, dict[int, Part]] = {}
    for place in range(len(arrays_of(loops[1]))):
        if place in right.constant or place in right.integers:
            continue
        found = (_parts(source, place, *states, axes) for source in _sources(loops, place))
        parts[place] = next((each for each in found if each), {})
        if not parts[place]:
            return None
    sources = {place: next(iter(each.values()))[0] for place, each in parts.items()}
    both = {s for s in left.written if {n for n, source in sources.items() if source == s} <= right.written}
    written = frozenset(both), frozenset(n for n, source in sources.items() if source in both)
    return LoopPair(keys, loops, total, parts, written)


def _sources(loops: tuple[Instruction, Instruction], place: int) -> list[int]:
    """The places of the first loop whose arrays may be those of a place of the second, in parts."""
    left, right = map(arrays_of, loops)
    local = right[place]
    return [
        n
        for n, whole in enumerate(left)
        if whole.dtype is local.dtype
        and whole.rank == local.rank
        and all(part and not extent % part for extent, part in zip(whole.dims, local.dims, strict=True))
    ]


def _parts(
    source: int, place: int, one: Mapping[int, Any], other: Mapping[int, Any], axes: Sequence[int]
) -> dict[int, Part]:
    """The part of each device of an array, if it has one at all these trips."""
    tiles: dict[int, set[int]] = {}
    for trip, states in one.items():
        whole, locals_ = states[0][source], {device: state[place] for device, state in other[trip].items()}
        if whole is None or any(each is None for each in locals_.values()):
            continue
        for device, here in tiles_of_devices(whole, locals_).items():
            tiles[device] = tiles.get(device, here) & here
    if not tiles or not all(tiles.values()):
        return {}
    tile = next(iter(locals_.values())).shape
    chosen = _tiles_along_axes(tiles, [n // t for n, t in zip(whole.shape, tile, strict=True)], axes)
    return {d: (source, tile_slices(whole.shape, tile, number)) for d, number in chosen.items()}


def _tiles_along_axes(tiles: Mapping[int, set[int]], grid: Sequence[int], axes: Sequence[int]) -> dict[int, int]:
    """One of the tiles of each device: those along axes if these are among them, since tiles may be equal."""
    places = np.unravel_index(sorted(tiles), axes)
    for several in itertools.product(*(_axes_of(count, axes) for count in grid)):
        if len({axis for along in several for axis in along}) < sum(map(len, several)):
            continue
        numbers = np.zeros(len(tiles), int)
        for count, along in zip(grid, several, strict=True):
            at = np.zeros(len(tiles), int)
            for axis in along:
                at = at * axes[axis] + places[axis]
            numbers = numbers * count + at
        if all(int(number) in tiles[device] for device, number in zip(sorted(tiles), numbers, strict=True)):
            return {device: int(number) for device, number in zip(sorted(tiles), numbers, strict=True)}
    return {device: min(several) for device, several in tiles.items()}


def _axes_of(count: int, axes: Sequence[int]) -> list[tuple[int, ...]]:
    """The axes, in all orders, that have so many places together."""
    numbers = range(len(axes))
    every = (along for length in numbers for along in itertools.permutations(numbers, length + 1))
    return [()] if count == 1 else [a for a in every if prod(axes[n] for n in a) == count]


@define(eq=False)
class LoopDraw:
    """One draw in which a few trips of loops are evaluated: the arrays of states of the first program, and what
    replaces them. `differs`: whether the second program has computed another state.
    """

    pairs: Sequence[LoopPair]
    random: np.random.Generator
    values: dict[tuple[LoopKey, int, int], tuple[Array, Array]] = field(factory=dict)
    differs: bool = False

    def side(self, number: int) -> LoopSide:
        """What the first or the second program does."""
        return LoopSide(self, number, {pair.keys[number]: pair for pair in self.pairs})


@define(eq=False)
class LoopSide:
    """What one program does in a draw; loops that are not paired yet end after a few trips."""

    draw: LoopDraw
    side: int
    pairs: Mapping[LoopKey, LoopPair]
    unpaired: FirstTrips = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.unpaired = FirstTrips(digests=self.side > 0)

    def trips(self, path: Path, states: IntegerStates) -> Sequence[int]:
        pair = self.pairs.get(path_key(path))
        return self.unpaired.trips(path, states) if pair is None else pair.evaluated

    def start(self, device: int, path: Path, trip: int, state: list[Any]) -> list[Any]:
        pair = self.pairs.get(path_key(path))
        if pair is None:
            return self.unpaired.start(device, path, trip, state)
        return self._replaced(pair, device, trip, state, pair.carried(self.side))

    def end(self, device: int, path: Path, state: list[Any]) -> list[Any]:
        pair = self.pairs.get(path_key(path))
        if pair is None:
            return self.unpaired.end(device, path, state)
        return self._replaced(pair, device, 0, state, pair.renewed(self.side))

    def _replaced(self, pair: LoopPair, device: int, trip: int, state: list[Any], places: Sequence[int]) -> list[Any]:
        """A state in which new variables are at these places, where the second program is compared with the first."""
        draw, new = self.draw, list(state)
        if not self.side:
            used = {pair.sources[n] for n in (pair.carried(1) if trip else pair.renewed(1))}
            for place in sorted({*places, *used}):  # others, which each trip may change, are not kept
                if place in places:
                    new[place] = draws.field_array(arrays_of(pair.loops[0])[place], draw.random)
                draw.values[pair.keys[0], trip, place] = np.asarray(state[place]), np.asarray(new[place])
            return new
        for place in places:
            source, part = pair.parts[place][device]
            before, after = draw.values[pair.keys[0], trip, source]
            new[place] = after[part]
            draw.differs |= not np.array_equal(state[place], before[part])
        return new
