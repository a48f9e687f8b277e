"""Puzzles: a NumPy function to rebuild from a few ops, the tests of a solution, and its score.

Sections:

    Puzzles
    Reduces whose result depends on the order, which XLA does not support
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from attrs import field, frozen

from shape_inference import Shape, XbuildError

from .. import running
from ..checking import check
from ..core.graph import Computation, Module, ModuleGroup
from ..core.regions import computation
from ..costs import cost
from .answers import answer_text

# ----------------------------------------------------------------------------
# Puzzles

Program: TypeAlias = Module | ModuleGroup
Rows: TypeAlias = Sequence[Sequence[Any]]

FREE = frozenset({"parameter", "constant", "tuple", "get_tuple_element"})
"""Ops that every solution may use."""

TRIALS = 20
_ROOT = str(Path(__file__).resolve().parents[1])
FIGURES = ("link_bytes", "steps", "flops")
"""The figures of a score for one device: bytes on its busiest link, communication steps, arithmetic operations."""

_UNITS = {"link_bytes": "bytes sent", "steps": "steps", "flops": "FLOPs", "peak_memory": "bytes of peak memory"}


class Unsolved(Exception):
    """Raised with the fault of a solution."""


@frozen
class PuzzleJudgement:
    """The grade of a solution: its fault, or its score."""

    fault: str = ""
    score: Mapping[str, int] = field(factory=dict)

    @property
    def is_solved(self) -> bool:
        return not self.fault


@frozen(kw_only=True, eq=False)
class Puzzle:
    """A function to build from a few ops, its meaning in NumPy, and the best known score.

    `spec` takes the arguments and returns the result. With several devices, it takes a list with the one argument of
    each device and returns a list of results. `allowed` names the ops that a solution may use besides FREE; if it is
    empty, all ops are allowed. `limits` are maxima of the score. `program` builds a program from a solution that is not
    a function of values. `draw` draws arguments; the default draws small integers. With `any_order`, each reduce of the
    solution must return the same result in every order.
    """

    spec: Callable[..., Any]
    shapes: Sequence[Shape] = ()
    allowed: str = ""
    devices: int = 1
    best: Mapping[str, int] = field(factory=dict)
    limits: Mapping[str, int] = field(factory=dict)
    program: Callable[[Any], Program] | None = None
    draw: Callable[[np.random.Generator], Rows] | None = None
    any_order: bool = False

    def build(self, solution: Any) -> Program:
        """The program of a solution."""
        if self.program is not None:
            return self.program(solution)
        return Module("solution", computation(*self.shapes)(solution), num_replicas=self.devices)

    def judge(self, solution: Any) -> PuzzleJudgement:
        """Build the program of a solution, test it against the spec on many inputs, and count its cost."""
        try:
            program = self._build(solution)
            self._check_ops(program)
            self._test(program)
            return PuzzleJudgement(score=self._check_limits(score_of(program)))
        except (Unsolved, XbuildError, running.Stopped) as fault:
            if isinstance(fault, running.Stopped):
                fault.raise_interrupt()
            return PuzzleJudgement(str(fault))

    def _build(self, solution: Any) -> Program:
        """The program of a solution; raises Unsolved if the learner's code raises an exception of its own."""
        try:
            return self.build(_refuse_placeholder(solution))
        except (Unsolved, XbuildError):
            raise
        except Exception as error:
            raise Unsolved(error_text(error)) from None

    def _check_ops(self, program: Program) -> None:
        used = {instruction.opcode for instruction in _instructions(program)}
        allowed = {*self.allowed.split()}
        if allowed and (wrong := sorted(used - allowed - FREE)):
            raise Unsolved(f"this puzzle does not allow {', '.join(wrong)}; use only {', '.join(sorted(allowed))}")

    def _test(self, program: Program) -> None:
        verdict = check(program)
        if verdict.kind != "ok":
            raise Unsolved(str(verdict))
        generator = np.random.default_rng(0)
        for _ in range(TRIALS):
            rows = self._draw_arguments(program, generator)
            results = running.execute(program, rows)
            if self.devices == 1 and self.program is None:
                _check_result(rows, results[0], self.spec(*rows[0]))
            else:
                _check_result(rows, results, self.spec([row[0] for row in rows]))
        if self.any_order and (fault := order_dependence(_instructions(program))):
            raise Unsolved(fault)

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
    """An exception of a learner's code in one line, with the innermost line of code outside xbuild."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_ROOT)]
    file, line = (frames[-1].filename, frames[-1].lineno) if frames else ("", None)
    if isinstance(error, SyntaxError):
        file, line = error.filename or file, error.lineno
    where = f"{file}:{line}: " if line else ""
    return f"{where}{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"


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


def _check_result(rows: Rows, result: Any, expected: Any) -> None:
    if not _are_same_results(result, expected):
        inputs = ", ".join(answer_text(argument) for argument in (rows[0] if len(rows) == 1 else rows))
        raise Unsolved(f"for {inputs}:\n  yours  {answer_text(result)}\n  spec   {answer_text(expected)}")


def _are_same_results(result: Any, expected: Any) -> bool:
    if isinstance(expected, list | tuple) and isinstance(result, list | tuple):
        return len(result) == len(expected) and all(map(_are_same_results, result, expected))
    one, other = np.asarray(result), np.asarray(expected)
    return one.shape == other.shape and bool(np.array_equal(one, other.astype(one.dtype), equal_nan=True))


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
