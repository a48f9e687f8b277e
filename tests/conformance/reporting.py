"""What the runners share: cases from files, a line for each case that fails, the counts, and the exit status."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

Case = dict[str, Any]


def cases_in(files: Iterable[str | Path]) -> list[Case]:
    """The cases of JSON files that have them under `cases`."""
    return [case for path in files for case in json.loads(Path(path).read_text())["cases"]]


def failures(cases: Iterable[Case], failure: Callable[[Case], str | None], name: str = "id") -> tuple[list[str], int]:
    """A line for each case that fails, and how many pass; `failure` says what is wrong with a case, or None."""
    found = [(case[name], failure(case)) for case in cases]
    lines = [f"{case}: {wrong}" for case, wrong in found if wrong]
    return lines, len(found) - len(lines)


def report(lines: Sequence[str], passed: int) -> int:
    """Print the lines and `N passed, M failed`; the exit status."""
    print(*lines, sep="\n", end="\n" * bool(lines))
    print(f"{passed} passed, {len(lines)} failed")
    return 1 if lines else 0
