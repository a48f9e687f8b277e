"""Difference of two programs: instructions matched by name, structure and neighbours; changed, added, removed.

Sections:

    Matching of instructions
    Difference of two programs
    Report
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from attrs import Factory, define, frozen

from shape_inference import compatible
from shape_inference.elided import ElidedArray

from ..core.diagnostics import describe, operand_labels
from ..core.graph import Computation, Instruction, Module
from ..core.hooks import Reported
from ..core.op import OPS
from ..core.report_text import MORE, Line, StyledText, folded, more_text
from ..properties.order import users_of
from ..properties.structure import UNSEEN, UNSEEN_IN_HEADER, Digest, Structure, digest, meant_values
from ..text.literals import literal_text
from .rebuild import module_of

# ----------------------------------------------------------------------------
# Matching of instructions
#
# By name, then by structure, then by matched neighbours.

_COUNTED = re.compile(r".*\.\d+")


@define(eq=False)
class Pairs:
    """Pairs of instructions of two computations; each instruction is in at most one pair."""

    before: Computation
    after: Computation
    new: dict[Instruction, Instruction] = Factory(dict)
    old: dict[Instruction, Instruction] = Factory(dict)

    def add(self, a: Instruction, b: Instruction) -> bool:
        if a in self.new or b in self.old:
            return False
        self.new[a], self.old[b] = b, a
        return True

    def rest(self) -> tuple[list[Instruction], list[Instruction]]:
        """The instructions of either computation that are in no pair."""
        return (
            [each for each in self.before.instructions if each not in self.new],
            [each for each in self.after.instructions if each not in self.old],
        )

    def alike(self, key: Callable[[Instruction], Hashable]) -> None:
        """Pair unpaired instructions of equal keys in order; a key of None excludes an instruction."""
        rest = self.rest()
        if not all(rest):
            return
        olds, news = (_by(key, each) for each in rest)
        for value, group in olds.items():
            for a, b in zip(group, news.get(value, ()), strict=False):
                self.add(a, b)

    def spread(self, *, to_users: bool, has_new_opcodes: bool = False) -> None:
        """Pair neighbours of pairs with equal opcodes: operands at the same index, and users that are unambiguous.

        With `has_new_opcodes`, also users with other opcodes, if only they have their operands and shape, and if their
        users have the same opcodes.
        """
        if not all(self.rest()):
            return
        users = [users_of(side) for side in (self.before, self.after)] if to_users else [{}, {}]
        stack = list(self.new.items())
        while stack:
            a, b = stack.pop()
            found = [(x, y) for x, y in zip(a.operands, b.operands, strict=False) if x.opcode == y.opcode]
            olds = _by(_opcode, (each for each in users[0].get(a, ()) if each not in self.new))
            news = _by(_opcode, (each for each in users[1].get(b, ()) if each not in self.old))
            found += [(x[0], news[opcode][0]) for opcode, x in olds.items() if len(x) == len(news.get(opcode, ())) == 1]
            if has_new_opcodes:
                places = self._places(users[0].get(a, ()), self.new), self._places(users[1].get(b, ()), self.old)
                only = [(x[0], places[1][key][0]) for key, x in places[0].items()
                        if len(x) == len(places[1].get(key, ())) == 1]  # fmt: skip
                found += [(x, y) for x, y in only if _has_users_alike(x, y, users)]
            stack += [(x, y) for x, y in found if self.add(x, y)]

    def _places(
        self, instructions: Iterable[Instruction], paired: Mapping[Instruction, Instruction]
    ) -> dict[Hashable, list[Instruction]]:
        """The unpaired instructions whose operands are paired, by their operands in the new program and their shape."""

        def place(each: Instruction) -> Hashable:
            if each in paired or each.called or any(operand not in paired for operand in each.operands):
                return None
            operands = each.operands if paired is self.old else tuple([self.new[operand] for operand in each.operands])
            return operands, each.shape.plain()

        return _by(place, instructions)


Users: TypeAlias = Sequence[Mapping[Instruction, Sequence[Instruction]]]


def _has_users_alike(old: Instruction, new: Instruction, users: Users) -> bool:
    """Whether the users of two instructions have the same opcodes."""
    both = (sorted(map(_opcode, side.get(each, ()))) for side, each in zip(users, (old, new), strict=True))
    return next(both) == next(both)


def _opcode(instruction: Instruction) -> str:
    return instruction.opcode


def _by(
    key: Callable[[Instruction], Hashable], instructions: Iterable[Instruction]
) -> dict[Hashable, list[Instruction]]:
    found: dict[Hashable, list[Instruction]] = {}
    for each in instructions:
        value = key(each)
        if value is not None:
            found.setdefault(value, []).append(each)
    return found


def match(before: Computation, after: Computation, structures: tuple[Structure, Structure]) -> Pairs:
    """The pairs of two computations, in canonical order where their structures are equal.

    Otherwise instructions are paired by name. Where the structure shows that names were renumbered (`add.2` is now
    `add.3`, and another instruction was `add.3`), they are paired by structure, then by names without a number.
    """
    pairs = Pairs(before, after)
    if structures[0].of(before) == structures[1].of(after):
        for a, b in zip(structures[0].order(before), structures[1].order(after), strict=True):
            pairs.add(a, b)
        return pairs
    has_new_parameters = len(before.parameters) != len(after.parameters)
    labels = {**structures[0].labels(before), **structures[1].labels(after)}
    if has_new_parameters:  # later parameters have other numbers
        labels |= {each: digest(str(each.shape)) for side in (before, after) for each in side.parameters}
    numbers: dict[Hashable, int] = {}
    made = {**_value_numbers(before, labels, numbers), **_value_numbers(after, labels, numbers)}
    unique = _unique(before, made), _unique(after, made)
    if not _is_renumbered(before, after, unique):
        pairs.alike(lambda each: each.name)
    if not has_new_parameters:
        pairs.alike(lambda each: each.attributes.number if each.opcode == "parameter" else None)
    if all(pairs.rest()):
        _pair_unique(pairs, _common(*unique), labels, numbers)
    pairs.spread(to_users=False)
    pairs.alike(lambda each: (each.name, made[each]))
    pairs.alike(made.__getitem__)
    pairs.alike(lambda each: None if _COUNTED.fullmatch(each.name) else each.name)
    if before.root.opcode == after.root.opcode:
        pairs.add(before.root, after.root)
    pairs.spread(to_users=True)
    pairs.alike(lambda each: (each.name, each.opcode))
    pairs.spread(to_users=True, has_new_opcodes=True)
    return pairs


Labels = Mapping[Instruction, Digest]


def _value_numbers(computation: Computation, labels: Labels, numbers: dict[Hashable, int]) -> dict[Instruction, int]:
    """A number for each instruction; instructions of equal ops on operands of equal numbers have the same number."""
    found: dict[Instruction, int] = {}
    for each in computation.instructions:
        operands = tuple([found.get(before, -1) for before in each.operands])
        control = tuple(sorted({found.get(before, -1) for before in each.control}))
        found[each] = numbers.setdefault((labels[each], operands, control), len(numbers))
    return found


def _pair_unique(
    pairs: Pairs, by_value: dict[Instruction, Instruction], labels: Labels, numbers: dict[Hashable, int]
) -> None:
    """Pair instructions that are alike in one place only, by what they compute and by what is computed from them.

    Where the two disagree, as next to a new layer, the value counts if users have the same opcodes.
    """
    sides = pairs.before, pairs.after
    used = [_use_numbers(side, labels, numbers) for side in sides]
    by_use = _common(*(_unique(side, each) for side, each in zip(sides, used, strict=True)))
    users = users_of(pairs.before), users_of(pairs.after)
    for a, b in by_value.items():
        pairs.add(a, b if _has_users_alike(a, b, users) else by_use.get(a, b))
    pairs.spread(to_users=False)
    for a, b in by_use.items():
        pairs.add(a, b)


def _use_numbers(computation: Computation, labels: Labels, numbers: dict[Hashable, int]) -> dict[Instruction, int]:
    """A number for each instruction; instructions of equal ops have the same one if users of equal numbers use them."""
    found: dict[Instruction, int] = {}
    uses: dict[Instruction, list[tuple[int, int]]] = {}
    for each in reversed(computation.instructions):
        key = ("used", labels[each], each is computation.root, tuple(sorted(uses.get(each, ()))))
        found[each] = numbers.setdefault(key, len(numbers))
        for place, operand in enumerate(each.operands):
            uses.setdefault(operand, []).append((found[each], place))
    return found


def _unique(computation: Computation, made: dict[Instruction, int]) -> dict[int, Instruction]:
    """The instructions whose number no other instruction of the computation has."""
    groups: dict[int, list[Instruction]] = {}
    for each in computation.instructions:
        groups.setdefault(made[each], []).append(each)
    return {value: group[0] for value, group in groups.items() if len(group) == 1}


def _common(olds: dict[int, Instruction], news: dict[int, Instruction]) -> dict[Instruction, Instruction]:
    """The instructions with a number that is unique on both sides."""
    return {a: news[value] for value, a in olds.items() if value in news}


def _is_renumbered(
    before: Computation, after: Computation, unique: tuple[dict[int, Instruction], dict[int, Instruction]]
) -> bool:
    """Whether names were renumbered: a structurally unique instruction has a name that another one had before.

    Renumbering changes all later names too, so a later unique instruction with an unchanged name disproves it.
    """
    olds, news = ({each.name for each in side.instructions} for side in (before, after))
    found = False
    for value, b in unique[1].items():
        a = unique[0].get(value)
        if a is not None and _COUNTED.fullmatch(a.name) and b.opcode not in ("parameter", "constant"):
            if found and a.name == b.name:
                return False
            found = found or (a.name != b.name and (a.name in news or b.name in olds))
    return found


# ----------------------------------------------------------------------------
# Difference of two programs
#
# Matched instructions with their changes, added and removed instructions.

MOST_ELEMENTS = 16
"""The elements of a literal that are printed."""


@frozen
class Change:
    """One change of an instruction, a computation or a module: what changed, and its text before and after."""

    what: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.what}: {self.before or 'none'} -> {self.after or 'none'}"


@frozen
class Changed:
    """An instruction that is in both programs, with its changes."""

    before: Instruction
    after: Instruction
    changes: tuple[Change, ...]


@frozen
class ComputationDiff:
    """The difference of two computations; `before` or `after` is None for an added or removed computation.

    `moved` are instructions that another computation had before, as after XLA has put them into a fusion.
    """

    before: Computation | None
    after: Computation | None
    matched: tuple[tuple[Instruction, Instruction], ...] = ()
    changes: tuple[Change, ...] = ()
    changed: tuple[Changed, ...] = ()
    added: tuple[Instruction, ...] = ()
    removed: tuple[Instruction, ...] = ()
    moved: tuple[Changed, ...] = ()

    @property
    def name(self) -> str:
        found = self.after or self.before
        return found.name if found else ""

    @property
    def same(self) -> bool:
        differing = self.changes or self.changed or self.added or self.removed or self.moved
        return bool(self.before and self.after) and not differing


@frozen
class Diff(Reported):
    """The difference between two programs. `same` says whether they are equal; `str(diff)` returns the report."""

    changes: tuple[Change, ...]
    computations: tuple[ComputationDiff, ...]

    @property
    def same(self) -> bool:
        return not self.changes and all(each.same for each in self.computations)

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as plain data, for JSON."""

        return as_dict(self)

    def report(self, *, all: bool = False) -> str:
        """Return the report as text; `all` also shows the rows after the tenth, which str() omits."""
        return "\n".join(as_lines(self, all=all))

    def page(self, before: str = "before", after: str = "after") -> str:
        """Return an HTML page that shows both programs side by side, with each instruction beside its partner.

        `before` and `after` are the titles of the two sides. The page is one file that needs no network.

        >>> import xbuild as xb
        >>> double = xb.computation(xb.f32[2])(lambda x: x + x)
        >>> xb.diff(double, double).page("a.hlo", "b.hlo").splitlines()[0]
        '<!doctype html>'
        """
        from .difference_page import page_text

        return page_text(self, before, after)

    def __str__(self) -> str:
        return self.report()

    def _styled_lines(self) -> Iterable[Line]:
        return styled_lines(self)


