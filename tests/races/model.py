"""A model of buffers that runs a program in every interleaving: the truth about its races.

Each array is in a cell. A pair reads its operand at any moment between its start and its done, and writes its result at
any later moment until the done; everything else reads and writes at once. A cell holds the name of the value that was
written to it last. A race is a read that finds another value than the one that the program names, in some interleaving.
Loops are unrolled, calls inlined, and each choice of branches is run. A part of a loop's state that comes from another
part, and the operand that only one of two branches returns, are copied: a compiler does that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from attrs import define, field, frozen

from .programs import Branch, Call, Done, Loop, Pair, Program, Pure, Start, Step, Update

Cell: TypeAlias = int
Value: TypeAlias = int


@frozen
class Array:
    """What a name stands for: a cell, and the value that should be in it."""

    cell: Cell
    value: Value


@frozen
class Event:
    """Reads and a write by one instruction. An event of a pair waits until its time comes, between start and done."""

    name: str
    pair: str = field(default="", kw_only=True)
    is_return: bool = field(default=False, kw_only=True)
    is_name: bool = field(default=False, kw_only=True)
    reads: tuple[Array, ...] = ()
    writes: Array | None = None
    is_stated: bool = False
    depth: int = 0


@frozen
class Line:
    """One line of a run: an event that happens at once, those that a start makes possible, those that a done awaits."""

    now: Event | None = None
    begins: tuple[Event, ...] = ()
    awaits: str = ""


@frozen
class WrongRead:
    """A read of a cell in which `writer` has written another value than the one that `reader` names."""

    writer: str
    reader: str
    is_stated: bool


Truth: TypeAlias = Literal["right", "race", "missing copy"]


@frozen
class Judgement:
    """`missing copy`: every interleaving is wrong, and no statement of the program says that memory is shared."""

    truth: Truth
    wrong: frozenset[WrongRead]


def judge(program: Program) -> Judgement | None:
    """The truth about a program; None if it donates memory in a way that the model does not know."""
    wrong: set[WrongRead] = set()
    has_clean = True
    for choice in (0, 1):
        run = _Unrolled(program, choice)
        if not run.is_known:
            return None
        found, is_clean = _explore(run.lines, run.donated)
        wrong |= found
        has_clean &= is_clean
    if not wrong:
        return Judgement("right", frozenset())
    is_race = has_clean or any(each.is_stated for each in wrong)
    return Judgement("race" if is_race else "missing copy", frozenset(wrong))


@define
class _Unrolled:
    """The lines of one run of a program."""

    program: Program
    choice: int
    lines: list[Line] = field(factory=list, init=False)
    donated: set[Cell] = field(factory=set, init=False)
    is_known: bool = field(default=True, init=False)
    _count: Iterator[int] = field(factory=itertools.count, init=False)
    _placed: dict[str, Cell] = field(factory=dict, init=False)
    _kinds: dict[str, Pair] = field(factory=dict, init=False)
    _results: dict[str, Array] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        names = {name: self._new() for name in self.program.parameters}
        for result, parameter in self.program.donated:
            self._place(self.program.results[result], names[self.program.parameters[parameter]].cell)
        for array in names.values():
            self.lines.append(Line(Event("parameter", writes=array)))
        self._run(self.program.steps, names, 0)
        self.lines.append(Line(Event("results", tuple(names[each] for each in self.program.results))))

    def _new(self, name: str = "", cell: Cell | None = None) -> Array:
        value = next(self._count)
        return Array(self._placed.get(name, value) if cell is None else cell, value)

    def _place(self, result: str, cell: Cell) -> None:
        """Put the first array of those that are written over each other, up to a result, into the donated cell."""
        makers = {step.out: step for step in self.program.steps if not isinstance(step, Loop)}
        name = result
        while True:
            step = makers.get(name)
            if isinstance(step, Update):
                name = step.target
            elif isinstance(step, Done) and (start := makers[step.start]) and start.kind == "update":  # type: ignore[union-attr]
                name = start.operand  # type: ignore[union-attr]
            else:
                break
        if isinstance(step, Pure | Done):
            self._placed[name] = cell
        elif name not in self.program.parameters or cell != self.program.parameters.index(name):
            self.is_known = False
        self.donated.add(cell)

    def _run(self, steps: Sequence[Step], names: dict[str, Array], depth: int) -> None:
        for step in steps:
            if isinstance(step, Pure):
                names[step.out] = self._new(step.out)
                reads = tuple(names[each] for each in step.operands)
                self.lines.append(Line(Event(step.out, reads, names[step.out], depth=depth)))
            elif isinstance(step, Update):
                target = names[step.target]
                names[step.out] = self._new(cell=target.cell)
                event = Event(step.out, (target,), names[step.out], step.kind == "stated", depth)
                self.lines.append(Line(event))
            elif isinstance(step, Start):
                self._start(step, names, steps, depth)
            elif isinstance(step, Done):
                self.lines.append(Line(awaits=step.start))
                self.lines.append(Line(awaits=f"{step.start}_into"))
                names[step.out] = result = self._results[step.start]
                if self._kinds[step.start] == "all_gather":  # its first half is taken
                    names[step.out] = self._new(step.out)
                    self.lines.append(Line(Event(step.out, (result,), names[step.out], depth=depth)))
            elif isinstance(step, Loop):
                state = tuple(names[each] for each in step.carried)
                for _ in range(step.trips):
                    inside = dict(zip(step.carried, state, strict=True))
                    self._run(step.body, inside, depth + 1)
                    after = tuple(inside[each] for each in step.result)
                    self._read_return("again", after, state, depth + 1)
                    state = tuple(self._apart(after, state, depth + 1))
                names.update(zip(step.out, state, strict=True))
            elif isinstance(step, Branch):
                operand = names[step.operand]
                inside = {step.operand: operand}
                self._run(step.bodies[self.choice], inside, depth + 1)
                result = inside[step.results[self.choice]]
                self._read_return(step.results[self.choice], (result,), (operand,), depth + 1)
                is_kept = [each == step.operand for each in step.results]
                names[step.out] = (
                    self._copy(result, step.operand, depth + 1)
                    if any(is_kept) and is_kept[self.choice] != all(is_kept)
                    else result
                )
            else:
                assert isinstance(step, Call)
                inside = {step.operand: names[step.operand]}
                self._run(step.body, inside, depth + 1)
                names[step.out] = inside[step.result]
                self._read_return(step.result, (names[step.out],), (names[step.operand],), depth + 1)

    def _read_return(self, name: str, arrays: Sequence[Array], given: Sequence[Array], depth: int) -> None:
        """What a body returns is read at its end. What it made itself counts as what is in the cell from there on."""
        kept = tuple(each for each in arrays if each in given)
        made = tuple(each for each in arrays if each not in given)
        self.lines.append(Line(Event(name, kept, depth=depth, is_name=True)))
        self.lines.append(Line(Event(name, made, depth=depth, is_return=True)))

    def _copy(self, array: Array, name: str, depth: int) -> Array:
        kept = Array(self._new().cell, array.value)
        self.lines.append(Line(Event(name, (array,), kept, depth=depth)))
        return kept

    def _apart(self, after: Sequence[Array], before: Sequence[Array], depth: int) -> Iterator[Array]:
        """The state of a loop, with a copy of each array that is also in another part, or was there."""
        taken = {each.cell for each in before}
        for array, own in zip(after, before, strict=True):
            is_shared = array.cell in taken and array.cell != own.cell
            yield self._copy(array, "again", depth) if is_shared else array
            taken.add(array.cell)

    def _start(self, step: Start, names: Mapping[str, Array], steps: Sequence[Step], depth: int) -> None:
        operand, kind = names[step.operand], step.kind
        done = next(each.out for each in steps if isinstance(each, Done) and each.start == step.out)
        result = self._new(cell=operand.cell) if kind == "update" else self._new("" if kind == "all_gather" else done)
        self._results[step.out], self._kinds[step.out] = result, kind
        reads = Event(step.out, (operand,), depth=depth, pair=step.out)
        if kind == "transfer":  # the recv is a pair of its own, which begins first
            into = f"{step.out}_into"
            self.lines.append(Line(begins=(Event(into, writes=result, depth=depth, pair=into),)))
            self.lines.append(Line(begins=(reads,)))
        else:
            self.lines.append(Line(begins=(reads, Event(step.out, writes=result, depth=depth, pair=step.out))))


Writing: TypeAlias = tuple[Value, str, bool, int]
"""A value that was written, by which instruction, whether its text says that it writes over its operand, its depth."""

Contents: TypeAlias = tuple[tuple[Cell, tuple[Writing, ...]], ...]
"""What was written to each cell, in order."""


def _explore(lines: Sequence[Line], donated: set[Cell]) -> tuple[set[WrongRead], bool]:
    """All wrong reads in all interleavings, and whether one interleaving has none."""
    wrong: set[WrongRead] = set()
    is_clean_run_possible = False
    waiting: list[tuple[int, tuple[Event, ...], Contents, bool]] = [(0, (), (), True)]
    seen = {waiting[0]}
    while waiting:
        place, open_events, contents, is_clean = waiting.pop()
        if place == len(lines):
            is_clean_run_possible |= is_clean
            continue
        following = []
        for number, event in enumerate(open_events):
            is_first = all(other.pair != event.pair for other in open_events[:number])
            if is_first:
                rest = (*open_events[:number], *open_events[number + 1 :])
                after, found = _happen(event, contents, donated)
                following.append((place, rest, after, is_clean and not found))
                wrong |= found
        line = lines[place]
        if not (line.awaits and any(event.pair == line.awaits for event in open_events)):
            after, found = _happen(line.now, contents, donated) if line.now is not None else (contents, set())
            following.append((place + 1, (*open_events, *line.begins), after, is_clean and not found))
            wrong |= found
        waiting += [each for each in following if each not in seen]
        seen.update(following)
    return wrong, is_clean_run_possible


def _happen(event: Event, contents: Contents, donated: set[Cell]) -> tuple[Contents, set[WrongRead]]:
    """The contents after an event, and its wrong reads; what it writes does not depend on what it read."""
    cells = dict(contents)
    wrong = set()
    for array in event.reads:
        written = cells[array.cell]
        if written[-1][0] != array.value:
            place = max((n for n, (value, *_) in enumerate(written) if value == array.value), default=-1)
            later = written[place + 1 :]
            if event.is_name and all(depth < event.depth for *_, depth in later):
                continue  # what only passes through a body is not read by it
            is_stated = (array.cell in donated and event.depth == 0) or all(stated for _, _, stated, _ in later)
            wrong |= {WrongRead(writer, event.name, is_stated) for _, writer, _, _ in later}
            if event.is_return:  # one wrong read is enough: what is returned counts as the value from here on
                cells[array.cell] = (*written, (array.value, *written[-1][1:]))
    if event.writes is not None:
        writing = event.writes.value, event.name, event.is_stated, event.depth
        cells[event.writes.cell] = (*cells.get(event.writes.cell, ()), writing)
    return tuple(sorted(cells.items())), wrong
