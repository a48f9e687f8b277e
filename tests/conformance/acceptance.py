"""Acceptance cases from a file: CrossReplicaSum and the TPU functions, varying types, the dialect shard."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.conformance.families import a, b, c
from tests.conformance.families.judging import Case
from tests.conformance.reporting import cases_in, failures, report

FAMILIES = {"A": a.failure, "B": b.failure, "C": c.failure}


def failure(case: Case) -> str | None:
    """What is wrong with how xbuild treats the case, or None."""
    if case["family"] not in FAMILIES:
        return f"no family {case['family']}"
    return FAMILIES[case["family"]](case)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.acceptance", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--family", choices=sorted(FAMILIES), help="the cases of one family alone")
    given = parser.parse_args(arguments)
    cases = cases_in(given.files)
    return report(*failures((case for case in cases if given.family in (None, case["family"])), failure))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