def diff(before: Module | Computation, after: Module | Computation) -> Diff:
    """Compare two programs: for each computation, return the changed, added and removed instructions.

    Computations and instructions are matched by name, or by structure and neighbours if names do not match; an
    instruction that is in a call or fusion in one program only is matched, too. Layouts, metadata and the spelling of
    literals and groups are not compared.

    >>> import xbuild as xb
    >>> before = xb.parse_hlo("ENTRY main { x = f32[2] parameter(0) y = tanh(x) ROOT z = add(y, x) }")
    >>> with xb.edit(before) as editor:
    ...     editor.replace_operand("z", "rhs", "y")
    >>> print(xb.diff(before, editor.result))
    different: 1 instruction changed
    main: 3 matched, 1 changed
      ~ z = f32[2] add(y, y)
          operand rhs: x -> y
    """
    old, new = module_of(before), module_of(after)
    return Diff(tuple(_of_modules(old, new)), tuple(_Comparison(old, new).rows()))


def _of_modules(old: Module, new: Module) -> Iterator[Change]:
    for key in ("name", "num_replicas", "num_partitions", "is_scheduled"):
        yield from _change(key, str(getattr(old, key)), str(getattr(new, key)))
    yield from _of_notes(old.annotations, new.annotations, UNSEEN_IN_HEADER)


