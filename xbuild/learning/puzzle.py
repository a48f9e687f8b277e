"""Puzzles: a NumPy function to rebuild from a few ops, the tests of a solution, and its score.

Sections:

    Puzzles
    Reduces whose result depends on the order, which XLA does not support
"""

from __future__ import annotations

import functools
import json
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from attrs import evolve, field, frozen

from shape_inference import Shape, XbuildError
from shape_inference.notation import parse_shape
from shape_inference.types import array_shape, primitive_type

from .. import running
from ..checking import Verdict, check
from ..core.graph import Computation, Module, ModuleGroup
from ..core.regions import computation
from ..costs import cost
from ..text.reader import parse_hlo
from .answers import answer_text

# ----------------------------------------------------------------------------
# Puzzles

Program: TypeAlias = Module | ModuleGroup
Rows: TypeAlias = Sequence[Sequence[Any]]

FREE = frozenset({"parameter", "constant", "tuple", "get_tuple_element"})
"""Ops that every solution may use."""

TRIALS = 20
_ROOT = str(Path(__file__).resolve().parents[1])
_PYTHON = (sys.base_prefix, sysconfig.get_paths()["purelib"], "<frozen ")
FIGURES = ("link_bytes", "steps", "flops")
"""The figures of a score for one device: bytes on its busiest link, communication steps, arithmetic operations."""

_UNITS = {"link_bytes": "bytes sent", "steps": "steps", "flops": "FLOPs", "peak_memory": "bytes of peak memory"}


@frozen
class PuzzleRun:
    """A run of a solution: the arguments of each device, the results, and those of the specification."""

    rows: Rows
    results: Sequence[Any]
    expected: Sequence[Any]


class Unsolved(Exception):
    """Raised with the fault of a solution, and the verdict or the example that shows it."""

    def __init__(self, fault: str, verdict: Verdict | None = None, example: PuzzleRun | None = None) -> None:
        super().__init__(fault)
        self.verdict, self.example = verdict, example


@frozen
class PuzzleJudgement:
    """The grade of a solution: its fault, or its score; and what a picture of the grade shows."""

    fault: str = ""
    score: Mapping[str, int] = field(factory=dict)
    program: Program | None = field(default=None, eq=False, repr=False)
    verdict: Verdict | None = field(default=None, eq=False, repr=False)
    example: PuzzleRun | None = field(default=None, eq=False, repr=False)

    @property
    def is_solved(self) -> bool:
        return not self.fault


@frozen
class PuzzleTask:
    """What a process needs to write down a solution: the shapes of the arguments and the number of devices.

    If a solution is not a function of values, `calls` are the arguments with which it is called.
    """

    shapes: Sequence[Shape]
    devices: int
    calls: Sequence[Sequence[Any]] | None = None

    def build(self, solution: Any) -> Any:
        """The module of a solution, or its answers; raises Unsolved if the learner's code raises its own exception."""
        try:
            filled_in = _refuse_placeholder(solution)
            if self.calls is None:
                return Module("solution", computation(*self.shapes)(filled_in), num_replicas=self.devices)
            return [json.loads(json.dumps(filled_in(*arguments))) for arguments in self.calls]
        except (Unsolved, XbuildError):
            raise
        except Exception as error:
            raise Unsolved(error_text(error)) from None

    def write(self, solution: Any) -> str:
        """The text of a solution: HLO text with the learner's lines, or its answers as JSON."""
        built = self.build(solution)
        return built.to_hlo(metadata=True) if isinstance(built, Module) else json.dumps(built)

    def read(self, text: str) -> Any:
        """The module or the answers in a text; raises XbuildError or Unsolved for any other text."""
        if self.calls is None:
            return parse_hlo(text)
        try:
            answers = json.loads(text)
        except (ValueError, RecursionError):
            raise Unsolved("the answers are not JSON") from None
        if not isinstance(answers, list) or len(answers) != len(self.calls):
            raise Unsolved(f"expected a list of {len(self.calls)} answers")
        return answers

    def to_dict(self) -> dict[str, Any]:
        """The task as data that `from_dict` reads."""
        return {"shapes": [str(shape) for shape in self.shapes], "devices": self.devices, "calls": self.calls}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> PuzzleTask:
        shapes = [shape for text in data["shapes"] if isinstance(shape := parse_shape(text), Shape)]
        return cls(shapes, data["devices"], data["calls"])


