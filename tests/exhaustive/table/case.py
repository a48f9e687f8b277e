"""A row of the table: programs, what is true of them, the guilty call; and what a report has to say of it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal

from attrs import frozen

import xbuild as xb
from tests.exhaustive.arithmetic import COMMUNICATES
from tests.exhaustive.text import grouped

from .writer import Lines

LINE = re.compile(r"^\s+(?:ROOT )?([\w.]+) = .*? ([a-z][a-z-]*)\(", re.MULTILINE)
TOLD = COMMUNICATES | {"while", "conditional", "call", "dynamic-update-slice", "scatter", "fusion"}
Truth = Literal["ok", "refused", "depends"]
Rank = Callable[[Lines, int], None]


@frozen(eq=False)
class Case:
    """`guilty` are the names of the instructions of which the first sentence has to name one before any other."""

    category: str
    name: str
    truth: Truth
    sources: tuple[str, ...]
    guilty: frozenset[str] = frozenset()
    send_buffers: int = 0

    @property
    def id(self) -> str:
        return f"{self.category}: {self.name}"


def ranked(
    category: str,
    name: str,
    truth: Truth,
    ranks: int,
    program: Rank,
    guilty: Iterable[str] = (),
    *,
    send_buffers: int = 0,
    is_given: bool = True,
) -> Case:
    """A case in which each rank has a program of its own."""
    sources = []
    for rank in range(ranks):
        lines = Lines(rank, ranks)
        program(lines, rank)
        sources.append(lines.text(is_given=is_given))
    return Case(category, f"{name}, {ranks} ranks", truth, tuple(sources), frozenset(guilty), send_buffers)


def alike(
    category: str,
    name: str,
    truth: Truth,
    ranks: int,
    program: Callable[[Lines], None],
    guilty: Iterable[str] = (),
    *,
    send_buffers: int = 0,
) -> Case:
    """A case in which all ranks have one program."""
    lines = Lines(None, ranks)
    program(lines)
    return Case(
        category, f"{name}, {ranks} ranks, one program", truth, (lines.text(),), frozenset(guilty), send_buffers
    )


@functools.cache
def checked(case: Case) -> Any:
    """The verdict, or the error of who reads the text."""
    try:
        return xb.check(grouped([*case.sources]), send_buffers=case.send_buffers)
    except ValueError as error:
        return error


def is_unread(case: Case) -> bool:
    """Whether its text is refused where it is read."""
    return isinstance(checked(case), ValueError)


def failure(case: Case) -> str | None:
    """What is wrong with what is said of the case, or None."""
    verdict = checked(case)
    came = "refused" if isinstance(verdict, ValueError) or verdict.refused else verdict.kind
    if came != case.truth:
        return f"{case.truth} expected, {came} came: {headline(verdict)}"
    if case.truth != "ok" and not names_the_guilty(case, headline(verdict)):
        return f"one of {sorted(case.guilty)} is guilty, and the report begins: {headline(verdict)}"
    return None


def headline(verdict: Any) -> str:
    """The first sentence of a report; of what data decide with its condition."""
    lines = [line.strip() for line in str(verdict).splitlines() if line.strip()]
    if isinstance(verdict, ValueError):
        return " ".join(lines[:2])
    return " ".join(lines[:2] if verdict.kind == "depends" else lines[:1])


def names_the_guilty(case: Case, sentence: str) -> bool:
    """Whether the first instruction that the sentence names is a guilty one."""
    known = {name for text in case.sources for name, opcode in LINE.findall(text) if opcode in TOLD}
    named = [word for word in re.findall(r"[\w.]*\w", sentence) if word in known]
    return bool(named) and named[0] in case.guilty
