"""Deadlock cases from a file: the verdict that programs must get, and how they must end when they run."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import xbuild as xb
from tests.conformance.deadlock_cases.data import Case, number_of
from tests.conformance.deadlock_cases.programs import Prepared, prepared
from tests.conformance.reporting import cases_in, failures, report

_BRACKETS = str.maketrans("[{]}", "(())")
SECONDS = 10.0
HANGING = 1.0  # where a callback never returns, nothing but the limit ends the run


def failure(case: Case) -> str | None:
    """What is wrong with how xbuild treats the case, or None."""
    try:
        made = prepared(case)
        verdict = xb.check(made.program)
        wrong = verdict_failure(case, verdict)
        return wrong or (None if verdict.refused else _run_failure(case, made))
    except Exception as error:
        return f"{_expected(case)} expected, {type(error).__name__} came: {_line(error)}"


def verdict_failure(case: Case, verdict: xb.Verdict) -> str | None:
    """What is wrong with a verdict: its kind, what it names, where it says that devices stand."""
    kind = {"depends": "runtime"}.get(verdict.kind, verdict.kind)
    came = f"{kind}: {verdict.findings[0].kind}" if kind == "error" else kind
    accepted = [_expected(case), *(each.replace("error:", "error: ") for each in case.get("also_accept", ()))]
    if not any(came == each or came.startswith(f"{each}:") for each in accepted):
        return f"{_expected(case)} expected, {came} came: {_line(verdict)}"
    if kind != case["verdict"] or kind == "runtime":
        return None
    if lacking := unnamed(str(verdict), case.get("must_name", ())):
        return f"the report must name {', '.join(lacking)}: {_line(verdict)}"
    if kind == "deadlock" and "blocked" in case:
        return _blocked_failure(case, _blocked(verdict))
    return None


def _blocked(verdict: xb.Verdict) -> dict[int, list[str]]:
    return {device: [i.name for i in at] for finding in verdict.findings for device, at in finding.blocked.items()}


def _blocked_failure(case: Case, came: Mapping[int, list[str]]) -> str | None:
    wanted = {number_of(case, device): sorted(names) for device, names in case["blocked"].items()}
    found = {device: sorted(names) for device, names in came.items()}
    return None if found == wanted else f"devices must stand at {wanted}, the report has them at {found}"


def unnamed(text: str, facts: Iterable[str]) -> list[str]:
    """The facts that are no whole token of a text; letter case, blanks and the kind of brackets do not matter."""
    words = text.lower().translate(_BRACKETS)
    return [fact for fact in facts if not re.search(_pattern(fact), words)]


def _pattern(fact: str) -> str:
    letters = [re.escape(each) for each in fact.lower().translate(_BRACKETS) if not each.isspace()]
    return "(?<![a-z0-9_])" + r"\s*".join(letters) + "(?![a-z0-9_])"


def _run_failure(case: Case, made: Prepared) -> str | None:
    """How the run differs from what the case says: to the end where it is ok, else a stop that explains itself."""
    from interpreter import Limits, Stopped, execute

    seconds = HANGING if case.get("callback_hangs") else SECONDS
    try:
        execute(made.program, made.inputs, infeed=made.infeed, limits=Limits(seconds=seconds))
    except Stopped as stopped:
        return _stop_failure(case, stopped) if _stops(case) else f"it must run to completion: {_line(stopped)}"
    return "it must stop, and ran to completion" if _stops(case) else None


def _stops(case: Case) -> bool:
    return case["verdict"] != "ok" and case.get("runtime_outcome") != "ok"


def _stop_failure(case: Case, stopped: Any) -> str | None:
    if lacking := unnamed(str(stopped), case.get("must_name", ())):
        return f"the explanation must name {', '.join(lacking)}: {_line(stopped)}"
    standing = {state.device: [state.instruction.name] for state in stopped.report.devices if not state.ended}
    return _blocked_failure(case, standing) if "blocked" in case else None


def _expected(case: Case) -> str:
    return f"error: {case['error_kind']}" if case["verdict"] == "error" else case["verdict"]


def _line(text: Any) -> str:
    return next(iter(str(text).splitlines()), "")


def main(arguments: list[str]) -> int:
    return report(*failures(cases_in(arguments), failure))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
