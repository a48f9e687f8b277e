"""Puzzles: a NumPy function to be rebuilt of some ops, how a solution is tested, and its score."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from attrs import field, frozen

from shape_inference import Shape, XbuildError

from .. import running
from ..checking import check
from ..core.graph import Module, ModuleGroup
from ..core.regions import computation
from ..costs import cost
from .answers import shown
from .folds import clash

Program: TypeAlias = Module | ModuleGroup
Rows: TypeAlias = Sequence[Sequence[Any]]

FREE = frozenset({"parameter", "constant", "tuple", "get_tuple_element"})
"""Ops that every solution may use."""

TRIALS = 20
_ROOT = str(Path(__file__).resolve().parents[1])
FIGURES = ("link_bytes", "steps", "flops")
"""What a score counts, of one device: bytes over its busiest link, steps of communication, arithmetic operations."""

_WORDS = {"link_bytes": "bytes sent", "steps": "steps", "flops": "FLOPs", "peak_memory": "bytes of peak memory"}


class Unsolved(Exception):
    """What a solution lacks."""


@frozen
class Judgement:
    """What came of a solution: why it is none, or its score."""

    lacks: str = ""
    score: Mapping[str, int] = field(factory=dict)

    @property
    def is_solved(self) -> bool:
        return not self.lacks


@frozen(kw_only=True, eq=False)
class Puzzle:
    """A function to be written of a few ops, its meaning in NumPy, and the best score that is known.

    `spec` takes the arguments and gives the result; with several devices it takes a list of each device's one argument
    and gives a list of the results. `allowed` names the ops that a solution may use, beside FREE; all ops where it is
    empty. `limits` are figures of the score that a solution must not pass. `program` makes a program of what the
    learner wrote, where that is not a function of values. `draw` makes arguments; by default whole numbers. Where
    `any_order` is set, a reduce of the solution must give the same in every order.
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

    def judged(self, solution: Any) -> Judgement:
        """Build the program of a solution, test it by the spec on many inputs, and count what it costs."""
        try:
            program = self._built(solution)
            self._allows(program)
            self._runs(program)
            return Judgement(score=self._within(score_of(program)))
        except (Unsolved, XbuildError, running.Stopped) as lack:
            return Judgement(str(lack))

    def _built(self, solution: Any) -> Program:
        """The program of a solution; Unsolved where the learner's code raises an exception of its own."""
        try:
            return self.build(_filled_in(solution))
        except (Unsolved, XbuildError):
            raise
        except Exception as error:
            raise Unsolved(raised(error)) from None

    def _allows(self, program: Program) -> None:
        used = {each.opcode for each in _instructions(program)}
        allowed = {*self.allowed.split()}
        if allowed and (wrong := sorted(used - allowed - FREE)):
            words = ", ".join(sorted(allowed))
            raise Unsolved(f"{', '.join(wrong)}: not among the ops of this puzzle, which are {words}")

    def _runs(self, program: Program) -> None:
        verdict = check(program)
        if verdict.kind != "ok":
            raise Unsolved(str(verdict))
        generator = np.random.default_rng(0)
        for _ in range(TRIALS):
            rows = self._arguments(program, generator)
            found = running.execute(program, rows)
            if self.devices == 1 and self.program is None:
                _compared(rows, found[0], self.spec(*rows[0]))
            else:
                _compared(rows, found, self.spec([row[0] for row in rows]))
        if self.any_order and (lack := clash(_instructions(program))):
            raise Unsolved(lack)

    def _arguments(self, program: Program, generator: np.random.Generator) -> Rows:
        if self.draw is not None:
            return self.draw(generator)
        return [[_whole_numbers(shape, generator) for shape in self.shapes] for _ in range(program.num_devices)]

    def _within(self, score: Mapping[str, int]) -> Mapping[str, int]:
        for name, most in self.limits.items():
            if score[name] > most:
                raise Unsolved(f"right, and {score[name]} {_WORDS[name]}; at most {most} are asked for")
        return score

    def __call__(self, solution: Any) -> None:
        """Print what came of a solution, for a file of a puzzle that is run by itself."""
        print(told(self, self.judged(solution)))


def _filled_in(solution: Callable[..., Any]) -> Callable[..., Any]:
    """The solution, with Unsolved in place of a result that has the dots of the file as it is handed out."""

    @functools.wraps(solution)
    def run(*arguments: Any) -> Any:
        found = solution(*arguments)
        parts = found if isinstance(found, tuple | list) else [found]
        if any(each is ... or (isinstance(each, str) and each == "...") for each in parts):
            raise Unsolved("solution is not filled in yet")
        return found

    return run


def raised(error: BaseException) -> str:
    """An exception of a learner's code in a line, with the innermost place outside of xbuild."""
    places = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith(_ROOT)]
    file, line = (places[-1].filename, places[-1].lineno) if places else ("", None)
    if isinstance(error, SyntaxError):
        file, line = error.filename or file, error.lineno
    where = f"{file}:{line}: " if line else ""
    return f"{where}{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"


def told(puzzle: Puzzle, judgement: Judgement) -> str:
    """A judgement in words, beside the best score that is known."""
    if not judgement.is_solved:
        return f"not yet: {judgement.lacks}"
    if not puzzle.best:
        return "solved"
    score = {name: judgement.score[name] for name in puzzle.best}
    beats = all(score[name] <= best for name, best in puzzle.best.items())
    word = "the best known" if score == puzzle.best else f"best known: {said(puzzle.best)}"
    return f"solved: {said(score)} ({'better than the ' if beats and score != puzzle.best else ''}{word})"


def said(score: Mapping[str, int]) -> str:
    """A score in words."""
    return ", ".join(f"{number} {_WORDS[name]}" for name, number in score.items())


def score_of(program: Program) -> dict[str, int]:
    """The figures of a program: the largest of any device's program."""
    modules = [*program.modules.values()] if isinstance(program, ModuleGroup) else [program]
    found = [cost(each) for each in (modules if isinstance(program, ModuleGroup) else [program])]
    names = [name for name in _WORDS if all(hasattr(each, name) for each in found)]
    return {name: max(int(getattr(each, name)) for each in found) for name in names}


def _instructions(program: Program) -> Iterator[Any]:
    for module in program.modules.values() if isinstance(program, ModuleGroup) else [program]:
        for each in module.entry.reachable():
            yield from each.instructions


def _whole_numbers(shape: Shape, generator: np.random.Generator) -> Any:
    """Small whole numbers, of which sums and products are exact in every order."""
    return generator.integers(-8, 9, shape.dims).astype(shape.dtype.dtype)


def _compared(rows: Rows, found: Any, wanted: Any) -> None:
    if _same(found, wanted):
        return
    given = ", ".join(shown(each) for each in (rows[0] if len(rows) == 1 else rows))
    raise Unsolved(f"of {given}\n  yours  {shown(found)}\n  spec   {shown(wanted)}")


def _same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, list | tuple) and isinstance(found, list | tuple):
        return len(found) == len(wanted) and all(map(_same, found, wanted))
    one, other = np.asarray(found), np.asarray(wanted)
    return one.shape == other.shape and bool(np.array_equal(one, other.astype(one.dtype), equal_nan=True))
