"""Finds the races of scheduled programs: two accesses to one buffer, of which one writes, and which are not in order.

An access of a start lasts until its done; that of any other instruction ends at once. An access happens before those
that begin after its end. A race is a value that is overwritten before all its readers have ended, or a buffer to which
two instructions write at a time, if one of them is a start, or if the program itself says that they share a buffer.
Copies that are missing elsewhere (a dynamic-update-slice whose operand is read later) are left to the compiler.

Sections:

    Values of a computation: where each is made
    When values are read and written
    Values that share a buffer
    Conflicts of the values of a buffer
    The findings
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal, TypeAlias

from attrs import define, field, frozen

from shape_inference import compatible
from shape_inference.trees import Path, at

from ...core.graph import Computation, Instruction, Module
from ...core.memos import remembered
from ...process.progress import over
from ...properties.effects import (
    CALLERS,
    DONE_OF,
    START_OF,
    CallStep,
    name_in_report,
    notable,
    op_and_name,
    origin,
    steps,
    where,
)
from ...properties.effects import Path as CallPath
from ...properties.order import users_of
from ...properties.sites import Site, reached
from ...properties.sources import Place
from ...text.header import ALIASES, stated_aliases
from ..model.describe import finding
from ..model.program import DeviceClass, GridProgram
from ..model.verdict import Finding
from .memory import arrays_of, is_view, operands_in, states_aliases, written_over

# ----------------------------------------------------------------------------
# Values of a computation: where each is made

Role: TypeAlias = Literal["entry", "once", "loop"]
"""How a computation runs: as the entry, once for each call, or as the body of a loop, once for each trip."""

_LOST = -1
"""The first index of a part that is in no result: what a callee writes over an operand and does not return."""


@frozen
class Access:
    """The positions at which an instruction begins and ends to read or write; `site` is in a callee if that does so."""

    begin: int
    end: int
    instruction: Instruction
    site: Site


@frozen(eq=False)
class FrameCall:
    """A computation that an instruction runs, and the operand that each of its parameters is."""

    frame: BufferFrame
    operand_of: Callable[[Instruction], Instruction]

    def given(self, parameter: Place) -> Place:
        """The part of an operand that a part of a parameter is."""
        return self.operand_of(parameter[0]), parameter[1]


@define(eq=False, slots=False)
class BufferFrame:
    """The values of one computation, and the buffers that they share.

    `alike` maps parts of parameters to earlier ones that hold the same value. `aliases` pairs parts of the result with
    the parts of parameters in whose memory they have to be.
    """

    program: ProgramMemory
    computation: Computation
    role: Role
    alike: Mapping[Place, Place]
    aliases: Sequence[tuple[Path, Place]]
    path: CallPath
    _made: dict[Place, Place] = field(factory=dict, init=False)
    _views: dict[Instruction, Mapping[Path, Place]] = field(factory=dict, init=False)
    _callees: dict[Instruction, list[FrameCall]] = field(factory=dict, init=False)
    _uses: dict[Place, tuple[Access, ...]] = field(factory=dict, init=False)
    _by_index: dict[Instruction, dict[int, list[Instruction]]] = field(factory=dict, init=False)
    _sites: dict[Place, Site] = field(factory=dict, init=False)

    @cached_property
    def order(self) -> Sequence[Instruction]:
        """The instructions in the order of the schedule."""
        return self.program.device_class.order(self.computation)

    @cached_property
    def position(self) -> Mapping[Instruction, int]:
        """The place of each instruction in the order."""
        return {instruction: n for n, instruction in enumerate(self.order)}

    def value_at(self, place: Place) -> Place:
        """The place where the value of a part was made; of parameters that hold the same value, the first."""
        made = self.made_at(place)
        return self.alike.get(made, made)

    def made_at(self, place: Place) -> Place:
        """The place where the value of a part was made."""
        passed = []
        while place not in self._made:
            passed.append(place)
            before = self.behind(*place)
            if before is None:
                self._made[place] = place
                break
            place = before
        made = self._made[place]
        self._made.update(dict.fromkeys(passed, made))
        return made

    def behind(self, instruction: Instruction, path: Path) -> Place | None:
        """The part of an operand that a part of a result is; None if the instruction makes a value."""
        opcode = instruction.opcode
        if opcode == "get_tuple_element":
            return instruction.operands[0], (instruction.attributes.index, *path)
        if opcode == "tuple" and path:
            return instruction.operands[path[0]], path[1:]
        if opcode in CALLERS:
            return self._unchanged(instruction, path)
        return self._operands_in(instruction).get(path) if is_view(instruction) else None

    def _operands_in(self, view: Instruction) -> Mapping[Path, Place]:
        if view not in self._views:
            self._views[view] = operands_in(view)
        return self._views[view]

    def _unchanged(self, caller: Instruction, path: Path) -> Place | None:
        """The operand that a part of the result of a call, loop or conditional is, whatever happens inside."""
        if path[:1] == (_LOST,):
            return None
        callees = self.callees(caller)
        if caller.opcode == "while":
            body = callees[1].frame
            kept = body.value_at((body.computation.parameters[0], path))
            return (caller.operands[0], path) if body.returned(path) == kept else None
        returned = [(callee, callee.frame.returned(path)) for callee in callees]
        if any(value[0].opcode != "parameter" for _, value in returned):
            return None
        given = {self.value_at(callee.given(value)) for callee, value in returned}
        return given.pop() if len(given) == 1 else None

    def returned(self, path: Path) -> Place:
        """The value of a part of the result."""
        return self.value_at((self.computation.root, path))

    def callees(self, caller: Instruction) -> list[FrameCall]:
        """The computations that a caller runs; of a loop the condition and the body."""
        if caller not in self._callees:
            self._callees[caller] = [self._callee(caller, n, step) for n, step in enumerate(steps(caller))]
        return self._callees[caller]

    def _callee(self, caller: Instruction, number: int, step: CallStep) -> FrameCall:
        def operand_of(parameter: Instruction) -> Instruction:
            is_branch = caller.opcode == "conditional"
            return caller.operands[1 + number if is_branch else parameter.attributes.number]

        first: dict[Place, Place] = {}
        alike: dict[Place, Place] = {}
        for parameter in step.computation.parameters:
            for path in arrays_of(parameter.shape):
                place = parameter, path
                known = first.setdefault(self.value_at((operand_of(parameter), path)), place)
                if known != place:
                    alike[place] = known
        role: Role = "loop" if step.role == "while body" else "once"
        return FrameCall(self.program.frame(step.computation, role, alike, (*self.path, step)), operand_of)

    # ------------------------------------------------------------------------
    # When values are read and written

    @cached_property
    def ends(self) -> dict[Instruction, int]:
        """The position of the done of each start. If that is elsewhere, where the context goes on into a callee, which
        may end it, or the end of the computation."""
        found: dict[Instruction, int] = {}
        for instruction in self.order:
            if instruction.opcode in DONE_OF:
                found[instruction] = 0
            elif instruction.opcode in START_OF:
                start = origin(instruction)
                if start in found:
                    found[start] = self.position[instruction]
        for start, end in found.items():
            if not end:
                found[start] = min(self._callers_of(start), default=len(self.order))
        return found

    def _callers_of(self, start: Instruction) -> Iterator[int]:
        """The positions of the calls and loops that get a start, in a tuple or by itself."""
        waiting, seen = [start], {start}
        while waiting:
            for user in self._all_users.get(waiting.pop(), ()):
                if user.opcode in CALLERS:
                    yield self.position[user]
                elif user.opcode in ("tuple", "get_tuple_element") and user not in seen:
                    seen.add(user)
                    waiting.append(user)

    def done_of(self, half: Instruction) -> str:
        """The name of the done of a start, or the end of the computation if it is elsewhere; of a done its own."""
        if half.opcode in START_OF:
            return half.name
        end = self.ends.get(half, len(self.order))
        return self.order[end].name if end < len(self.order) else f"the end of {self.computation.name}"

    @cached_property
    def _travelling(self) -> dict[Place, Access]:
        """The accesses of transfers whose context arrives in a tuple, such as the state of a loop, by their buffer."""
        found: dict[Place, Access] = {}
        for done in self.order:
            if done.opcode in START_OF and done.operands and origin(done) not in self.ends:
                path = next(arrays_of(done.operands[0].shape), None)
                if path is not None:
                    buffer = self.value_at((done.operands[0], path))
                    begin = self.written(buffer)[0]
                    found[buffer] = Access(begin, self.position[done], done, Site(self.path, done))
        return found

    def written(self, value: Place) -> tuple[int, int]:
        """When a value is written, from begin to end; parameters are written before the first instruction."""
        instruction = value[0]
        begin = -1 if instruction.opcode == "parameter" else self.position[instruction]
        return begin, self.ends.get(instruction, begin)

    def writer(self, value: Place) -> Site:
        """Where a value is written, in a callee if that writes over its parameter."""
        return self._sites.get(value) or Site(self.path, value[0])

    def uses(self, value: Place) -> tuple[Access, ...]:
        """When and where a value is read. The result of the computation is read at its end, by its root."""
        if value not in self._uses:
            self._uses[value] = (*self._find_uses(value),)
        return self._uses[value]

    def _find_uses(self, value: Place) -> Iterator[Access]:
        if value[1][:1] == (_LOST,):
            return
        end = len(self.order)
        waiting = [value, *(place for place, first in self.alike.items() if first == value)]
        seen = {*waiting}
        if value in self._travelling:
            yield self._travelling[value]
        while waiting:
            place = waiting.pop()
            if place[0] is self.computation.root:
                yield Access(end, end, place[0], Site(self.path, place[0]))
            for user in self._users(*place):
                site = self._reader(user, place)
                if site is not None:
                    begin = self.position[user]
                    yield Access(begin, self.ends.get(user, begin), user, site)
                for path in self._passed_to(user, place):
                    if (user, path) not in seen and self.value_at((user, path)) == value:
                        seen.add((user, path))
                        waiting.append((user, path))

    def _users(self, instruction: Instruction, path: Path) -> list[Instruction]:
        """The instructions that use a part: each other element of a tuple is used by others."""
        users = self._all_users.get(instruction, ())
        if not path:
            return [*users]
        if instruction not in self._by_index:
            index = self._by_index[instruction] = {}
            for user in users:
                number = user.attributes.index if user.opcode == "get_tuple_element" else -1
                index.setdefault(number, []).append(user)
        index = self._by_index[instruction]
        return [*index.get(path[0], ()), *index.get(-1, ())]

    @cached_property
    def _all_users(self) -> Mapping[Instruction, Sequence[Instruction]]:
        return users_of(self.computation)

    def _reader(self, user: Instruction, place: Place) -> Site | None:
        """Where a user reads the part of an operand; None if it only passes the part on."""
        if user.opcode in CALLERS:
            if user.opcode == "conditional" and user.operands[0] is place[0]:
                return Site(self.path, user)
            received = [(callee, p) for callee in self.callees(user) for p in self._received(callee, place)]
            reads = (callee.frame.read_at(p) for callee, p in received)
            copies = (callee.frame.copier for callee, p in received if self._is_copied(user, callee, p))
            return next((site for site in (*reads, *copies) if site is not None), None)
        return None if is_view(user) and user.opcode not in DONE_OF else Site(self.path, user)

    def _is_copied(self, caller: Instruction, callee: FrameCall, parameter: Place) -> bool:
        """Whether a part of a parameter is returned, but is not the caller's result, so that it is copied."""
        if caller.opcode == "while" and callee.frame.role != "loop":
            return False
        value = callee.frame.value_at(parameter)
        return any(
            callee.frame.returned(path) == value and self.behind(caller, path) is None
            for path in arrays_of(caller.shape)
        )

    def _received(self, callee: FrameCall, place: Place) -> list[Place]:
        """The parts of a callee's parameters that are a part of an operand."""
        parameters = callee.frame.computation.parameters
        return [(parameter, place[1]) for parameter in parameters if callee.operand_of(parameter) is place[0]]

    def _passed_to(self, user: Instruction, place: Place) -> Iterator[Path]:
        """The parts of a user's result that may be the part of its operand."""
        operand, path = place
        if user.opcode == "get_tuple_element":
            yield path[1:]
        elif user.opcode == "tuple":
            yield from ((number, *path) for number, each in enumerate(user.operands) if each is operand)
        elif user.opcode == "while":
            yield path
        elif user.opcode in CALLERS:
            yield from arrays_of(user.shape)
        elif is_view(user):
            yield from (part for part, each in self._operands_in(user).items() if each == place)

    @property
    def copier(self) -> Site:
        """Where what the computation returns is copied: its root."""
        return Site(self.path, self.computation.root)

    def read_at(self, parameter: Place) -> Site | None:
        """Where the computation reads a part of a parameter, other than to return it."""
        end = len(self.order)
        return next((use.site for use in self.uses(self.value_at(parameter)) if use.begin < end), None)

    # ------------------------------------------------------------------------
    # Values that share a buffer

    @cached_property
    def buffers(self) -> list[list[Place]]:
        """The values of each buffer that has several, in the order in which they are written."""
        leaders: dict[Place, Place] = {}

        def leader(value: Place) -> Place:
            while leaders.setdefault(value, value) != value:
                leaders[value] = value = leaders[leaders[value]]
            return value

        for value, other in self._pairs():
            leaders[leader(value)] = leader(other)
        groups: dict[Place, list[Place]] = {}
        for value in [*leaders]:
            groups.setdefault(leader(value), []).append(value)
        return [sorted(group, key=lambda value: self.written(value)[0]) for group in groups.values() if group[1:]]

    def _pairs(self) -> Iterator[tuple[Place, Place]]:
        """A value and the value over which it is written, for each value that is not in memory of its own."""
        for instruction in over(self.order, "looking for races", "instructions"):
            for output, (number, path) in written_over(instruction).items():
                yield (instruction, output), self.value_at((instruction.operands[number], path))
            if instruction.opcode in CALLERS:
                yield from self._pairs_of_caller(instruction)
        for path, parameter in self.aliases:
            yield self.returned(path), self.value_at(parameter)

    def _pairs_of_caller(self, caller: Instruction) -> Iterator[tuple[Place, Place]]:
        """What the callees of a caller write over its operands, whether they return it or not."""
        for callee in self.callees(caller):
            for parameter, site in callee.frame.overwritten.items():
                given = self.value_at(callee.given(parameter))
                lost = caller, (_LOST, len(self._sites))
                written = [(caller, path) for path in callee.frame.returned_over(parameter)]
                for value in (lost, *(each for each in written if self.value_at(each) == each)):
                    self._sites.setdefault(value, site)
                    yield value, given

    @cached_property
    def overwritten(self) -> Mapping[Place, Site]:
        """The parts of parameters over which the computation writes, and where it first does."""
        found: dict[Place, Site] = {}
        for buffer in self.buffers:
            others = [value for value in buffer if value[0].opcode != "parameter"]
            if others:
                found.update(dict.fromkeys(set(buffer) - set(others), self.writer(others[0])))
        return found

    @cached_property
    def _buffer_of(self) -> Mapping[Place, list[Place]]:
        return {value: buffer for buffer in self.buffers for value in buffer}

    def returned_over(self, parameter: Place) -> Iterator[Path]:
        """The parts of the result that are in the memory of a part of a parameter; of a loop, the same part."""
        buffer = self._buffer_of[parameter]
        for path in [parameter[1]] if self.role == "loop" else arrays_of(self.computation.root.shape):
            value = self.returned(path)
            if value in buffer and value[0].opcode != "parameter":
                yield path

    # ------------------------------------------------------------------------
    # Conflicts of the values of a buffer

    def conflicts(self) -> Iterator[Clash]:
        """The first conflict of each value that is overwritten too early."""
        for buffer in self.buffers:
            for number, value in enumerate(over(buffer, "looking for races", "values")):
                later = (buffer[n] for n in range(number + 1, len(buffer)))
                found = next(self._conflicts_of(value, later), None)
                if found is not None:
                    yield found

    def _conflicts_of(self, value: Place, later: Iterable[Place]) -> Iterator[Clash]:
        """The conflicts with values that are written later into its buffer, or at the same time."""
        begin, end = self.written(value)
        uses = self.uses(value)
        last = max((use.end for use in uses), default=end)
        for other in later:
            other_begin, other_end = self.written(other)
            if other_begin >= max(end, last) and other_begin > begin:
                return
            if other_begin == begin:
                if begin < 0 and uses and self.uses(other) and self.is_stated(other):
                    yield Clash(self, value, other, None)
                continue
            is_stated = self.is_stated(other)
            late = [
                use
                for use in uses
                if use.end > other_begin
                and use.instruction is not other[0]
                and (is_stated or use.begin < max(other_end, other_begin + 1))
            ]
            if late:
                yield Clash(self, value, other, min(late, key=lambda use: (use.begin, use.end)))
            elif end > other_begin and (uses or self.uses(other)):
                yield Clash(self, value, other, None)

    def is_stated(self, value: Place) -> bool:
        """Whether the program says that a value is in the memory of another one, so that a copy cannot be missing."""
        return states_aliases(self.writer(value).instruction) or value in self._donated

    @cached_property
    def _donated(self) -> frozenset[Place]:
        """The values that are in the memory of donated arguments."""
        donated = {self.value_at(parameter) for _, parameter in self.aliases}
        return frozenset(value for buffer in self.buffers if donated.intersection(buffer) for value in buffer)


