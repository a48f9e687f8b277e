"""Times ours and a reference alternately within one run, and compares their medians in a table at the end."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest
from attrs import frozen

ROWS = pytest.StashKey[list["Row"]]()


@frozen
class Row:
    """A row of the table: our seconds and the reference's per unit of work, or a value without a reference."""

    what: str
    ours: float
    reference: float | None = None
    unit: str = "us"

    def __str__(self) -> str:
        if self.unit != "us":
            scale, digits = 1.0, 1
        else:
            scale, digits = 1e6, 2
        figures = [f"{self.ours * scale:12.{digits}f} {self.unit}"]
        if self.reference is not None:
            figures += [f"{self.reference * scale:12.{digits}f} {self.unit}", f"{self.ours / self.reference:8.2f}x"]
        return f"{self.what:58}{''.join(figures)}"


@frozen
class SideBySide:
    """Times our call and, before each round, the reference; adds a row to the table."""

    benchmark: Any
    rows: list[Row]

    def __call__(
        self, what: str, ours: Callable[[], Any], reference: Callable[[], Any], *, units: int = 1, rounds: int = 15
    ) -> None:
        ours(), reference()  # what is made once and kept is no part of either
        seconds: list[float] = []

        def before() -> None:
            start = time.perf_counter()
            reference()
            seconds.append(time.perf_counter() - start)

        self.benchmark.pedantic(ours, setup=before, rounds=rounds)
        self.rows.append(Row(what, self.benchmark.stats.stats.median / units, statistics.median(seconds) / units))

    def rate(
        self, what: str, ours: Callable[[], Any], reference: Callable[[], Any], *, units: int, rounds: int
    ) -> None:
        """The same in thousands of units a second, so that the ratio is a fraction of the reference's speed."""
        self(what, ours, reference, units=units, rounds=rounds)
        row = self.rows.pop()
        assert row.reference is not None
        self.rows.append(Row(what, 1e-3 / row.ours, 1e-3 / row.reference, "k/s"))

    def alone(self, what: str, ours: Callable[[], Any], *, units: int = 1, rounds: int = 5) -> None:
        """Ours, if there is no reference."""
        self.benchmark.pedantic(ours, rounds=rounds, warmup_rounds=1)
        self.rows.append(Row(what, self.benchmark.stats.stats.median / units))


@pytest.fixture(scope="session")
def rows(request: pytest.FixtureRequest) -> list[Row]:
    return request.config.stash.setdefault(ROWS, [])


@pytest.fixture
def side_by_side(benchmark: Any, rows: list[Row]) -> SideBySide:
    return SideBySide(benchmark, rows)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    found = config.stash.get(ROWS, [])
    if found:
        terminalreporter.section("medians, side by side")
        terminalreporter.write_line(f"{'':58}{'ours':>15}{'reference':>15}{'ratio':>9}")
        for row in found:
            terminalreporter.write_line(str(row))
