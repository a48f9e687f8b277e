"""Recall, precision and F1 of the check on the table, by the fault classes of the benchmarks of MPI's verifiers.

`python -m tests.exhaustive.table.measures` prints the table of docs/checker.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import define

from .case import Case, checked, headline, names_the_guilty
from .rows import rows

CLASSES = {
    "call ordering": (
        "collective order", "missing member", "mismatched kind", "P2P order", "collective and P2P", "missing partner",
    ),
    "parameter matching": (
        "mismatched shape", "mismatched type", "mismatched operator", "mismatched root", "mismatched pairs",
        "mismatched groups", "mismatched channel", "P2P shape", "P2P type", "P2P same",
    ),
    "invalid parameter": ("communicator", "invalid peer"),
    "request lifecycle": ("missing wait",),
    "buffering hazard": ("buffering",),
    "input hazard": ("input hazard", "unequal trips"),
    "local concurrency": ("local concurrency",),
}  # fmt: skip
"""The categories of the table in each fault class of MBI and MPI-BugBench."""


@define
class Measure:
    """How the rows of a class are judged: a positive is a row that is refused, or left to the data."""

    right: int = 0
    faulty: int = 0
    found: int = 0
    alarms: int = 0
    named: int = 0

    def count(self, case: Case) -> None:
        verdict = checked(case)
        is_positive = isinstance(verdict, ValueError) or verdict.kind != "ok"
        if case.truth == "ok":
            self.right += 1
            self.alarms += is_positive
        else:
            self.faulty += 1
            self.found += is_positive
            self.named += is_positive and names_the_guilty(case, headline(verdict))

    @property
    def recall(self) -> float:
        return self.found / self.faulty

    @property
    def precision(self) -> float:
        return self.found / (self.found + self.alarms)

    @property
    def f1(self) -> float:
        return 2 * self.precision * self.recall / (self.precision + self.recall)


def measured(cases: Iterable[Case]) -> dict[str, Measure]:
    """The measure of each class, and of all together."""
    found = {name: Measure() for name in (*CLASSES, "all")}
    class_of = {category: name for name, categories in CLASSES.items() for category in categories}
    for case in cases:
        found[class_of[case.category]].count(case)
        found["all"].count(case)
    return found


def table(measures: dict[str, Measure]) -> str:
    """The table in Markdown."""
    lines = [
        "| class | faulty | correct | recall | precision | F1 | guilty call named first |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [_row(name, each) for name, each in measures.items()]
    return "\n".join(lines)


def _row(name: str, each: Measure) -> str:
    figures: tuple[Any, ...] = (each.recall, each.precision, each.f1)
    ratios = " | ".join(f"{figure:.3f}" for figure in figures)
    return f"| {name} | {each.faulty:,} | {each.right:,} | {ratios} | {each.named:,} |"


if __name__ == "__main__":
    print(table(measured(rows())))