@frozen(eq=False)
class Clash:
    """Two values of a buffer: `other` is written before `use` has read `value`, or while `value` is still written."""

    frame: BufferFrame
    value: Place
    other: Place
    use: Access | None

    @property
    def sites(self) -> tuple[Site, Site]:
        """Where `other` is written; where `value` is read, or also written."""
        first = self.frame.writer(self.value) if self.use is None else self.use.site
        return self.frame.writer(self.other), first


# ----------------------------------------------------------------------------
# The findings


@remembered
def may_race(module: Module) -> bool:
    """Whether a race is possible: the order is final, and the program starts anything or says that values share memory.

    In other programs, a compiler inserts the copies that they need.
    """
    return module.is_scheduled and (ALIASES in module.annotations or any(map(_is_notable, reached(module.entry))))


@remembered
def _is_notable(computation: Computation) -> bool:
    return any(each.opcode in DONE_OF or states_aliases(each) for each in notable(computation))


@define(eq=False, slots=False)
class ProgramMemory:
    """The frames of the computations of a program."""

    device_class: DeviceClass
    frames: dict[tuple[Computation, Role, frozenset[tuple[Place, Place]]], BufferFrame] = field(
        factory=dict, init=False
    )

    def frame(self, computation: Computation, role: Role, alike: Mapping[Place, Place], path: CallPath) -> BufferFrame:
        """The frame of a callee, the same for all calls whose arguments are equally distinct."""
        key = computation, role, frozenset(alike.items())
        if key not in self.frames:
            self.frames[key] = BufferFrame(self, computation, role, alike, (), path)
        return self.frames[key]

    @cached_property
    def entry(self) -> BufferFrame:
        """The frame of the entry, with the aliases that the module states."""
        module = self.device_class.module
        if ALIASES not in module.annotations:
            return BufferFrame(self, module.entry, "entry", {}, (), ())
        parameters = {each.attributes.number: each for each in module.entry.parameters}
        results = {*arrays_of(module.entry.root.shape)}
        stated = [
            (each.output, (parameters[each.number], each.index))
            for each in stated_aliases(module.annotations)
            if each.output in results
            and each.number in parameters
            and compatible(at(module.entry.root.shape, each.output), at(parameters[each.number].shape, each.index))
        ]
        return BufferFrame(self, module.entry, "entry", {}, stated, ())

    def all_frames(self) -> list[BufferFrame]:
        """The frames of the entry and of all that it calls, which the search for values of one buffer visits."""
        entry = self.entry
        assert entry.buffers is not None
        return [entry, *self.frames.values()]


