"""Which trips of two loops do the same, so that one of them shows what the others do.

The trips of a loop differ by the integers of the state. Take two trips at which all values that a body computes from
these integers are equal, but for the numbers of rows that it takes from arrays of variables, and writes to arrays. If
the rows of one trip can be renamed to those of the other, in both bodies together, then both bodies do at one trip what
they do at the other with other variables. So they agree at both trips or at neither.

Rows can be renamed if the arrays are variables: parameters of the program, or the state after an earlier loop, which is
compared there. The body uses them by rows alone, and nothing else that it uses depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import Shape, TupleShape, leaves
from xbuild.core.graph import Computation, Instruction
from xbuild.core.op import OPS
from xbuild.properties.order import needed_by, users_of

from .loops import LoopPair, arrays_of, copied, parts_of, place_of
from .rules.evaluation import is_float

MOST_KINDS = 8
"""How many kinds of trips are evaluated; of loops with more, a few trips are."""
_LARGE = 1 << 10
"""Arrays of integers of more elements are not computed at all trips."""

Evaluate: TypeAlias = Callable[[Instruction, tuple[Any, ...]], Any]
"""Gives the value of an instruction from those of its operands."""
Variables: TypeAlias = Hashable
"""What names an array of variables in both programs: a parameter, or an array of the state after a loop."""
Names: TypeAlias = Mapping[Instruction, Mapping[int, Variables]]
"""The arrays of variables, by their places in parameters and in the states after earlier loops."""


def kinds_of_trips(
    pair: LoopPair,
    earlier: Sequence[LoopPair],
    states: Sequence[Sequence[Mapping[int, Any]]],
    evaluates: Sequence[Evaluate],
    entries: Sequence[Computation],
) -> list[int] | None:
    """The first trip of each kind of two loops, from 1; None if the trips are of too many kinds, or are not known.

    `states` are the integers of the state before each trip of each loop.
    """
    bodies = [
        _read_body(
            loop,
            _parameters(entry)
            | {each.loops[side]: _names_after(each, number, side) for number, each in enumerate(earlier)},
        )
        for side, (loop, entry) in enumerate(zip(pair.loops, entries, strict=True))
    ]
    read = [each for each in bodies if each is not None]
    extents = {extent for each in read for extent in each.extents}
    taken, others = (
        frozenset[Variables]().union(*(getattr(each, name) for each in read)) for name in ("taken", "others")
    )
    if len(read) < len(bodies) or len(extents) > 1 or not taken.isdisjoint(others):
        return None
    first: dict[Hashable, int] = {}
    written: set[tuple[int, Instruction, int]] = set()
    for trip in range(1, pair.total + 1):
        exact: list[Hashable] = []
        rows: list[int] = []
        for side, (loop, body) in enumerate(zip(pair.loops, read, strict=True)):
            values = body.values(loop.attributes.body, states[side][trip - 1], evaluates[side])
            exact += [np.asarray(values[each]).tobytes() for each in body.exact]
            place = {each: min(max(int(values[each]), 0), max(extents) - 1) for each in body.rows}
            rows += place.values()
            again = {(side, each, place[each]) for each in body.writes}
            if not written.isdisjoint(again):  # a later trip would hide what this one has written
                return None
            written |= again
        names = {row: number for number, row in enumerate(dict.fromkeys(rows))}
        first.setdefault((*exact, *(names[row] for row in rows)), trip)
        if len(first) > MOST_KINDS:
            return None
    return [*first.values()]


def _parameters(entry: Computation) -> dict[Instruction, dict[int, Variables]]:
    """The names of the arrays of the parameters, by their places in a parameter that is a tuple."""
    found: dict[Instruction, dict[int, Variables]] = {}
    number = 0
    for each in sorted(entry.parameters, key=lambda each: int(each.attributes.number)):
        elements = each.shape.elements if isinstance(each.shape, TupleShape) else (each.shape,)
        found[each] = {}
        for place, shape in enumerate(elements):
            found[each][place] = "parameter", number
            number += len([*leaves(shape)])
    return found


def _names_after(pair: LoopPair, number: int, side: int) -> dict[int, Variables]:
    """The names of the arrays of variables after a pair of loops, which are those of the first program's state."""
    sources = pair.sources if side else {place: place for place in pair.renewed(0)}
    return {place: ("loop", number, sources[place]) for place in pair.renewed(side)}


@frozen(eq=False)
class TripBody:
    """How a body uses what it computes from the integers of its state.

    `numbers` are the instructions that compute it, in order; anything may depend on the values of those that are
    `exact`. `rows` are numbers of rows, and `writes` those of them at which rows are written. `extents` has how many
    rows the arrays have. `taken` are the variables that are used by rows, `others` those on which other arrays depend
    that the body uses.
    """

    numbers: tuple[Instruction, ...]
    exact: tuple[Instruction, ...]
    rows: tuple[Instruction, ...]
    writes: tuple[Instruction, ...]
    extents: frozenset[int]
    taken: frozenset[Variables]
    others: frozenset[Variables]

    def values(self, body: Computation, state: Mapping[int, Any], evaluate: Evaluate) -> dict[Instruction, Any]:
        """The values of the numbers at a trip."""
        found: dict[Instruction, Any] = {}
        for each in self.numbers:
            place = place_of(each)
            given = tuple(found[operand] for operand in each.operands if operand in found)
            found[each] = evaluate(each, given) if place is None else state[place]
        return found


