"""Shape cases from a file: operand shapes and attributes, and the shape, or the refusal, that they must give."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import xbuild as xb
from shape_inference import XbuildError, compatible, parse_shape
from tests.conformance.shape_calls import Case, call, spellings
from tests.support.facts import internals, missing, own_words


def failure(case: Case) -> str | None:
    """What is wrong with how xbuild treats the case, or None."""
    try:
        return _judged(case)
    except Exception as error:
        return f"{_expected(case)} expected, {type(error).__name__} came: {_line(error)}"


def _judged(case: Case) -> str | None:
    try:
        value = call(case)
    except XbuildError as error:
        return _of_refusal(case, error.kind, str(error))
    return _of_shape(case, value) if "expect" in case else _of_verdict(case, value)


def _of_shape(case: Case, value: xb.Value) -> str | None:
    accepted = [each for each in (case["expect"], case.get("also_accept", "error:")) if not each.startswith("error:")]
    if any(compatible(value.shape, parse_shape(text)) for text in accepted):
        return None
    return f"{_expected(case)} expected, {value.shape} came"


def _of_refusal(case: Case, kind: str, text: str) -> str | None:
    kinds = [case.get("error"), case.get("also_accept", "").removeprefix("error:")]
    if kind not in filter(None, kinds):
        return f"{_expected(case)} expected, {kind} came: {_line(text)}"
    words = own_words(text)
    if lacking := missing(words, case.get("must_name", ()), spellings(case["op"])):
        return f"the message must name {', '.join(map(repr, lacking))}: {_line(text)}"
    if not any(not missing(words, [name]) for name in spellings(case["op"])):
        return f"the message must name the op: {_line(text)}"
    if found := internals(words):
        return f"the message tells internals ({', '.join(found)}): {_line(text)}"
    return None


def _of_verdict(case: Case, value: xb.Value) -> str | None:
    """A refusal may come from the checker of whole programs, too."""
    module = xb.Module("case", value.builder.build(value), num_replicas=_devices(case))
    verdict = xb.check(module)
    if verdict.kind != "error" or not verdict.findings:
        return f"{_expected(case)} expected, {value.shape} came"
    return _of_refusal(case, verdict.findings[0].kind, str(verdict))


def _devices(case: Case) -> int:
    """As many devices as the case's groups and pairs name."""
    lists = (*case["attrs"].get("replica_groups", ()), *case["attrs"].get("source_target_pairs", ()))
    return max([0, *(device for each in lists for device in each)]) + 1


def _expected(case: Case) -> str:
    return case["expect"] if "expect" in case else f"error {case['error']}"


def _line(text: Any) -> str:
    return next(iter(str(text).splitlines()), "")


def run(cases: Iterable[Case]) -> tuple[list[str], Counter[str], Counter[str]]:
    """A line for each case that fails, and how many of each op pass and fail."""
    lines, passed, failed = [], Counter[str](), Counter[str]()
    for case in cases:
        found = failure(case)
        (failed if found else passed)[case["op"]] += 1
        if found:
            lines.append(f"{case['id']}: {found}")
    return lines, passed, failed


def main(arguments: list[str]) -> int:
    files = [path for path in arguments if path != "--ops"]
    cases = [case for path in files for case in json.loads(Path(path).read_text())["cases"]]
    lines, passed, failed = run(cases)
    print(*lines, sep="\n", end="\n" * bool(lines))
    if "--ops" in arguments:
        for op in dict.fromkeys(case["op"] for case in cases):
            print(f"{op:24} {passed[op]:4} passed {failed[op]:4} failed")
    print(f"{passed.total()} passed, {failed.total()} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