def race_findings(program: GridProgram) -> list[Finding]:
    """The races of the modules of a program."""
    found: list[Finding] = []
    for device_class in program.classes:
        if may_race(device_class.module):
            first: dict[frozenset[Instruction], Clash] = {}
            for frame in ProgramMemory(device_class).all_frames():
                for conflict in frame.conflicts():
                    first.setdefault(frozenset(site.instruction for site in conflict.sites), conflict)
            found += [_finding(device_class, conflict) for conflict in first.values()]
    return found


def _finding(device_class: DeviceClass, conflict: Clash) -> Finding:
    message, fix = _sentence_and_fix(conflict)
    return finding(
        "race",
        message,
        *((device_class.devices, site) for site in {each.instruction: each for each in conflict.sites}.values()),
        cause_text=f"{_reason(conflict)}; {_RULE}",
        repair_text=fix,
    )


_RULE = "the program is scheduled, so a compiler will not insert a copy, and only a done orders what its start began"


def _sentence_and_fix(conflict: Clash) -> tuple[str, str]:
    """The sentence of a finding, which names the writer first, and how to fix it."""
    frame, use, value = conflict.frame, conflict.use, value_text(conflict.value)
    writer, other = frame.writer(conflict.other), conflict.other[0]
    begin, end = frame.written(conflict.other)
    copied = f"copy {value} before, and use the copy"
    if use is None:
        if frame.written(conflict.value)[0] == begin:
            return (
                f"{value_text(conflict.other)} has to be in the memory of {value}, but "
                f"{_site_text(Site(frame.path, frame.computation.root))} needs both",
                f"copy {value} before it is returned",
            )
        first = frame.writer(conflict.value)
        return (
            f"{_site_text(writer)} writes to the memory to which {_site_text(first)} still writes, until "
            f"{frame.done_of(first.instruction)}",
            f"move {writer.instruction.name} after {frame.done_of(first.instruction)}, or {copied}",
        )
    if use.begin <= begin and use.end > begin and use.end > use.begin:
        done = frame.done_of(use.instruction)
        reader = "a transfer uses" if use.instruction.opcode in START_OF else f"{_site_text(use.site)} reads"
        return (
            f"{_site_text(writer)} overwrites {value}, which {reader} until {done}",
            f"move {writer.instruction.name} after {done}, or {copied}",
        )
    if end > use.begin:
        done = frame.done_of(other)
        return (
            f"{_site_text(writer)} overwrites {value} until {done}, and {_site_text(use.site)} reads it meanwhile",
            f"move {use.site.instruction.name} before {writer.instruction.name}, or {copied}",
        )
    if use.instruction is frame.computation.root and use.begin == len(frame.order):
        return (
            f"{_site_text(writer)} overwrites {value}, which {_site_text(use.site)} returns later",
            copied,
        )
    return (
        f"{_site_text(writer)} overwrites {value}, which {_site_text(use.site)} reads later",
        f"move {use.site.instruction.name} before {writer.instruction.name}, or {copied}",
    )


def _reason(conflict: Clash) -> str:
    """Why the two values are in one buffer."""
    frame, (instruction, path) = conflict.frame, conflict.other
    name = instruction.name
    if path in written_over(instruction):
        how = ", as its output_to_operand_aliasing says" if states_aliases(instruction) else ""
        return f"{name} writes its result over its operand{how}"
    for output, parameter in frame.aliases:
        if frame.returned(output) == conflict.other:
            return f"input_output_alias puts result {_index(output)} into the memory of {value_text(parameter)}"
    if frame.writer(conflict.other).instruction is not instruction:
        return f"{name} runs {frame.writer(conflict.other).instruction.name}, which writes over its operand"
    return f"{value_text(conflict.other)} is in the memory of {value_text(conflict.value)}"


def _index(path: Path) -> str:
    return f"{{{','.join(map(str, path))}}}"


def value_text(value: Place) -> str:
    """`x`, `element {1} of state`, `the result of all-gather-start.1`"""
    instruction, path = value
    name = name_in_report(instruction)
    if instruction.opcode in DONE_OF:
        return f"the result of {name}"
    return f"element {_index(path)} of {name}" if path else name


def _site_text(site: Site) -> str:
    return f"{op_and_name(site.instruction)}{where(site.path)}"
