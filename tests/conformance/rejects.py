"""Odd and invalid HLO texts from a file: what real XLA refuses must be refused at its place, the rest be read."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import xbuild as xb
from tests.conformance.reporting import failures, report
from tests.support.facts import internals, own_words

Case = dict[str, Any]

# What XLA accepts and fills in by itself, and a good reader refuses.
TRAPS = ("elided_constant",)


def failure(case: Case) -> str | None:
    """What is wrong with how xbuild treats the text, or None."""
    try:
        xb.parse_hlo(case["text"])
    except xb.HloParseError as error:
        return _of_refusal(case, error)
    except Exception as error:
        return f"{_expected(case)} expected, {type(error).__name__} came: {_line(error)}"
    return None if case["stage"] == "accepted" else f"{_expected(case)} expected, and it was read"


def _of_refusal(case: Case, error: xb.HloParseError) -> str | None:
    text = str(error)
    if case["stage"] == "accepted" and error.kind not in TRAPS:
        return f"{_expected(case)} expected, {error.kind} came: {_line(text)}"
    if not re.match(r"<hlo>:\d+:\d+: .+ \[\w+\]$", _line(text)):
        return f"the message must have line, column and reason: {_line(text)}"
    if not re.search(r"^ *\^$", text, re.MULTILINE):
        return f"the message must have a caret under the place: {_line(text)}"
    if found := internals(own_words(text)):
        return f"the message tells internals ({', '.join(found)}): {_line(text)}"
    return None


def _expected(case: Case) -> str:
    return "a module" if case["stage"] == "accepted" else f"a refusal ({case['stage']})"


def _line(text: Any) -> str:
    return next(iter(str(text).splitlines()), "")


def main(arguments: list[str]) -> int:
    cases = [case for path in arguments for case in json.loads(Path(path).read_text())]
    return report(*failures(cases, failure, "name"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
