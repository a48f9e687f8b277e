"""Cases of XLA's replication analysis from a file: what it proves equal is proved, and nothing that is not equal.

What is proved beyond XLA has to be so in runs on data of which only that is equal which the case says.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping
from typing import Any

from attrs import evolve

import xbuild as xb
from tests.conformance.reporting import cases_in, failures, report
from tests.replication.runs import breaches, random_inputs

Case = dict[str, Any]
COUNTS = (2, 4)  # where a case says that it holds of any
SEEDS = (0, 1, 2)


def failure(case: Case) -> str | None:
    """What is wrong with how xbuild treats the case, or None."""
    try:
        return next((wrong for module in modules(case) if (wrong := _judged(case, module))), None)
    except Exception as error:
        return f"{type(error).__name__} came: {next(iter(str(error).splitlines()), '')}"


def modules(case: Case) -> list[xb.Module]:
    """The program, on as many replicas and partitions as the case says; on several where it says any."""
    read = xb.parse_hlo(case["text"], case["id"])
    counts = [[case[key]] if case[key] else COUNTS for key in ("replicas", "partitions")]
    return [evolve(read, num_replicas=r, num_partitions=p) for r, p in itertools.product(*counts)]


def _judged(case: Case, module: xb.Module) -> str | None:
    given = {each["parameter"]: each["replicated_leaves"] for each in case["parameters"]}
    values = xb.replication(module, given)
    more = []
    for each in case["expect"]:
        came = values.is_replicated(each["name"], each["index"], across=case["across"])
        if each["replicated"] and not came:
            what = f"{each['name']} {each['index']} is equal across {case['across']}, which was not proved"
            return f"{what}: {values.groups(each['name'], each['index'])}"
        if came and not each["replicated"]:
            more.append((each["name"], tuple(each["index"])))
    return _run(case, module, values, given, more) if more else None


def _run(
    case: Case, module: xb.Module, values: xb.Replication, given: Mapping[int, Any], more: list[tuple[str, Any]]
) -> str | None:
    """Where a run shows that what was proved beyond XLA is not so."""
    for seed in SEEDS:
        found = breaches(module, values, *random_inputs(module, values, seed))
        if found:
            return f"seed {seed}: {found[0]}"
    return None


def main(arguments: list[str]) -> int:
    return report(*failures(cases_in(arguments), failure))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