@frozen(kw_only=True, eq=False)
class Puzzle:
    """A function to build from a few ops, its meaning in NumPy, and the best known score.

    `spec` takes the arguments and returns the result. With several devices, it takes a list with the one argument of
    each device and returns a list of results. The types and shapes of its results are those that a solution must have.
    `allowed` names the ops that a solution may use besides FREE; if it is empty, all ops are allowed. `limits` are
    maxima of the score. `program` builds a program from a solution that is not a function of values: the solution is
    called with each of `calls`, and `program` takes its answers, which are text, numbers and lists. `draw` draws
    arguments; the default draws small integers. With `any_order`, each reduce of the solution must return the same
    result in every order.
    """

    spec: Callable[..., Any]
    shapes: Sequence[Shape] = ()
    allowed: str = ""
    devices: int = 1
    best: Mapping[str, int] = field(factory=dict)
    limits: Mapping[str, int] = field(factory=dict)
    program: Callable[..., Program] | None = None
    calls: Sequence[Sequence[Any]] = ((),)
    draw: Callable[[np.random.Generator], Rows] | None = None
    any_order: bool = False

    @property
    def task(self) -> PuzzleTask:
        """What a process needs to write down a solution of this puzzle."""
        return PuzzleTask(self.shapes, self.devices, None if self.program is None else self.calls)

    def judge(self, solution: Any) -> PuzzleJudgement:
        """Build the program of a solution in this process, and grade it.

        The solution can change what grades it: `judge_text` grades a solution that ran in a process of its own.
        """
        return self._judge(lambda: self._program_of(self.task.build(solution)))

    def judge_text(self, text: str, limits: Any = None) -> PuzzleJudgement:
        """Grade the text that `PuzzleTask.write` has written for a solution; the text is untrusted.

        `limits` are those of each run of the program.
        """
        found = self._judge(lambda: self._program_of(self.task.read(text)), limits)
        return evolve(found, fault=_with_source_lines(found.fault, text))

    def _judge(self, build: Callable[[], Program], limits: Any = None) -> PuzzleJudgement:
        """Test a program against the spec on many inputs, and count its cost."""
        program = example = None
        try:
            program = build()
            self._check_interface(program)
            self._check_ops(program)
            example = self._test(program, limits)
            return PuzzleJudgement("", self._check_limits(score_of(program)), program, None, example)
        except (Unsolved, XbuildError, running.Stopped) as fault:
            if isinstance(fault, running.Stopped):
                fault.raise_interrupt()
            verdict, found = getattr(fault, "verdict", None), getattr(fault, "example", None)
            return PuzzleJudgement(str(fault), {}, program, verdict, found or example)

    def _program_of(self, built: Any) -> Program:
        """The program of a built solution: the module itself, or what `program` makes of the answers."""
        if self.program is None:
            assert isinstance(built, Module)
            return built
        try:
            return self.program(*built)
        except (Unsolved, XbuildError):
            raise
        except Exception as error:
            raise Unsolved(f"the answer does not have the expected form: {error_text(error)}") from None

    def _check_interface(self, program: Program) -> None:
        """Raise Unsolved unless the program runs on the puzzle's devices and takes the puzzle's arguments."""
        if isinstance(program, ModuleGroup):
            return
        if (program.num_replicas, program.num_partitions) != (self.devices, 1):
            raise Unsolved(
                f"the program runs on {program.num_replicas} replicas and {program.num_partitions} partitions; "
                f"expected {self.devices} and 1"
            )
        given = [str(parameter.shape) for parameter in program.entry.parameters]
        if given != (expected := [str(shape) for shape in self.shapes]):
            raise Unsolved(f"the program takes {_listed(given)}; expected {_listed(expected)}")

    def _check_ops(self, program: Program) -> None:
        used = {instruction.opcode for instruction in _instructions(program)}
        allowed = {*self.allowed.split()}
        if allowed and (wrong := sorted(used - allowed - FREE)):
            raise Unsolved(f"this puzzle does not allow {', '.join(wrong)}; use only {', '.join(sorted(allowed))}")

    def _test(self, program: Program, limits: Any) -> PuzzleRun:
        """Run a program on many inputs; returns the first run, and raises Unsolved with the first that is wrong."""
        verdict = check(program)
        if verdict.kind != "ok":
            raise Unsolved(str(verdict), verdict)
        examples = []
        generator = np.random.default_rng(0)
        is_alone = self.devices == 1 and self.program is None
        for _ in range(TRIALS):
            rows = self._draw_arguments(program, generator)
            results = running.execute(program, rows, limits=limits)
            expected = [self.spec(*rows[0])] if is_alone else self.spec([row[0] for row in rows])
            examples.append(example := PuzzleRun(rows, results, expected))
            if fault := _type_fault(results, expected) or _value_fault(rows, results, expected):
                raise Unsolved(fault, example=example)
        if self.any_order and (fault := order_dependence(_instructions(program))):
            raise Unsolved(fault, example=examples[0])
        return examples[0]

    def _draw_arguments(self, program: Program, generator: np.random.Generator) -> Rows:
        if self.draw is not None:
            return self.draw(generator)
        return [[_draw_integers(shape, generator) for shape in self.shapes] for _ in range(program.num_devices)]

    def _check_limits(self, score: Mapping[str, int]) -> Mapping[str, int]:
        for name, most in self.limits.items():
            if score[name] > most:
                raise Unsolved(f"the result is right, but {score[name]} {_UNITS[name]} exceed the limit of {most}")
        return score

    def __call__(self, solution: Any) -> None:
        """Print the grade of a solution; a puzzle's file calls this when it runs as a script."""
        print(judgement_text(self, self.judge(solution)))


