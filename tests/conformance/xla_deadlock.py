"""Cases of XLA's verifier of send and recv: what it refuses is an error or a deadlock, and what it accepts is ok.

XLA looks at scheduled modules alone: an unscheduled one that it accepts may get another verdict, which is proved.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import xbuild as xb

Case = dict[str, Any]
WRONG = ("error", "deadlock")


def failure(case: Case) -> str | None:
    """What is wrong with the verdict on the case, or None."""
    try:
        came, told = _verdict(case)
    except Exception as error:
        return f"{type(error).__name__} came: {next(iter(str(error).splitlines()), '')}"
    wanted = WRONG if case["xla"] == "refused" else ("ok",)
    if came in wanted or (case["xla"] == "accepted" and came in WRONG and not _is_scheduled(case)):
        return None
    return f"{' or '.join(wanted)} is expected, {came} came: {told}"


def _verdict(case: Case) -> tuple[str, str]:
    """The kind of verdict, and its first sentence; a text that is refused at reading is an error."""
    try:
        module = xb.parse_hlo(case["text"], case["id"])
    except xb.HloParseError as refused:
        return "error", str(refused).splitlines()[0]
    verdict = xb.check(module)
    return verdict.kind, str(verdict).splitlines()[0]


def _is_scheduled(case: Case) -> bool:
    return "is_scheduled=true" in case["text"].lstrip().partition("\n")[0]


def run(cases: Iterable[Case]) -> tuple[list[str], int]:
    """A line for each case that fails, and how many pass."""
    found = [(case["id"], failure(case)) for case in cases]
    lines = [f"{name}: {wrong}" for name, wrong in found if wrong]
    return lines, len(found) - len(lines)


def main(arguments: list[str]) -> int:
    cases = [case for path in arguments for case in json.loads(Path(path).read_text())["cases"]]
    lines, passed = run(cases)
    print(*lines, sep="\n", end="\n" * bool(lines))
    print(f"{passed} passed, {len(lines)} failed")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
