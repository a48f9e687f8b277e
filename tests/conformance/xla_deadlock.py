"""Cases of XLA's verifier of send and recv: what it refuses is an error or a deadlock, and what it accepts is ok.

XLA looks at scheduled modules alone: an unscheduled one that it accepts may get another verdict, which is proved.
XLA does not ask whether a send waits for its recv: what it accepts has to run with a send buffer, if not without.
"""

from __future__ import annotations

import sys
from typing import Any

import xbuild as xb
from tests.conformance.reporting import cases_in, failures, report

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
    if case["xla"] == "accepted" and came == "deadlock" and _verdict(case, send_buffers=1)[0] == "ok":
        print(f"{case['id']}: ok with a send buffer, without: {told}")
        return None
    return f"{' or '.join(wanted)} is expected, {came} came: {told}"


def _verdict(case: Case, send_buffers: int = 0) -> tuple[str, str]:
    """The kind of verdict, and its first sentence; a text that is refused at reading is an error."""
    try:
        module = xb.parse_hlo(case["text"], case["id"])
    except xb.HloParseError as refused:
        return "error", str(refused).splitlines()[0]
    verdict = xb.check(module, send_buffers=send_buffers)
    return verdict.kind, str(verdict).splitlines()[0]


def _is_scheduled(case: Case) -> bool:
    return "is_scheduled=true" in case["text"].lstrip().partition("\n")[0]


def main(arguments: list[str]) -> int:
    return report(*failures(cases_in(arguments), failure))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