def _refuse_placeholder(solution: Callable[..., Any]) -> Callable[..., Any]:
    """The solution; when called, it raises Unsolved if it returns the three dots of the unsolved file."""

    @functools.wraps(solution)
    def run(*arguments: Any) -> Any:
        result = solution(*arguments)
        parts = result if isinstance(result, tuple | list) else [result]
        if any(part is ... or (isinstance(part, str) and part == "...") for part in parts):
            raise Unsolved("the solution is not filled in yet")
        return result

    return run


def error_text(error: BaseException) -> str:
    """An exception of a learner's code in one line, with the innermost line of code outside xbuild and Python."""
    outside = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_ROOT)]
    frames = [frame for frame in outside if not frame.filename.startswith(_PYTHON)] or outside
    file, line = (frames[-1].filename, frames[-1].lineno) if frames else ("", None)
    if isinstance(error, SyntaxError):
        file, line = error.filename or file, error.lineno
    where = f"{file}:{line}: " if line else ""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{where}{type(error).__name__}{message and f': {message}'}"


def judgement_text(puzzle: Puzzle, judgement: PuzzleJudgement) -> str:
    """A grade in words, with the best known score."""
    if not judgement.is_solved:
        return f"not solved yet: {judgement.fault}"
    if not puzzle.best:
        return "solved"
    score = {name: judgement.score[name] for name in puzzle.best}
    beats = all(score[name] <= best for name, best in puzzle.best.items())
    record = "the best known" if score == puzzle.best else f"best known: {score_text(puzzle.best)}"
    return f"solved: {score_text(score)} ({'better than the ' if beats and score != puzzle.best else ''}{record})"


