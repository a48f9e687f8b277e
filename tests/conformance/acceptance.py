"""Acceptance cases from a file: CrossReplicaSum and the TPU functions, varying types, the dialect shard."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.conformance.families import a, b, c
from tests.conformance.families.judging import Case

FAMILIES = {"A": a.failure, "B": b.failure, "C": c.failure}


def failure(case: Case) -> str | None:
    """What is wrong with how xbuild treats the case, or None."""
    if case["family"] not in FAMILIES:
        return f"no family {case['family']}"
    return FAMILIES[case["family"]](case)


def run(cases: Iterable[Case]) -> tuple[list[str], int]:
    """A line for each case that fails, and how many pass."""
    found = [(case["id"], failure(case)) for case in cases]
    lines = [f"{name}: {wrong}" for name, wrong in found if wrong]
    return lines, len(found) - len(lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.acceptance", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--family", choices=sorted(FAMILIES), help="the cases of one family alone")
    given = parser.parse_args(arguments)
    cases = [case for path in given.files for case in json.loads(path.read_text())["cases"]]
    lines, passed = run(case for case in cases if given.family in (None, case["family"]))
    print(*lines, sep="\n", end="\n" * bool(lines))
    print(f"{passed} passed, {len(lines)} failed")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