def _of_notes(old: Mapping[str, Any], new: Mapping[str, Any], unseen: frozenset[str]) -> Iterator[Change]:
    for key in dict.fromkeys((*old, *new)):
        if key not in unseen:
            yield from _change(key, str(old.get(key, "")), str(new.get(key, "")))


def _change(what: str, before: str, after: str) -> Iterator[Change]:
    if before != after:
        yield Change(what, before, after)


class _Flow:
    """The values of a program through calls and fusions that it runs in one place."""

    def __init__(self, module: Module) -> None:
        callers: dict[Computation, list[Instruction]] = {}
        self.home = {each: computation for computation in module.computations for each in computation.instructions}
        for each in self.home:
            for called in each.called:
                callers.setdefault(called, []).append(each)
        self.callers = {
            called: several[0]
            for called, several in callers.items()
            if len(several) == 1 and OPS[several[0].opcode].properties.calls == "once"
        }
        self.users: dict[Instruction, list[Instruction]] = {}
        for each in self.home:
            for operand in dict.fromkeys(self.operands(each)):
                self.users.setdefault(operand, []).append(each)

    def operands(self, instruction: Instruction) -> list[Instruction]:
        """The values that an instruction uses; none for a call, whose computation uses them."""
        if any(called in self.callers for called in instruction.called):
            return []
        return [self.value(operand) for operand in instruction.operands]

    def value(self, each: Instruction) -> Instruction:
        """The instruction that computes a value: outside for a parameter, inside for the result of a call."""
        while True:
            home = self.home[each]
            if each.opcode == "parameter" and home in self.callers:
                each = self.callers[home].operands[each.attributes.number]
            elif each.called and each.called[0] in self.callers:
                each = each.called[0].root
            elif each.opcode == "get_tuple_element" and (tuple_ := self.value(each.operands[0])).opcode == "tuple":
                each = tuple_.operands[each.attributes.index]
            else:
                return each