def score_text(score: Mapping[str, int]) -> str:
    """A score in words."""
    return ", ".join(f"{number} {_UNITS[name]}" for name, number in score.items())


def score_of(program: Program) -> dict[str, int]:
    """The score of a program: for each figure, the largest of any device's program."""
    costs = [cost(module) for module in (program.modules.values() if isinstance(program, ModuleGroup) else [program])]
    names = [name for name in _UNITS if all(hasattr(counted, name) for counted in costs)]
    return {name: max(int(getattr(counted, name)) for counted in costs) for name in names}


def _instructions(program: Program) -> Iterator[Any]:
    for module in program.modules.values() if isinstance(program, ModuleGroup) else [program]:
        for called in module.entry.reachable():
            yield from called.instructions


def _draw_integers(shape: Shape, generator: np.random.Generator) -> Any:
    """Small integers, whose sums and products are exact in every order."""
    return generator.integers(-8, 9, shape.dims).astype(shape.dtype.dtype)


_MOST_NUMBERS = 60
"""The most numbers that a message about a wrong result lists."""


def _type_fault(results: Sequence[Any], expected: Sequence[Any]) -> str:
    """What is wrong with the number, structure, types or shapes of the results; "" if nothing is."""
    if len(results) != len(expected):
        return f"the program returns results on {len(results)} devices; expected {len(expected)}"
    for device, (one, other) in enumerate(zip(results, expected, strict=True)):
        yours, spec = type_text(one), type_text(other)
        if yours != spec:
            where = f" on device {device}" if len(results) > 1 else ""
            return f"the result{where} has the wrong shape or type:\n  yours  {yours}\n  spec   {spec}"
    return ""


def type_text(value: Any) -> str:
    """The type of a result: s32[3,4], or the types of a tuple's elements in parentheses."""
    if isinstance(value, tuple | list):
        return f"({', '.join(map(type_text, value))})"
    array = np.asarray(value)
    return str(array_shape(primitive_type(array.dtype), array.shape))


def _value_fault(rows: Rows, results: Sequence[Any], expected: Sequence[Any]) -> str:
    """An example if results differ, with all its numbers or only the first that differs; "" if they do not."""
    ours, theirs = leaves_of(results), leaves_of(expected)
    if all(np.array_equal(one, other, equal_nan=True) for one, other in zip(ours, theirs, strict=True)):
        return ""
    if sum(np.size(leaf) for leaf in [*leaves_of(rows), *theirs]) > _MOST_NUMBERS:
        return _first_difference(ours, theirs)
    inputs = ", ".join(answer_text(argument) for argument in (rows[0] if len(rows) == 1 else rows))
    yours, spec = (results[0], expected[0]) if len(rows) == 1 else (results, expected)
    wrong = _listed_places(ours, theirs, "device" if len(ours) == len(rows) else "result")
    return f"for {inputs}:\n  yours  {answer_text(yours)}\n  spec   {answer_text(spec)}{wrong}"


def leaves_of(value: Any) -> list[Any]:
    """The arrays of nested lists and tuples, in order."""
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in leaves_of(part)]
    return [np.asarray(value)]


_MOST_PLACES = 6
"""The most elements whose places a message lists."""


def _listed_places(ours: list[Any], theirs: list[Any], what: str) -> str:
    """A line with the places of the wrong elements; no line for one scalar."""
    if len(ours) == 1 and ours[0].ndim == 0:
        return ""
    places = [
        " ".join(
            [
                *([f"{what} {number}"] if len(ours) > 1 else []),
                *([f"[{', '.join(map(str, place))}]"] if one.ndim else []),
            ]
        )
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True))
        for place in np.argwhere(np.atleast_1d(differs(one, other))).tolist()
    ]
    more = f" and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
    return f"\n  wrong  {', '.join(places[:_MOST_PLACES])}{more}"


