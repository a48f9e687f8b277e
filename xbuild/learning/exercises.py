"""Exercises drawn from a seed: the same questions with other numbers for each student, as a file that grades itself.

The same seed gives the same exercises in every version of Python. Each exercise is a small program with integers, so
its answer is exact; XLA:CPU runs all of these ops.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from attrs import frozen

from .answers import answer_text
from .cells import cells_of
from .lesson import Question, session
from .shelf import CollectingSession


@frozen
class Exercise:
    """A question about a program: its words, the code that defines `program`, the arguments, and more of the call."""

    words: str
    code: str
    inputs: tuple[Any, ...] = ()
    rest: str = ""
    truth: str = "program"


class SeededDraw:
    """Draws numbers from a seed, by a method of `random` whose results are the same in all versions of Python."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(f"xbuild exercises {seed}")

    def number(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def numbers(self, count: int, low: int = 1, high: int = 9) -> list[int]:
        return [self.number(low, high) for _ in range(count)]

    def order(self, count: int) -> list[int]:
        """The numbers below count in a random order."""
        rest = [*range(count)]
        return [rest.pop(self.number(0, len(rest) - 1)) for _ in range(count)]


_KINDS: list[Callable[[SeededDraw], Exercise]] = []


def _kind(draw: Callable[[SeededDraw], Exercise]) -> Callable[[SeededDraw], Exercise]:
    """Register a function that draws an exercise."""
    _KINDS.append(draw)
    return draw


def _on_one(shapes: str, function: str) -> str:
    return f"program = xb.computation({shapes})({function})"


def _on_devices(count: int, shape: str, function: str) -> str:
    return f'program = xb.Module("program", xb.computation({shape})({function}), num_replicas={count})'


@_kind
def _broadcast(draw: SeededDraw) -> Exercise:
    values, other, is_row = draw.numbers(draw.number(2, 3)), draw.number(2, 3), draw.number(0, 1)
    result = [other, len(values)] if is_row else [len(values), other]
    code = _on_one(f"xb.s32[{len(values)}]", f"lambda x: xb.broadcast_in_dim(x, {result}, [{is_row}])")
    return Exercise(f"x = {values}. What is the result?", code, (values,))


@_kind
def _dot(draw: SeededDraw) -> Exercise:
    left, right = ([draw.numbers(2, 1, 4) for _ in range(2)] for _ in range(2))
    at = draw.order(2)
    function = f"lambda a, b: xb.dot_general(a, b, lhs_contracting_dims=[{at[0]}], rhs_contracting_dims=[{at[1]}])"
    code = _on_one("xb.s32[2, 2], xb.s32[2, 2]", function)
    return Exercise(f"a = {left}, b = {right}. What is the product?", code, (left, right))


@_kind
def _slice(draw: SeededDraw) -> Exercise:
    values, size = draw.numbers(6, 0, 9), draw.number(2, 3)
    start = draw.number(7 - size, 9) if draw.number(0, 1) else -draw.number(1, 4)
    code = _on_one("xb.s32[6], xb.s32[()]", f"lambda x, start: xb.dynamic_slice(x, [start], [{size}])")
    return Exercise(f"x = {values}, start = {start}. What is the result?", code, (values, start))


@_kind
def _pad(draw: SeededDraw) -> Exercise:
    values, padding = draw.numbers(3), (draw.number(-1, 1), draw.number(-1, 2), draw.number(0, 2))
    code = _on_one("xb.s32[3]", f"lambda x: xb.pad(x, 0, [{padding}])")
    low, high, interior = padding
    words = f"x = {values} is padded: low {low}, high {high}, interior {interior}. What is the result?"
    return Exercise(words, code, (values,))


@_kind
def _reduce(draw: SeededDraw) -> Exercise:
    values, init, dimension = [draw.numbers(3) for _ in range(2)], draw.number(1, 9), draw.number(0, 1)
    code = _on_one("xb.s32[2, 3]", f"lambda x: xb.reduce(x, {init}, xb.add, [{dimension}])")
    return Exercise(f"x = {values}. What is the result?", code, (values,))


@_kind
def _windows(draw: SeededDraw) -> Exercise:
    values, size, stride = draw.numbers(6, 0, 5), draw.number(2, 3), draw.number(1, 2)
    code = _on_one("xb.s32[6]", f"lambda x: xb.reduce_window(x, 0, xb.add, [{size}], window_strides=[{stride}])")
    return Exercise(f"x = {values}. What is the result?", code, (values,))


@_kind
def _division(draw: SeededDraw) -> Exercise:
    numerators, denominator = [-draw.number(5, 19), draw.number(5, 19)], draw.number(2, 4)
    name = ("divide", "remainder")[draw.number(0, 1)]
    code = _on_one("xb.s32[2], xb.s32[2]", f"xb.{name}")
    words = f"What is {name} of {numerators} and {[denominator] * 2}?"
    return Exercise(words, code, (numerators, [denominator] * 2))


@_kind
def _all_reduce(draw: SeededDraw) -> Exercise:
    values, order = draw.numbers(4), draw.order(4)
    groups = [tuple(sorted(order[:2])), tuple(sorted(order[2:]))]
    code = _on_devices(4, "xb.s32[()]", f"lambda x: xb.all_reduce(x, xb.add, {groups})")
    return Exercise(f"The replicas hold {_listed(values)}. What do they hold after the run?", code, (*values,))


@_kind
def _all_gather(draw: SeededDraw) -> Exercise:
    rows, order = [draw.numbers(2) for _ in range(3)], tuple(draw.order(3))
    code = _on_devices(3, "xb.s32[2]", f"lambda x: xb.all_gather(x, 0, 3, [{order}])")
    words = f"The replicas hold {_listed(rows)}. What does replica 0 hold after the run?"
    return Exercise(words, code, (*rows,), "of=lambda results: results[0]")


@_kind
def _reduce_scatter(draw: SeededDraw) -> Exercise:
    rows, group = [draw.numbers(2) for _ in range(2)], tuple(draw.order(2))
    code = _on_devices(2, "xb.s32[2]", f"lambda x: xb.reduce_scatter(x, xb.add, 0, 2, [{group}])")
    return Exercise(f"The replicas hold {_listed(rows)}. What does each replica hold after the run?", code, (*rows,))


@_kind
def _all_to_all(draw: SeededDraw) -> Exercise:
    rows = [draw.numbers(2) for _ in range(2)]
    code = _on_devices(2, "xb.s32[2]", "lambda x: xb.all_to_all(x, 0, 0, 2, [(0, 1)])")
    return Exercise(f"The replicas hold {_listed(rows)}. What does each replica hold after the run?", code, (*rows,))


@_kind
def _permute(draw: SeededDraw) -> Exercise:
    values, sources, targets = draw.numbers(4), draw.order(4)[:3], draw.order(4)[:3]
    pairs = [*zip(sources, targets, strict=True)]
    code = _on_devices(4, "xb.s32[()]", f"lambda x: xb.collective_permute(x, {pairs})")
    return Exercise(f"The replicas hold {_listed(values)}. What do they hold after the run?", code, (*values,))


@_kind
def _deadlock(draw: SeededDraw) -> Exercise:
    factor, is_inside, is_swapped = draw.number(2, 9), draw.number(0, 1), draw.number(0, 1)
    branches = ["total" if is_inside else f"lambda v: v * {factor}", "lambda v: v"]
    one, other = reversed(branches) if is_swapped else branches
    code = (
        "def verdict(module):\n    return xb.check(module).kind\n\n\n"
        "def total(x):\n    return xb.all_reduce(x, xb.add, [(0, 1)])\n\n\n"
        "def on_two(x):\n    is_first = xb.eq(xb.replica_id(x.builder), 0)\n"
        f"    x = xb.conditional(is_first, x, {one}, x, {other})\n    return {'x' if is_inside else 'total(x)'}\n\n\n"
        'program = xb.Module("program", xb.computation(xb.s32[()])(on_two), num_replicas=2)'
    )
    rest = 'choices=["ok", "deadlock"], claim=about_xbuild("The check finds out without a run")'
    return Exercise("What is the verdict of the check?", code, (), rest, "verdict, program")


def _listed(values: list[Any]) -> str:
    return ", ".join(map(str, values))


COUNT = 10
"""The exercises of a sheet; it has at most one of each kind."""


def draw_exercises(seed: str, count: int = COUNT) -> list[Exercise]:
    """The exercises of a seed, a number or the name of a student: other kinds, in another order, for another seed."""
    draw = SeededDraw(seed)
    return [_KINDS[place](draw) for place in draw.order(len(_KINDS))[:count]]


def sheet_text(seed: str) -> str:
    """The exercises of a seed as a file in percent format, with three dots for each answer."""
    return "\n\n".join(_sheet_parts(seed)) + "\n"


def _sheet_parts(seed: str) -> Iterator[str]:
    yield (
        f"# %% [markdown]\n# # Exercises {seed}\n#\n# Replace each `...` that follows a question with your answer, and "
        "run the file: it grades your answers.\n# Replace it with `None` to see the answer."
    )
    yield "# %%\nimport xbuild as xb\nfrom xbuild.learning import about_xbuild, ask"
    for number, exercise in enumerate(draw_exercises(seed), 1):
        parts = [repr(f"{number}. {exercise.words}"), "...", exercise.truth, *map(repr, exercise.inputs)]
        call = ", ".join([*parts, *([exercise.rest] if exercise.rest else [])])
        yield f"# %%\n{exercise.code}\nask({call})  # fmt: skip"


def questions_of(seed: str) -> list[Question]:
    """The questions of a seed, without guesses."""
    collected, space = CollectingSession(), dict[str, Any]()
    with session(collected):
        for cell in cells_of(sheet_text(seed)):
            if cell.kind == "code":
                cell.run(f"exercises {seed}", space)
    return collected.questions


def exam_texts(seed: str) -> tuple[str, str]:
    """An exam on paper and its solutions, both in Markdown; the exam holds no answer."""
    questions = questions_of(seed)
    exam, solutions = [f"# Exam {seed}"], [f"# Solutions of exam {seed}"]
    for exercise, question in zip(draw_exercises(seed), questions, strict=True):
        choices = "".join(f"\n- {choice}" for choice in question.choices)
        exam.append(f"**{question.words}**\n{choices}\n```python\n{exercise.code}\n```\n\nAnswer:")
        solutions.append(f"{question.words}\n\n    {answer_text(question.truth)}")
    return "\n\n".join(exam) + "\n", "\n\n".join(solutions) + "\n"
