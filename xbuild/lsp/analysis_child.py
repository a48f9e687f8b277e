"""The process that checks and lints the text of an open file: JSON on stdin, a line of JSON for each stage on stdout.

Check and lint may take longer than an editor waits. In a process of their own they are stopped by a kill, at the next
edit or at a limit, and the server goes on answering.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import xbuild
from shape_inference import XbuildError
from xbuild.core.graph import MetadataSource, Module, Source, TextSource
from xbuild.core.issues import Issue
from xbuild.lsp.document import read
from xbuild.lsp.text import Text
from xbuild.process.limits import DeadlineError, within

STAGES: dict[str, Callable[[Module], Iterable[Issue]]] = {
    "check": lambda module: xbuild.check(module).issues,
    "lint": lambda module: xbuild.lint(module).issues,
}
"""What is asked of each module of a text, in this order."""


def main(given: IO[str], output: IO[str]) -> None:
    """Read a request, and write the issues of each stage as they are known."""
    request = json.load(given)
    seconds = float(request["seconds"])
    if hasattr(signal, "alarm"):
        signal.alarm(int(seconds) + 5)  # the server stops this process before, unless the server was killed
    reading = read(Text(request["text"]), request["file"])
    for stage, ask in STAGES.items():
        found = []
        for part in reading.parts:
            issues = [] if part.module is None else _ask(ask, part.module, seconds)
            found += [{"begin": part.begin, **issue_facts(each)} for each in issues]
        output.write(json.dumps({"stage": stage, "issues": found}) + "\n")
        output.flush()


def _ask(stage: Callable[[Module], Iterable[Issue]], module: Module, seconds: float) -> list[Issue]:
    """The issues of a module; a program that the stage refuses has that refusal as its only issue."""
    try:
        with within(seconds):
            return list(stage(module))
    except DeadlineError:
        return []
    except XbuildError as error:
        return [Issue(error.kind, "warning", getattr(error, "message", None) or str(error))]
    except RecursionError:
        return [Issue("nested_too_deep", "warning", "the program is nested too deeply to process")]


def issue_facts(issue: Issue) -> dict[str, Any]:
    """An issue as plain data, with the lines of the text, as the readers count them."""
    return {
        "rule": issue.rule,
        "level": issue.level,
        "message": issue.message,
        "fix": issue.fix,
        "line": line_in_text(issue.source),
        "computation": issue.source.function if isinstance(issue.source, TextSource) else None,
        "instructions": list(issue.instructions[:MOST_PLACES]),
        "related": [[each.message, line_in_text(each.source)] for each in issue.related[:MOST_PLACES]],
    }


MOST_PLACES = 20
"""The greatest number of further places of an issue."""


def line_in_text(source: Source | None) -> int | None:
    """The line of the text; None if the source is a Python line."""
    if isinstance(source, TextSource) and not isinstance(source, MetadataSource):
        return source.line
    return None


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