class _Comparison:
    """The pairs of matched computations of two modules."""

    def __init__(self, old: Module, new: Module) -> None:
        self.old, self.new = old, new
        self.structures = Structure({}), Structure({})
        self.partner: dict[Computation, Computation] = {}
        self.taken: set[Computation] = set()
        self.pairs: dict[Computation, Pairs] = {}
        self.paired: dict[Instruction, Instruction] = {}
        self.moved_away: dict[Instruction, Instruction] = {}
        self.moved_here: dict[Instruction, Instruction] = {}

    def rows(self) -> Iterator[ComputationDiff]:
        """The differences of the computations in the order of the new program, then the removed computations."""
        self._pair_all()
        self._pair_across()
        of_new = {new: old for old, new in self.partner.items()}
        for new in self.new.computations:
            old = of_new.get(new)
            if old is None:
                added = tuple(each for each in new.instructions if each not in self.moved_here)
                yield ComputationDiff(None, new, added=added, moved=self._moved(new))
            else:
                yield self._row(old, new)
        for old in self.old.computations:
            if old not in self.partner:
                removed = tuple(each for each in old.instructions if each not in self.moved_away)
                yield ComputationDiff(old, None, removed=removed)

    def _pair_across(self) -> None:
        """Pair instructions that are in calls or fusions in one program with those that are not in the other.

        Neighbours of pairs are paired where the values that they use or that use them are the same through calls.
        """
        self.paired = {a: b for pairs in self.pairs.values() for a, b in pairs.new.items()}
        olds = {each for side in self.old.computations for each in side.instructions if each not in self.paired}
        news = {each for side in self.new.computations for each in side.instructions}.difference(self.paired.values())
        if not olds or not news:
            return
        one, other = self.flows
        if not one.callers and not other.callers:
            return
        stack = [*self.paired.items(), (one.value(self.old.entry.root), other.value(self.new.entry.root))]
        while stack:
            a, b = stack.pop()
            near = [(a, b), *zip(one.operands(a), other.operands(b), strict=False)]
            users = _by(_opcode, one.users.get(a, ())), _by(_opcode, other.users.get(b, ()))
            for opcode, several in users[0].items():
                if len(several) == len(others := users[1].get(opcode, [])) == 1:
                    near.append((several[0], others[0]))
            for x, y in near:
                if x in olds and y in news and x.opcode == y.opcode:
                    self.paired[x] = self.moved_away[x] = y
                    self.moved_here[y] = x
                    olds.discard(x)
                    news.discard(y)
                    stack.append((x, y))

    @cached_property
    def flows(self) -> tuple[_Flow, _Flow]:
        return _Flow(self.old), _Flow(self.new)

    def _moved(self, new: Computation) -> tuple[Changed, ...]:
        """The instructions of a computation that another one had before."""
        rows = [(self.moved_here[each], each) for each in new.instructions if each in self.moved_here]
        found = []
        for a, b in rows:
            place = Change("computation", self.flows[0].home[a].name, new.name)
            found.append(Changed(a, b, (place, *self._changes(a, b, None, set()))))
        return tuple(found)

    def _pair(self, a: Computation, b: Computation) -> None:
        """Pair two computations, and the computations that their paired instructions call as the same region."""
        stack = [(a, b)]
        while stack:
            a, b = stack.pop()
            if a in self.partner or b in self.taken:
                continue
            self.partner[a] = b
            self.taken.add(b)
            self.pairs[a] = match(a, b, self.structures)
            for x, y in self.pairs[a].new.items():
                if OPS[x.opcode].regions and x.opcode == y.opcode:
                    stack += zip(x.called, y.called, strict=False)

    def _pair_all(self) -> None:
        olds, news = self.old.computations, self.new.computations
        digests = [{each: s.of(each) for each in side} for s, side in zip(self.structures, (olds, news), strict=True)]
        for key in (lambda n, each: (each.name, digests[n][each]), lambda n, each: digests[n][each]):
            self._pair_alike(key)
        self._pair(self.old.entry, self.new.entry)
        self._pair_alike(lambda n, each: each.name)

    def _pair_alike(self, key: Any) -> None:
        """Pair computations of equal keys in order; an entry is paired only with an entry."""
        waiting: dict[Any, list[Computation]] = {}
        for each in self.new.computations:
            if each not in self.taken:
                waiting.setdefault((key(1, each), each is self.new.entry), []).append(each)
        for each in self.old.computations:
            found = waiting.get((key(0, each), each is self.old.entry))
            while found and found[0] in self.taken:
                found.pop(0)
            if found and each not in self.partner:
                self._pair(each, found.pop(0))

    def _row(self, old: Computation, new: Computation) -> ComputationDiff:
        pairs = self.pairs[old]
        removed = [each for each in pairs.rest()[0] if each not in self.moved_away]
        added = [each for each in pairs.rest()[1] if each not in self.moved_here]
        moved = _find_moved(pairs)
        changed = []
        for each in new.instructions:
            if each in pairs.old:
                changes = tuple(self._changes(pairs.old[each], each, pairs, moved))
                if changes:
                    changed.append(Changed(pairs.old[each], each, changes))
        changes = tuple(_change("name", old.name, new.name))
        if pairs.new.get(old.root) is not new.root:
            changes = (*changes, Change("root", old.root.name, new.root.name))
        matched = tuple(pairs.new.items())
        moved_here = self._moved(new)
        return ComputationDiff(old, new, matched, changes, tuple(changed), tuple(added), tuple(removed), moved_here)

    def _is_operand(self, old: Instruction, new: Instruction) -> bool:
        """Whether two operands are paired, or are the same value through calls."""
        if self.paired.get(old) is new:
            return True
        if not self.moved_away:
            return False
        return self.paired.get(self.flows[0].value(old)) is self.flows[1].value(new)

    def _changes(
        self, old: Instruction, new: Instruction, pairs: Pairs | None, moved: set[Instruction]
    ) -> Iterator[Change]:
        yield from _change("name", old.name, new.name)
        yield from _change("opcode", old.opcode.replace("_", "-"), new.opcode.replace("_", "-"))
        if not compatible(old.shape, new.shape):
            yield Change("shape", str(old.shape.plain()), str(new.shape.plain()))
        yield from _of_operands(old, new, self._is_operand)
        yield from self._of_attributes(old, new)
        if {self.paired.get(each) for each in old.control} != {*new.control}:
            yield Change("control-predecessors", _names(old.control), _names(new.control))
        if old.annotations is not new.annotations:
            yield from _of_notes(old.annotations, new.annotations, UNSEEN)
        if new in moved and pairs is not None:
            yield Change("place", _place(old, pairs.before), _place(new, pairs.after))

    def _of_attributes(self, old: Instruction, new: Instruction) -> Iterator[Change]:
        if old.attributes is new.attributes:
            return
        before, after = meant_values(old), meant_values(new)
        for key in dict.fromkeys((*before, *after)):
            first, second = before.get(key), after.get(key)
            if not self._equal(first, second):
                yield _of_values(key, first, second)

    def _equal(self, first: Any, second: Any) -> bool:
        if isinstance(first, Computation) and isinstance(second, Computation):
            is_alike = self.structures[0].of(first) == self.structures[1].of(second)
            return self.partner.get(first) is second or is_alike
        if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
            alike = (first.dtype, first.shape) == (second.dtype, second.shape)
            return alike and first.tobytes() == second.tobytes()
        if isinstance(first, ElidedArray) and isinstance(second, ElidedArray):
            return (first.element_type, first.shape) == (second.element_type, second.shape)
        if isinstance(first, tuple) and isinstance(second, tuple):
            return len(first) == len(second) and all(map(self._equal, first, second))
        return type(first) is type(second) and bool(first == second)


