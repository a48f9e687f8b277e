"""`minimize`: the smallest program for which a condition still holds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import zip_longest
from time import monotonic
from typing import Any

from attrs import define, frozen

from shape_inference import Shape, XbuildError
from shape_inference.trees import leaves

from ..core.graph import Computation, Module, ModuleGroup, module_in
from ..process.limits import DeadlineError
from ..text.reader import parse_hlo
from . import cuts, shrinking, texts
from .conditions import Differs, Found, read_condition
from .groups import condition_of_group, reduce_group
from .search import Minimizer, OutOfTimeError
from .worker import Here, Workers

# ----------------------------------------------------------------------------
# The states of a reduction: programs that shrink together


@frozen(eq=False, slots=False)
class State:
    """The program and, in a comparison, the other one. The same parts are removed from both."""

    modules: tuple[Module, ...]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple([module.to_hlo() for module in self.modules])

    def is_smaller(self, other: State) -> bool:
        """Whether this has fewer instructions or, with as many, fewer devices, fewer elements, or a shorter text."""
        if self._size != other._size:
            return self._size < other._size
        return (sum(map(len, self.texts)), self.texts) < (sum(map(len, other.texts)), other.texts)

    @cached_property
    def _size(self) -> tuple[int, int, int]:
        devices = sum(module.num_devices for module in self.modules)
        return self.count, devices, sum(map(_elements, self.modules))

    @cached_property
    def count(self) -> int:
        return sum(map(count_instructions, self.modules))


def count_instructions(module: Module) -> int:
    """The number of instructions of all computations.

    >>> import xbuild as xb
    >>> count_instructions(xb.Module("twice", xb.computation(xb.f32[2])(lambda x: x + x)))
    2
    """
    return sum(len(computation.instructions) for computation in module.computations)


def _elements(module: Module) -> int:
    return sum(
        leaf.size
        for computation in module.computations
        for instruction in computation.instructions
        for leaf in leaves(instruction.shape)
        if isinstance(leaf, Shape)
    )


@frozen
class Pass:
    """One kind of parts to remove: their names in a module, and the modules without some of them.

    With `one_by_one`, a part is a change, of which each is tried on its own.
    """

    what: str
    parts: Callable[[Module], Sequence[Any]]
    remove: Callable[[Module, Collection[Any]], Iterator[Module]]
    one_by_one: bool = False

    def parts_of(self, state: State) -> list[Any]:
        """The parts that all programs of a state have."""
        first, *others = (self.parts(module) for module in state.modules)
        return [part for part in first if all(part in other for other in others)] if others else list(first)

    def states(self, state: State, parts: Collection[Any]) -> Iterator[State]:
        """The states without these parts; in a comparison only those in which the inputs still correspond."""
        for modules in zip_longest(*(self.remove(module, parts) for module in state.modules)):
            if None not in modules and _correspond(modules):
                yield State(modules)

    def run(self, search: Minimizer[State]) -> None:
        if not self.one_by_one:
            search.remove_parts(self.what, self.parts_of, self.states)
        else:
            search.choose(self.what, self.parts_of, self.states)


def _correspond(modules: Sequence[Module]) -> bool:
    """Whether programs have parameters of the same names and shapes."""
    rows = [[(each.name, str(each.shape.plain())) for each in module.entry.parameters] for module in modules]
    return all(row == rows[0] for row in rows)


def _cut(module: Module, parts: Collection[cuts.Part]) -> Iterator[Module]:
    yield cuts.cut(module, parts)


def _cut_finely(module: Module, parts: Collection[cuts.Part]) -> Iterator[Module]:
    yield cuts.cut(module, parts, forward=True)
    yield cuts.cut(module, parts, expose=True)
    yield cuts.cut(module, parts, forward=True, expose=True)


PASSES = (
    Pass("annotations", shrinking.notes, shrinking.without_notes),
    Pass("instructions of the entry", cuts.instructions_of_entry, _cut),
    Pass("results", cuts.results, cuts.without_results),
    Pass("channels", cuts.channels, cuts.without_channels),
    Pass("instructions", cuts.instructions, _cut),
    Pass("single instructions", cuts.instructions, _cut_finely),
    Pass("results", cuts.results, cuts.without_results),
    Pass("calls", cuts.calls, cuts.inlined_calls),
    Pass("loop-carried values", cuts.carried_values, cuts.without_carried_values),
    Pass("parameters", cuts.alike_parameters, cuts.with_merged_parameters, one_by_one=True),
    Pass("replicas", shrinking.replicas, shrinking.without_replicas),
    Pass("partitions", shrinking.partitions, shrinking.without_partitions),
    Pass("groups", shrinking.groups, shrinking.without_groups),
    Pass("extents", shrinking.smaller_extents, shrinking.with_extents, one_by_one=True),
    Pass("constants", shrinking.smaller_constants, shrinking.with_constants, one_by_one=True),
    Pass("layouts and edges", shrinking.spare_properties, shrinking.without_properties, one_by_one=True),
)
"""What is removed, in this order, until nothing of it can be removed any more."""


# ----------------------------------------------------------------------------
# The result


@frozen
class Minimum:
    """The result of `minimize`: the reduced program, its size before and after, and the number of tries and the time
    that the search took.

    `other` is the other program of a comparison, also reduced, or None if programs are not compared. `stopped` is the
    reason why the search ended early: limit_seconds or interrupted. It is empty if the search ended because nothing
    more could be removed.
    """

    program: Module | ModuleGroup
    other: Module | None
    condition: str
    before: int
    after: int
    tries: int
    seconds: float
    stopped: str = ""

    @property
    def summary(self) -> str:
        return summary(self.before, self.after, self.tries, self.seconds, self.stopped)

    def __str__(self) -> str:
        return f"{self.summary}\n\n{self.program}"


_STOPS = {"limit_seconds": "; stopped at the time limit", "interrupted": "; interrupted", "": ""}


def summary(before: int, after: int, tries: int, seconds: float, stopped: str, unit: str = "instructions") -> str:
    """The sentence of a report: what was reduced to what.

    >>> summary(120, 4, 61, 2.25, "")
    '120 instructions -> 4, 61 tries, 2.2 s'
    """
    return f"{before:,} {unit} -> {after:,}, {tries:,} tries, {seconds:.1f} s{_STOPS[stopped]}"


class NotHeldError(XbuildError):
    """The condition does not hold for the given program."""


# ----------------------------------------------------------------------------
# The search


@define(eq=False)
class Sweeps:
    """A run of the search from one state, which ends at its limits or by Ctrl-C with what it has found."""

    search: Minimizer[Any]
    stopped: str = ""

    def reduce(self, sweep: Callable[[Minimizer[Any]], None]) -> None:
        """Repeat the passes until none makes the program smaller."""
        try:
            while True:
                before = self.search.best
                sweep(self.search)
                if self.search.best is before:
                    return
        except OutOfTimeError:
            self.stopped = "limit_seconds"
        except KeyboardInterrupt:
            self.stopped = "interrupted"


def _run_passes(search: Minimizer[State]) -> None:
    for each in PASSES:
        each.run(search)


def minimize(
    program: Any,
    condition: str | Callable[[Any], object],
    *,
    other: Any = None,
    seconds: float = 3600.0,
    try_seconds: float = 60.0,
    workers: int = 1,
    improved: Callable[[Module, Module | None], None] | None = None,
) -> Minimum:
    """Return the smallest program, made of parts of the given one, for which a condition still holds.

    `condition` is text such as "deadlock" (docs/reducing.md lists the forms), or a function that takes a Module and
    returns whether the condition holds; a program for which the function raises an error is rejected. "different"
    compares with the program `other`, from which the same parts are removed. The search removes annotations,
    instructions, results, calls, loop-carried values, parameters, devices, groups and control edges, first all of them
    at once, then half of them at a time, and so on down to one by one. It also makes extents and constants smaller,
    until nothing more can be removed. Only programs that the shape rules accept are tried.

    `seconds` limits the search, and `try_seconds` each try. A condition given as text is tested in `workers` processes;
    their number does not change the result. `improved` is called with each smaller program. When a limit is reached, or
    after Ctrl-C, the result is the smallest program found so far.

    Raises NotHeldError (condition_not_held) if the condition does not hold for the given program, ValueError if the
    text is not a condition, and TypeError if the object is not a program.

    If each device has a program (a ModuleGroup), each is reduced in turn beside the others, and devices are removed.
    The condition is "deadlock", "refused KIND", or a function of the ModuleGroup; others raise ValueError.

    >>> import xbuild as xb
    >>> module = xb.parse_hlo("ENTRY e { x = f32[64] parameter(0) y = tanh(x) z = negate(y) ROOT w = add(z, x) }")
    >>> found = xb.minimize(module, lambda m: any(i.opcode == "negate" for i in m.entry.instructions))
    >>> print(found.program.entry)
    ENTRY e {
      y = f32[1] parameter(0)
      ROOT z = f32[1] negate(y)
    }

    Source: A. Zeller and R. Hildebrandt, Simplifying and Isolating Failure-Inducing Input, IEEE TSE 28(2), 2002.
    """
    found = module_in(program)
    if isinstance(found, ModuleGroup):
        if other is not None:
            raise TypeError(
                "minimize: a program for each device is compared with no other; pass the Module of a device"
            )
        return _minimize_group(found, condition, seconds, try_seconds)
    others = () if other is None else (other,)
    given = [_module(each, role) for each, role in zip((program, *others), ("program", "other"), strict=False)]
    state = State(tuple([parse_hlo(each.to_hlo()) for each in given]))  # without annotations that are not printed
    run = _search(
        state, condition, bool(others), seconds, try_seconds, workers, _run_passes,
        None if improved is None else lambda each: improved(each.modules[0], (*each.modules[1:], None)[0]),
    )  # fmt: skip
    best = run.search.best
    first, rest = best.modules[0], best.modules[1:]
    return Minimum(
        first,
        rest[0] if rest else None,
        condition if isinstance(condition, str) else getattr(condition, "__name__", "condition"),
        count_instructions(state.modules[0]),
        count_instructions(first),
        run.search.tries,
        run.search.spent,
        run.stopped,
    )


def _minimize_group(
    group: ModuleGroup, condition: str | Callable[[Any], object], seconds: float, try_seconds: float
) -> Minimum:
    begun = monotonic()
    holds = condition_of_group(condition, group, try_seconds) if isinstance(condition, str) else condition
    if not holds(group):
        raise NotHeldError("condition_not_held", "the condition is false for the given programs")

    def shrink(module: Module, holds: Callable[[Module], object], seconds: float) -> tuple[Module, int, str]:
        found = minimize(module, holds, seconds=seconds, try_seconds=try_seconds)
        assert isinstance(found.program, Module)
        return found.program, found.tries, found.stopped

    found, tries, stopped = reduce_group(group, holds, shrink, seconds)
    before, after = (sum(map(count_instructions, dict.fromkeys(each.modules.values()))) for each in (group, found))
    name = condition if isinstance(condition, str) else getattr(condition, "__name__", "condition")
    return Minimum(found, None, name, before, after, tries, monotonic() - begun, stopped)


@frozen
class ReducedText:
    """The result of `minimize_text`: the reduced text, its number of instructions before and after, and the search."""

    text: str
    condition: str
    before: int
    after: int
    tries: int
    seconds: float
    stopped: str = ""

    @property
    def summary(self) -> str:
        return summary(self.before, self.after, self.tries, self.seconds, self.stopped)


def minimize_text(
    text: str,
    condition: str,
    *,
    seconds: float = 3600.0,
    try_seconds: float = 60.0,
    workers: int = 1,
    improved: Callable[[str], None] | None = None,
) -> ReducedText:
    """Return the shortest part of a text for which a condition on texts still holds; the text need not be a program.

    The search removes computations, lines and attributes. Raises NotHeldError and ValueError as `minimize` does, and
    ValueError if the condition needs a program.
    """
    if not read_condition(condition).reads_text:
        raise ValueError(f"the condition {condition!r} needs a program, but the text cannot be read as one")
    state = texts.TextState.of(text)
    run = _search(
        state, condition, False, seconds, try_seconds, workers, _run_text_passes,
        None if improved is None else lambda each: improved(each.texts[0]),
    )  # fmt: skip
    best = run.search.best
    return ReducedText(
        best.texts[0], condition, state.count, best.count, run.search.tries, run.search.spent, run.stopped
    )


def _run_text_passes(search: Minimizer[texts.TextState]) -> None:
    search.remove_parts("lines of the entry", texts.lines_of_entry, texts.without_lines)
    search.remove_parts("computations", texts.blocks, texts.without_blocks)
    search.remove_parts("lines", texts.lines, texts.without_lines)
    search.remove_parts("attributes", texts.attributes, texts.without_attributes)


def _module(program: Any, role: str) -> Module:
    found = module_in(program)
    if isinstance(found, Computation):
        return Module(found.name, found)
    if isinstance(found, ModuleGroup):
        raise TypeError(f"minimize: {role} has a program for each device; pass the Module of one device")
    if not isinstance(found, Module):
        raise TypeError(f"minimize: expected a program for {role}, got {found!r}")
    return found


def _search(
    state: Any,
    condition: str | Callable[[Any], object],
    is_compared: bool,
    seconds: float,
    try_seconds: float,
    workers: int,
    sweep: Callable[[Minimizer[Any]], None],
    improved: Callable[[Any], None] | None,
) -> Sweeps:
    if workers < 1:
        raise ValueError(f"minimize: workers must be at least 1, got {workers}")
    if not isinstance(condition, str):
        if workers > 1:
            raise ValueError("minimize: a function is called in this process; pass workers=1, or a condition in words")
        return _reduce(state, Here(_Function(condition, state).holds), seconds, try_seconds, sweep, improved)
    read = read_condition(condition)
    if isinstance(read, Differs) != is_compared:
        needs = "needs the program `other`" if not is_compared else "takes no program `other`"
        raise ValueError(f"minimize: the condition {condition!r} {needs}")
    read.as_text = isinstance(state, texts.TextState)
    try:
        longest = max(seconds, try_seconds)
        try:
            found = read.find(state.texts, longest)
        except DeadlineError:
            found = Found(False, f"no answer within {longest:g} s")
        if not found.holds:
            raise NotHeldError(
                "condition_not_held", f"{condition}: {found.what}", ("state a condition that holds for this program",)
            )
        read.expected = found.signature
        if workers == 1:
            return _reduce(state, Here(read.holds), seconds, try_seconds, sweep, improved)
        with Workers(read, workers) as testers:
            return _reduce(state, testers, seconds, try_seconds, sweep, improved)
    finally:
        read.close()


class _Function:
    """A condition that is a Python function of a program."""

    def __init__(self, function: Callable[[Any], object], state: State) -> None:
        self.function = function
        if not function(parse_hlo(state.texts[0])):
            raise NotHeldError("condition_not_held", "the function is false for the given program")

    def holds(self, texts: Sequence[str], seconds: float) -> bool:
        try:
            return bool(self.function(parse_hlo(texts[0])))
        except Exception:  # it held for the given program without an error, so the smaller one is at fault
            return False


def _reduce(
    state: Any,
    tester: Any,
    seconds: float,
    try_seconds: float,
    sweep: Callable[[Minimizer[Any]], None],
    improved: Callable[[Any], None] | None,
) -> Sweeps:
    search: Minimizer[Any] = Minimizer(
        state, tester, lambda each: each.texts, lambda one, other: one.is_smaller(other), seconds, try_seconds,
        improved or (lambda each: None),
    )  # fmt: skip
    run = Sweeps(search)
    run.reduce(sweep)
    return run
