"""Difference of two programs: matched instructions with their changes, added and removed instructions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from attrs import frozen

from shape_inference import compatible
from shape_inference.elided import ElidedArray

from ..core.diagnostics import describe, operand_labels
from ..core.graph import Computation, Instruction, Module
from ..core.op import OPS
from ..properties.structure import UNSEEN, UNSEEN_IN_HEADER, Structure
from ..text.spelling.literals import literal_text
from .matching import Pairs, match
from .programs import module_of

_SHOWN = 16  # elements of a literal that are printed


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
    """The difference of two computations; `before` or `after` is None for an added or removed computation."""

    before: Computation | None
    after: Computation | None
    matched: tuple[tuple[Instruction, Instruction], ...] = ()
    changes: tuple[Change, ...] = ()
    changed: tuple[Changed, ...] = ()
    added: tuple[Instruction, ...] = ()
    removed: tuple[Instruction, ...] = ()

    @property
    def name(self) -> str:
        found = self.after or self.before
        return found.name if found else ""

    @property
    def same(self) -> bool:
        return bool(self.before and self.after) and not (self.changes or self.changed or self.added or self.removed)


@frozen
class Diff:
    """The difference of two programs; `same` is whether the programs are equal, and `str(diff)` is the report."""

    changes: tuple[Change, ...]
    computations: tuple[ComputationDiff, ...]

    @property
    def same(self) -> bool:
        return not self.changes and all(each.same for each in self.computations)

    def to_dict(self) -> dict[str, Any]:
        """The difference as plain data, for JSON."""
        from .difference_text import as_dict

        return as_dict(self)

    def __str__(self) -> str:
        from .difference_text import as_lines

        return "\n".join(as_lines(self))


def diff(before: Module | Computation, after: Module | Computation) -> Diff:
    """The difference of two programs: for each computation the changed, added and removed instructions.

    Computations and instructions are matched by name, or by structure where names do not match. Layouts, metadata and
    the spelling of literals and groups are not compared.

    >>> import xbuild as xb
    >>> before = xb.parse_hlo("ENTRY main { x = f32[2] parameter(0) y = tanh(x) ROOT z = add(y, x) }")
    >>> with xb.edit(before) as editor:
    ...     editor.replace_operand("z", "rhs", "y")
    >>> print(xb.diff(before, editor.result))
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


class _Comparison:
    """The pairs of matched computations of two modules."""

    def __init__(self, old: Module, new: Module) -> None:
        self.old, self.new = old, new
        self.structures = Structure({}), Structure({})
        self.partner: dict[Computation, Computation] = {}
        self.taken: set[Computation] = set()
        self.pairs: dict[Computation, Pairs] = {}

    def rows(self) -> Iterator[ComputationDiff]:
        """The differences of the computations in the order of the new program, then the removed computations."""
        self._pair_all()
        of_new = {new: old for old, new in self.partner.items()}
        for new in self.new.computations:
            old = of_new.get(new)
            yield ComputationDiff(None, new, added=new.instructions) if old is None else self._row(old, new)
        for old in self.old.computations:
            if old not in self.partner:
                yield ComputationDiff(old, None, removed=old.instructions)

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
        removed, added = pairs.rest()
        moved = _moved(pairs)
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
        return ComputationDiff(old, new, matched, changes, tuple(changed), tuple(added), tuple(removed))

    def _changes(self, old: Instruction, new: Instruction, pairs: Pairs, moved: set[Instruction]) -> Iterator[Change]:
        yield from _change("name", old.name, new.name)
        yield from _change("opcode", old.opcode.replace("_", "-"), new.opcode.replace("_", "-"))
        if not compatible(old.shape, new.shape):
            yield Change("shape", str(old.shape.plain()), str(new.shape.plain()))
        yield from _of_operands(old, new, pairs)
        yield from self._of_attributes(old, new)
        if {pairs.new.get(each) for each in old.control} != {*new.control}:
            yield Change("control-predecessors", _names(old.control), _names(new.control))
        if old.annotations is not new.annotations:
            yield from _of_notes(old.annotations, new.annotations, UNSEEN)
        if new in moved:
            yield Change("place", _place(old, pairs.before), _place(new, pairs.after))

    def _of_attributes(self, old: Instruction, new: Instruction) -> Iterator[Change]:
        if old.attributes is new.attributes:
            return
        before, after = old.attribute_values(), new.attribute_values()
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
    is_long = first.size > _SHOWN and (first.dtype, first.shape) == (second.dtype, second.shape)
    if not is_long:
        return Change(key, *(_literal(each) for each in (first, second)))
    rows = [np.frombuffer(each.tobytes(), np.uint8).reshape(each.size, -1) for each in (first, second)]
    places = np.flatnonzero((rows[0] != rows[1]).any(axis=1))
    at = tuple(map(int, np.unravel_index(places[0], first.shape)))
    what = f"{key}, {len(places)} of {first.size} elements, the first at {list(at)}"
    return Change(what, literal_text(first[at]), literal_text(second[at]))


def _literal(array: Any) -> str:
    return literal_text(array) if array.size <= _SHOWN else f"{array.size} elements"


def _of_operands(old: Instruction, new: Instruction, pairs: Pairs) -> Iterator[Change]:
    if (old.opcode, old.segments, len(old.operands)) != (new.opcode, new.segments, len(new.operands)):
        if [pairs.new.get(each) for each in old.operands] != [*new.operands]:
            yield Change("operands", _names(old.operands), _names(new.operands))
        return
    wrong = [n for n, (a, b) in enumerate(zip(old.operands, new.operands, strict=True)) if pairs.new.get(a) is not b]
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


def _moved(pairs: Pairs) -> set[Instruction]:
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