def _of_values(key: str, first: Any, second: Any) -> Change:
    """The change of an attribute; for long literals, the first elements that differ and their number."""
    if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray):
        return Change(key, _text(first), _text(second))
    is_long = first.size > MOST_ELEMENTS and (first.dtype, first.shape) == (second.dtype, second.shape)
    if not is_long:
        return Change(key, *(_literal(each) for each in (first, second)))
    rows = [np.frombuffer(each.tobytes(), np.uint8).reshape(each.size, -1) for each in (first, second)]
    places = np.flatnonzero((rows[0] != rows[1]).any(axis=1))
    at = tuple(map(int, np.unravel_index(places[0], first.shape)))
    what = f"{key}, {len(places)} of {first.size} elements, the first at {list(at)}"
    return Change(what, literal_text(first[at]), literal_text(second[at]))


def _literal(array: Any) -> str:
    return literal_text(array) if array.size <= MOST_ELEMENTS else f"{array.size} elements"


def _of_operands(
    old: Instruction, new: Instruction, is_same: Callable[[Instruction, Instruction], bool]
) -> Iterator[Change]:
    is_alike = len(old.operands) == len(new.operands)
    wrong = [n for n, (a, b) in enumerate(zip(old.operands, new.operands, strict=False)) if not is_same(a, b)]
    if (old.opcode, old.segments) != (new.opcode, new.segments) or not is_alike:
        if wrong or not is_alike:
            yield Change("operands", _names(old.operands), _names(new.operands))
        return
    labels = operand_labels(OPS[new.opcode], len(new.operands), new.segments) if wrong else []
    for n in wrong:
        yield Change(
            "operand" if labels[n] == "operands" else f"operand {labels[n]}", old.operands[n].name, new.operands[n].name
        )