def differs(one: Any, other: Any) -> Any:
    """Where two arrays of one type differ; NaNs are equal."""
    return (one != other) & ~((one != one) & (other != other))


def _first_difference(ours: list[Any], theirs: list[Any]) -> str:
    """A sentence about the first element that differs, and how many do."""
    pairs = [*zip(ours, theirs, strict=True)]
    wrong = [differs(one, other) for one, other in pairs]
    number = next(n for n, each in enumerate(wrong) if each.any())
    place = tuple(map(int, np.argwhere(wrong[number])[0]))
    index = f"element [{', '.join(map(str, place))}]" if place else "the number"
    where = f"{index} of result {number}" if len(pairs) > 1 else index
    yours, spec = (answer_text(each[number][place]) for each in (ours, theirs))
    count, total = sum(map(np.count_nonzero, wrong)), sum(map(np.size, theirs))
    return f"{count} of {total} numbers are wrong; the first is {where}:\n  yours  {yours}\n  spec   {spec}"


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(texts) or "no arguments"


_LINE = re.compile(r"<hlo>:(\d+)")
_SOURCE = re.compile(r'source_file="([^"]*)" source_line=(\d+)')


def _with_source_lines(fault: str, text: str) -> str:
    """A fault with the learner's lines in place of the lines of the HLO text, where the text names them."""
    lines = text.splitlines()

    def source(match: re.Match[str]) -> str:
        number = int(match[1])
        found = _SOURCE.search(lines[number - 1]) if 0 < number <= len(lines) else None
        return f"{found[1]}:{found[2]}" if found else match[0]

    return _LINE.sub(source, fault)


# ----------------------------------------------------------------------------
# Reduces whose result depends on the order, which XLA does not support

_ORDER_TRIALS = 40


def order_dependence(instructions: Iterable[Any]) -> str:
    """A sentence about the first reduce whose result depends on the order, with an example; "" if none does."""
    generator = np.random.default_rng(0)
    for instruction in instructions:
        if instruction.opcode == "reduce":
            for _ in range(_ORDER_TRIALS):
                if sentence := _find_order_dependence(instruction.attributes.to_apply, generator):
                    return sentence
    return ""


def _find_order_dependence(function: Computation, generator: np.random.Generator) -> str:
    one, other, third = _draw_elements(function, generator)
    a, b, c = answer_text(one), answer_text(other), answer_text(third)
    if not _is_same(here := _apply(function, one, other), there := _apply(function, other, one)):
        return (
            f"the reducer maps {a}, {b} to {answer_text(here)}, but {b}, {a} to {answer_text(there)}: XLA reduces in "
            "any order"
        )
    left = _apply(function, here, third)
    if not _is_same(left, right := _apply(function, one, _apply(function, other, third))):
        return (
            f"the reducer maps {a}, {b}, {c} to {answer_text(left)} from the left, but to {answer_text(right)} from "
            "the right: XLA reduces in any order"
        )
    return ""


def _draw_elements(function: Computation, generator: np.random.Generator) -> list[list[Any]]:
    """Draw three elements with ties: the numbers of one operand may be equal, those of all other operands differ."""
    types = [parameter.shape.dtype.dtype for parameter in function.parameters if isinstance(parameter.shape, Shape)]
    types = types[: len(types) // 2]
    ties = generator.integers(len(types))
    drawn = [generator.integers(0, 2, 3) if n == ties else generator.permutation(8)[:3] for n in range(len(types))]
    return [[kind.type(row[n]) for kind, row in zip(types, drawn, strict=True)] for n in range(3)]


def _apply(function: Computation, one: list[Any], other: list[Any]) -> list[Any]:
    result = running.evaluate(function, *one, *other)
    return [*result] if isinstance(result, tuple | list) else [result]


def _is_same(one: list[Any], other: list[Any]) -> bool:
    return all(np.array_equal(*pair) for pair in zip(one, other, strict=True))
