"""`bisect`: the first instruction of a program whose value differs on two engines, with its operands.

Sections:

    Engines, and the result
    Parts of a program: the instructions up to a place, and one instruction on its operands
    The search, and the search inside calls, loops and conditionals
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from attrs import define, evolve, field, frozen

from shape_inference import Shape, TupleShape
from shape_inference.trees import leaves
from xbuild.core.graph import NOTHING, Computation, Instruction, Module
from xbuild.editing import extract
from xbuild.process.progress import during
from xbuild.properties.effects import DONE_OF, START_OF, TRANSFERS, branch_number
from xbuild.properties.order import ordered

from ..rules.limits import Limits
from ..runtime.run import execute
from .comparison import OutputComparison, compare
from .process import Child
from .stablehlo import execute_on_stablehlo
from .xla import execute_on_xla, require_jaxlib

# ----------------------------------------------------------------------------
# Engines, and the result

Arguments: TypeAlias = Sequence[Sequence[Any]]
"""The arguments of each device."""

Engine: TypeAlias = Callable[[Module, Arguments], list[Any]]
"""What runs a program: it returns the results by device, as `execute` does."""


@contextmanager
def engine(
    name: str, devices: int, *, platform: str | None = "cpu", limits: Limits | None = None, **options: Any
) -> Iterator[Engine]:
    """The engine of a name for programs of at most so many devices: interpreter, xla or stablehlo.

    Runs on real XLA share one process, which ends with the block. `options` are those of `execute`.
    """
    limits = limits or Limits()
    if name == "xla":
        require_jaxlib()
        with Child(devices, platform, limits.bytes, forks=True) as child:
            yield lambda module, given: execute_on_xla(module, given, platform=platform, limits=limits, child=child)
    elif name == "stablehlo":
        yield lambda module, given: execute_on_stablehlo(module, given, limits=limits)
    else:
        yield lambda module, given: execute(module, given, limits=limits, **options)


@frozen
class FirstDifference:
    """The first instruction whose value differs on two engines.

    `program` has this instruction only, with its operands as parameters, and `operands` are the values of these
    parameters for each device, as the first engine computes them. `compared` compares the values of the instruction on
    both engines: on the same operands if `is_alone`, and otherwise on those that each engine computed itself, because
    the instruction alone does not differ. `inside` says in which calls and trips of loops the instruction is. `runs`
    counts the runs of both engines.
    """

    instruction: Instruction
    program: Module
    operands: list[list[Any]]
    compared: list[OutputComparison]
    is_alone: bool
    inside: tuple[str, ...]
    runs: int

    def lines(self) -> Iterator[str]:
        """The report: the instruction, where it is, its line, and the differences."""
        opcode = self.instruction.opcode.replace("_", "-")
        source = f" ({self.instruction.source})" if self.instruction.source else ""
        inside = f", in {' in '.join(reversed(self.inside))}" if self.inside else ""
        yield f"first difference: %{self.instruction.name}, {opcode}{inside}{source}"
        if not self.is_alone:
            yield "on the same operands the engines agree: they differ by what precedes it, or by how it is compiled"
        yield from (f"  {each}" for each in self.compared if not each.same)

    def to_dict(self) -> dict[str, Any]:
        return {
            "instruction": self.instruction.name,
            "opcode": self.instruction.opcode.replace("_", "-"),
            "inside": list(self.inside),
            "source": str(self.instruction.source) if self.instruction.source else None,
            "is_alone": self.is_alone,
            "differences": [str(each) for each in self.compared if not each.same],
            "runs": self.runs,
        }


# ----------------------------------------------------------------------------
# Parts of a program: the instructions up to a place, and one instruction on its operands


def _is_value(instruction: Instruction) -> bool:
    """Whether a run can return the value: it has no tokens."""
    return all(isinstance(leaf, Shape) for leaf in leaves(instruction.shape))


@define(eq=False)
class _Parts:
    """The programs that consist of the first instructions of an entry; parameters come first."""

    module: Module
    order: tuple[Instruction, ...] = field(init=False)
    places: list[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        entry = self.module.entry
        rest = [each for each in ordered(entry) if each.opcode != "parameter"]
        self.order = (*entry.parameters, *rest)
        self.places = [*self._places()]

    def _places(self) -> Iterator[int]:
        """The counts of instructions after which no start lacks its done, and no send its recv."""
        ends: dict[int, set[str]] = {}
        for each in self.order:
            if each.opcode in TRANSFERS:
                ends.setdefault(each.attributes.channel_id, set()).add(each.opcode)
        open_starts: set[Instruction] = set()
        open_channels: dict[int, set[str]] = {}
        for number, each in enumerate(self.order, 1):
            if each.opcode in START_OF or each.opcode == "async_update":
                open_starts.difference_update(each.operands)
            if each.opcode in DONE_OF or each.opcode == "async_update":
                open_starts.add(each)
            if each.opcode in TRANSFERS:
                channel = each.attributes.channel_id
                missing = open_channels.setdefault(channel, {*ends[channel]})
                missing.discard(each.opcode)
                if not missing:
                    del open_channels[channel]
            if each.opcode != "parameter" and not open_starts and not open_channels:
                yield number

    def live(self, place: int) -> list[Instruction]:
        """The arrays, and tuples of arrays, among the first instructions that later ones or the caller use."""
        used = {operand for each in self.order[place:] for operand in each.operands} | {self.module.entry.root}
        return [each for each in self.order[:place] if each.opcode != "parameter" and each in used and _is_value(each)]

    def returning(self, place: int, values: Sequence[Instruction]) -> Module:
        """The program of the first instructions that returns these values."""
        names = {each.name for each in self.order}
        name = next(name for n in range(len(names) + 1) if (name := f"values.{n}") not in names)
        shape = TupleShape(each.shape for each in values)
        root = Instruction("tuple", name, shape, tuple(values), (len(values),))
        entry = Computation(self.module.entry.name, (*self.order[:place], root), root)
        return _with_entry(self.module, entry)


def _with_entry(module: Module, entry: Computation) -> Module:
    return evolve(module, entry=entry, computations=entry.reachable(), annotations=NOTHING)


# ----------------------------------------------------------------------------
# The search, and the search inside calls, loops and conditionals

_MOST_TRIPS = 10_000


def bisect(
    module: Module,
    arguments: Arguments,
    ours: Engine,
    theirs: Engine,
    *,
    eps: float | None = None,
    names: tuple[str, str] = ("interpreter", "xla"),
) -> FirstDifference | None:
    """Find the first instruction whose value differs on two engines beyond the tolerance of its type.

    The search runs parts of the program on both engines, and halves the part in which a difference appears. Inside a
    call, a fusion, a conditional or a loop, it continues in the called computation, for a loop in the first trip that
    differs. None means that the results do not differ. `eps` is the tolerance as in `compare`, and `names` are those of
    the engines. Raises what the engines raise.

    >>> import xbuild as xb
    >>> module = xb.Module("m", xb.computation(xb.f32[2])(lambda x: xb.exp(-x) + x))
    >>> def faulty(part, given):
    ...     return xb.execute(xb.parse_hlo(part.to_hlo().replace("negate(", "abs(")), given)
    >>> bisect(module, [[np.float32([1, 2])]], xb.execute, faulty).instruction.name
    'negate.2'
    """
    with during("bisecting", done=lambda: search.runs, unit="runs"):
        search = _Search(ours, theirs, eps, names)
        return search.within(module, [list(row) for row in arguments], ())


@define(eq=False)
class _Search:
    """The engines of a search, and the number of their runs."""

    ours: Engine
    theirs: Engine
    eps: float | None
    names: tuple[str, str]
    runs: int = 0

    def run(self, module: Module, arguments: Arguments) -> tuple[list[Any], list[OutputComparison]]:
        """The results of the first engine, and their comparison with those of the second."""
        self.runs += 2
        ours, theirs = self.ours(module, arguments), self.theirs(module, arguments)
        shapes = [module.entry.root.shape] * module.num_devices
        one, other = self.names
        return ours, compare(ours, theirs, shapes, self.eps, engine=other, our_engine=one)

    def within(self, module: Module, arguments: Arguments, inside: tuple[str, ...]) -> FirstDifference | None:
        _, whole = self.run(module, arguments)
        if all(each.same for each in whole):
            return None
        parts = _Parts(module)
        instruction, place, compared = self._first(parts, arguments, whole)
        program, operands = self._alone(parts, place, instruction, arguments)
        _, again = self.run(program, operands)
        is_alone = not all(each.same for each in again)
        deeper = self._inside(program, operands, instruction, inside) if is_alone else None
        if deeper is not None:
            return deeper
        rows = [list(row) for row in operands]
        return FirstDifference(instruction, program, rows, again if is_alone else compared, is_alone, inside, self.runs)

    def _first(
        self, parts: _Parts, arguments: Arguments, whole: list[OutputComparison]
    ) -> tuple[Instruction, int, list[OutputComparison]]:
        """The first instruction that differs, its place, and its comparison: the values before it do not differ."""
        found = (parts.module.entry.root, parts.places[-1], whole)
        low, high = -1, len(parts.places) - 1
        while high - low > 1:
            middle = (low + high) // 2
            wrong = self._differing(parts, parts.places[middle], arguments)
            if wrong is None:
                low = middle
            else:
                high, found = middle, (wrong[0], parts.places[middle], wrong[1])
        return found

    def _differing(
        self, parts: _Parts, place: int, arguments: Arguments
    ) -> tuple[Instruction, list[OutputComparison]] | None:
        """The first live value at a place that differs, with its comparison."""
        values = parts.live(place)
        if not values:
            return None
        _, compared = self.run(parts.returning(place, values), arguments)
        owners = [value for value in values for _ in leaves(value.shape)]
        wrong = {owners[each.output] for each in compared if not each.same}
        first = next((value for value in values if value in wrong), None)
        return None if first is None else (first, [each for each in compared if owners[each.output] is first])

    def _alone(
        self, parts: _Parts, place: int, instruction: Instruction, arguments: Arguments
    ) -> tuple[Module, list[list[Any]]]:
        """The program of one instruction, and its operands as the first engine computes them."""
        program = extract(_with_entry(parts.module, parts.module.entry), around=instruction, radius=0)
        by_name = {each.name: each for each in parts.order}
        values = [by_name[each.name] for each in program.entry.parameters]
        if not values:
            return program, [[] for _ in arguments]
        self.runs += 1
        return program, [list(row) for row in self.ours(parts.returning(place, values), arguments)]

    # inside calls, loops and conditionals

    def _inside(
        self, program: Module, operands: Arguments, instruction: Instruction, inside: tuple[str, ...]
    ) -> FirstDifference | None:
        """The first difference in the computation that an instruction calls; None where it cannot be searched."""
        caller = next(each for each in program.entry.instructions if each.name == instruction.name)
        name = f"%{instruction.name}"
        given = self._given(program, caller, operands)
        if given is None:
            return None
        if caller.opcode in ("call", "fusion"):
            return self.within(_with_entry(program, caller.called[0]), given, (*inside, name))
        if caller.opcode == "conditional":
            numbers = {branch_number(caller, np.asarray(row[0])[()]) for row in given}
            if len(numbers) > 1:
                return None
            (number,) = numbers
            branch = [[row[1 + number]] for row in given]
            return self.within(
                _with_entry(program, caller.called[number]), branch, (*inside, f"branch {number} of {name}")
            )
        return self._in_loop(program, caller, given, (*inside, name)) if caller.opcode == "while" else None

    def _given(self, program: Module, caller: Instruction, operands: Arguments) -> list[list[Any]] | None:
        """The values of the operands of a call in its one-instruction program; None if they are not arrays."""
        if caller.opcode not in ("call", "fusion", "conditional", "while"):
            return None
        if not all(map(_is_value, caller.operands)):
            return None
        if not caller.operands:
            return [[] for _ in operands]
        parts = _Parts(program)
        self.runs += 1
        before = parts.order.index(caller)
        return [list(row) for row in self.ours(parts.returning(before, caller.operands), operands)]

    def _in_loop(
        self, program: Module, loop: Instruction, given: list[list[Any]], inside: tuple[str, ...]
    ) -> FirstDifference | None:
        """The first difference in the first trip whose state differs, from the state that the first engine computes."""
        condition, body = (_with_entry(program, each) for each in (loop.attributes.condition, loop.attributes.body))
        state = given
        for trip in range(1, _MOST_TRIPS + 1):
            *outer, name = inside
            goes_on, compared = self.run(condition, state)
            if not all(each.same for each in compared):
                return self.within(condition, state, (*outer, f"the condition of {name} before trip {trip}"))
            if not all(bool(np.asarray(each)) for each in goes_on):
                return None
            results, compared = self.run(body, state)
            if not all(each.same for each in compared):
                return self.within(body, state, (*outer, f"trip {trip} of {name}"))
            state = [[each] for each in results]
        return None