def _read_body(loop: Instruction, names: Names) -> TripBody | None:
    """How a body uses integers; None if it uses arrays whose rows have numbers in other ways, too."""
    body, (state,), parts = loop.attributes.body, loop.operands, parts_of(loop)
    if parts is None or state.opcode != "tuple":
        return None
    numbers, changing = _numbers(body, parts.integers, parts.constant)
    stacks = {place: name for place in parts.constant if (name := _name(state.operands[place], names)) is not None}
    exact, rows, writes = dict[Instruction, None](), dict[Instruction, None](), dict[Instruction, None]()
    places: set[int] = set()
    for each in body.instructions:
        for at, operand in enumerate(each.operands):
            if operand not in changing or each in numbers or each is body.root:
                continue
            place = _array_of(each, at)
            if place is None or not (place in stacks or place in parts.written):
                exact[operand] = None
                continue
            rows[operand] = None
            places.add(place)
            if place in parts.written:
                writes[operand] = None
    if not _are_used_by_rows(body, places, parts.written):
        return None
    shapes = arrays_of(loop)
    used = {place for each in body.instructions if (place := place_of(each)) in parts.constant and place not in places}
    needed = needed_by([*exact, *rows], lambda each: each.operands if place_of(each) is None else ())
    return TripBody(
        tuple(each for each in body.instructions if each in needed),
        tuple(exact),
        tuple(rows),
        tuple(writes),
        frozenset(shapes[place].dims[0] for place in places),
        frozenset(stacks[place] for place in places if place in stacks),
        frozenset().union(*(_variables(state.operands[place], names) for place in used)),
    )


def _numbers(
    body: Computation, integers: Iterable[int], constant: frozenset[int]
) -> tuple[set[Instruction], set[Instruction]]:
    """The small arrays that follow from the integers of the state, and those of them that may change."""
    found: set[Instruction] = set()
    changing: set[Instruction] = set()
    for each in body.instructions:
        place, shape = place_of(each), each.shape
        if not isinstance(shape, Shape) or is_float(shape) or shape.size > _LARGE:
            continue
        if place is None and _is_computed(each) and all(operand in found for operand in each.operands):
            found.add(each)
            if not changing.isdisjoint(each.operands):
                changing.add(each)
        elif place in {*integers}:
            found.add(each)
            if place not in constant:
                changing.add(each)
    return found, changing


def _is_computed(each: Instruction) -> bool:
    properties = OPS[each.opcode].properties
    is_known = properties.needs == "nobody" and properties.depends_on == "operands"
    return is_known and each.opcode != "custom_call" and not each.called


def _array_of(each: Instruction, at: int) -> int | None:
    """The place of the state of whose array an operand of an instruction is the number of a row; else None."""
    if each.opcode == "dynamic_slice":
        size = each.attributes.dynamic_slice_sizes
    elif each.opcode == "dynamic_update_slice":
        size = each.operands[1].shape.dims  # type: ignore[union-attr]
    else:
        return None
    is_row = at == (1 if each.opcode == "dynamic_slice" else 2) and size[0] == 1
    return place_of(copied(each.operands[0])) if is_row else None


def _are_used_by_rows(body: Computation, places: set[int], written: frozenset[int]) -> bool:
    """Whether a body uses these arrays of its state by rows alone, or passes them on."""
    users = users_of(body)
    if any(place_of(user) is None for user in users.get(body.parameters[0], ())):
        return False
    pending = [each for each in body.instructions if place_of(each) in places]
    while pending:
        each = pending.pop()
        for user in users.get(each, ()):
            if user.opcode == "copy":
                pending.append(user)
            elif user.opcode in ("dynamic_slice", "dynamic_update_slice"):
                place = _array_of(user, 1 if user.opcode == "dynamic_slice" else 2)
                is_written = user.opcode == "dynamic_slice" or place in written
                if place is None or not is_written or [*user.operands].count(each) != 1:
                    return False
            elif user is not body.root:
                return False
    return True


# ----------------------------------------------------------------------------
# The variables of which arrays are made.


def _origin(each: Instruction) -> Instruction:
    """Where the elements of an array are computed: copies, conversions of floats, and loops that keep it lead there."""
    while True:
        if each.opcode in ("copy", "convert") and is_float(each.shape) and is_float(each.operands[0].shape):
            (each,) = each.operands
        elif each.opcode == "get_tuple_element" and each.operands[0].opcode == "while":
            (loop,), place = each.operands, each.attributes.index
            parts, (state,) = parts_of(loop), loop.operands
            if parts is None or place not in parts.constant or state.opcode != "tuple":
                return each
            each = state.operands[place]
        else:
            return each


def _name(array: Instruction, names: Names) -> Variables | None:
    """What names the variables that the elements of an array are, one each; None if they are others."""
    each = _origin(array)
    if not isinstance(each.shape, Shape) or not is_float(each.shape):
        return None
    of, place = (each.operands[0], each.attributes.index) if each.opcode == "get_tuple_element" else (each, 0)
    return names.get(of, {}).get(place)


def _variables(array: Instruction, names: Names) -> set[Variables]:
    """The arrays of variables on which an array depends."""

    def before(each: Instruction) -> Sequence[Instruction]:
        if _name(each, names) is not None:
            return ()
        origin = _origin(each)
        return origin.operands if origin is each else (origin,)

    return {name for each in needed_by([array], before) if (name := _name(each, names)) is not None}