def _names(instructions: tuple[Instruction, ...]) -> str:
    return ", ".join(each.name for each in instructions)


def _text(value: Any) -> str:
    return "" if value is None else describe(value)


def _place(instruction: Instruction, computation: Computation) -> str:
    place = computation.instructions.index(instruction)
    return f"after {computation.instructions[place - 1].name}" if place else "first"


def _find_moved(pairs: Pairs) -> set[Instruction]:
    """The fewest moved instructions: the matched ones that are not in a longest common subsequence of both orders."""
    place = {each: n for n, each in enumerate(pairs.after.instructions)}
    both = [pairs.new[each] for each in pairs.before.instructions if each in pairs.new]
    ends: list[int] = []
    heads: list[Instruction] = []
    behind: dict[Instruction, Instruction | None] = {}
    for each in both:
        n = bisect_left(ends, place[each])
        behind[each] = heads[n - 1] if n else None
        ends[n : n + 1] = [place[each]]
        heads[n : n + 1] = [each]
    kept: set[Instruction] = set()
    last = heads[-1] if heads else None
    while last is not None:
        kept.add(last)
        last = behind[last]
    return {each for each in both if each not in kept}


# ----------------------------------------------------------------------------
# Report
#
# As lines of text and as plain data.

Paint = Callable[[str, str], str]
_MARKS = {"changed": "~", "moved": ">", "added": "+", "removed": "-"}


def _plain(text: str, kind: str) -> str:
    return text


def as_lines(diff: Diff, paint: Paint = _plain, all: bool = False, more: str = MORE) -> Iterator[str]:
    """The lines of the report; `paint` gets each piece of text and its kind: changed, added, removed, same, different,
    folded or empty.
    """
    if diff.same:
        yield paint("the programs are the same", "same")
        return
    yield paint(f"different: {count_kinds(diff)}", "different")
    for change in diff.changes:
        yield paint(f"module {change}", "changed")
    shown, hidden = folded([each for each in diff.computations if not each.same], all)
    for each in shown:
        yield from _computation(each, paint, all, more)
    if hidden:
        yield paint(more_text(hidden, more, "computation"), "folded")


_STYLES = {
    "changed": "waits", "moved": "waits", "added": "good", "removed": "bad", "same": "good", "different": "bad",
    "folded": "dim",
}  # fmt: skip


def styled_lines(diff: Diff) -> Iterator[Line]:
    """The lines of the report in pieces with their styles."""
    pieces: list[StyledText] = []

    def keep(text: str, kind: str) -> str:
        pieces.append(StyledText(text, _STYLES.get(kind, "")))
        return text

    for _ in as_lines(diff, keep):
        yield tuple(pieces)
        pieces.clear()


def count_kinds(diff: Diff) -> str:
    """`2 instructions changed, 1 added` over all computations; `the module's header` if no instruction differs."""
    rows = ((word, sum(len(getattr(each, word)) for each in diff.computations)) for word in _MARKS)
    first, *others = [(count, word) for word, count in rows if count] or [(0, "")]
    if not first[0]:
        return "no instruction differs, but names, roots or headers do"
    noun = f"instruction{'s' * (first[0] != 1)}"
    return ", ".join([f"{first[0]:,} {noun} {first[1]}", *(f"{count:,} {word}" for count, word in others)])


def _computation(each: ComputationDiff, paint: Paint, all: bool, more: str) -> Iterator[str]:
    if each.before is None or each.after is None:
        kind = "added" if each.before is None else "removed"
        count = len(each.added) + len(each.removed)
        here = f", and {len(each.moved)} moved here" * bool(each.moved)
        entire = "entire " * (not here)
        yield paint(f"{each.name}: {entire}computation {kind}, {count} instruction{'s' * (count != 1)}{here}", kind)
        differing = [row.after for row in each.moved]
    else:
        rows = [("matched", each.matched), *((word, getattr(each, word)) for word in _MARKS)]
        yield paint(f"{each.name}: " + ", ".join(f"{len(found)} {word}" for word, found in rows if found), "")
        for change in each.changes:
            yield paint(f"  {change}", "changed")
        listed = {*each.added, *(row.after for row in (*each.changed, *each.moved))}
        differing = [*each.removed, *(one for one in each.after.instructions if one in listed)]
    changed = {row.after: row for row in each.changed} | {row.after: row for row in each.moved}
    moved = {row.after for row in each.moved}
    removed, added = {*each.removed}, {*each.added}
    shown, hidden = folded(differing, all)
    for instruction in shown:
        if instruction in removed:
            yield _line(instruction, "removed", paint)
        elif instruction in added:
            yield _line(instruction, "added", paint)
        else:
            yield from _changed_lines(changed[instruction], "moved" if instruction in moved else "changed", paint)
    if hidden:
        yield paint(f"  {more_text(hidden, more)}", "folded")


def _changed_lines(row: Changed, kind: str, paint: Paint) -> Iterator[str]:
    changes = {change.what: change for change in row.changes}
    place = changes.pop("computation", None)
    was = row.before.name if "name" in changes or place else ""
    said = f"  (was {was}{f' in {place.before}' if place else ''})" if was else ""
    yield _line(row.after, kind, paint) + paint(said, "")
    yield from (paint(f"      {change}", "") for change in changes.values() if change.what != "name")


def _line(instruction: Instruction, kind: str, paint: Paint) -> str:
    text = repr(instruction)
    return paint(f"  {_MARKS[kind]} {text if len(text) <= 160 else f'{text[:157]}...'}", kind)


def as_dict(diff: Diff) -> dict[str, Any]:
    return {
        "same": diff.same,
        "changes": list(map(_change_line, diff.changes)),
        "computations": [_row(each) for each in diff.computations if not each.same],
    }


def _change_line(change: Change) -> dict[str, str]:
    return {"what": change.what, "before": change.before, "after": change.after}


def _row(each: ComputationDiff) -> dict[str, Any]:
    return {
        "before": each.before and each.before.name,
        "after": each.after and each.after.name,
        "matched": len(each.matched),
        "changes": list(map(_change_line, each.changes)),
        "changed": list(map(_changed_dict, each.changed)),
        "moved": list(map(_changed_dict, each.moved)),
        "added": [instruction.name for instruction in each.added],
        "removed": [instruction.name for instruction in each.removed],
    }


def _changed_dict(row: Changed) -> dict[str, Any]:
    return {"before": row.before.name, "after": row.after.name, "changes": list(map(_change_line, row.changes))}
