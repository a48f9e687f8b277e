"""The results of commands as JSON, as SARIF 2.1.0 and as annotations for GitHub Actions (docs/formats.md).

Sections:

    The document of a command, and what remains of it if the program is refused
    SARIF 2.1.0
    Annotations for GitHub Actions
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, TypeAlias
from urllib.parse import quote

import click

from shape_inference import XbuildError
from shape_inference.escaping import in_annotation, in_annotation_property, printable

from ..core.graph import Source
from ..core.issues import Issue, Level
from ..files.targets import STDIN, UserError, file_of
from ..text.scanner import HloParseError
from .outputs import chosen_format, say, say_json

# ----------------------------------------------------------------------------
# The document of a command, and what remains of it if the program is refused

VERSION = 1
"""The version of the schemas. It grows if a key is removed or changes its meaning, and not if a key is added."""

Found: TypeAlias = tuple[str, Issue]
"""A target with an issue of it."""

Result: TypeAlias = tuple[str, Mapping[str, Any], Sequence[Issue]]
"""A target with its facts and its issues."""


def say_result(target: str, facts: Mapping[str, Any], issues: Sequence[Issue], *, part: str = "") -> bool:
    """Print what a command found about one target, in the format of --format; False for text, without printing.

    `facts` are the keys of the JSON document, and `part` is the part of the command that has keys of its own, such as
    `explain`. A command with the decorator `takes_format` begins its output with

        if say_result(target, facts, issues): ...
    """
    return say_document({"target": target, **facts}, [(target, issue) for issue in issues], part=part)


def say_programs(
    results: Sequence[Result], more: Mapping[str, Any] | None = None, *, others: Sequence[Found] = ()
) -> bool:
    """Print what a command found about each of several targets: of one as `say_result`, of more below `programs`.

    `more` are the keys about all targets together, and `others` the issues of all together.
    """
    if len(results) == 1 and not more:
        return say_result(*results[0])
    found = [(target, issue) for target, _, issues in results for issue in issues]
    programs = [{"target": target, **_without_issues(facts)} for target, facts, _ in results]
    return say_document({"programs": programs, **(more or {})}, [*found, *others])


def _without_issues(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if key != "issues"}


def say_document(facts: Mapping[str, Any], found: Sequence[Found], *, part: str = "") -> bool:
    """Print what a command found about several targets, as `say_result` does for one."""
    form, command = chosen_format(), click.get_current_context().command.name or ""
    if form == "json":
        schema = ".".join(filter(None, ("xbuild", command, part)))
        rows = [{"target": target, **issue.to_dict()} for target, issue in found]
        say_json({"schema": f"{schema}/{VERSION}", **_without_issues(facts), "issues": rows})
    elif form == "sarif":
        say_json(sarif(command, found))
    elif form == "github":
        for target, issue in found:
            say(annotation(command, target, issue))
    return form != "text"


REFUSAL: Mapping[str, Any] = {"kind": "error", "refused": True}
"""The facts of a program that is refused before the command has a result."""


def issues_of(error: BaseException, target: str) -> tuple[Issue, ...]:
    """The issues of an error with which a program is refused or a run stops."""
    from ..checking import Refused

    if isinstance(error, Refused):
        return error.verdict.issues
    report = getattr(error, "report", None)
    if report is not None:  # a run that stopped, or a strict run with findings
        return tuple(report.issues)
    if isinstance(error, HloParseError):
        return tuple(
            Issue(each.kind, "error", each.message, Source(_file_of(target), each.line, ""), fix="; ".join(each.hints))
            for each in error.faults
        )
    source = error.source if isinstance(error, UserError) else None
    if isinstance(error, UserError) and error.error is not None:
        error = error.error
    sentence = str(error).partition("\n")[0]
    if isinstance(error, XbuildError):
        sentence = sentence.removesuffix(f" [{error.kind}]")
        return (Issue(error.kind, "error", sentence, source, fix="; ".join(error.hints)),)
    name = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
    return (Issue("raised", "error", f"{name}{sentence}", source),)


def facts_of(error: Exception) -> dict[str, Any]:
    """The facts of such an error: the verdict of a refused program, or the report of a run that stopped."""
    from ..checking import Refused

    if isinstance(error, Refused):
        return {**REFUSAL, "kind": error.verdict.kind, "verdict": error.verdict.to_dict()}
    report = getattr(error, "report", None)
    if report is not None:
        return {"kind": report.kind, "refused": False, "stopped": report.to_dict()}
    return dict(REFUSAL)


# ----------------------------------------------------------------------------
# SARIF 2.1.0
#
# Source: the OASIS standard "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", and GitHub's document
# "SARIF support for code scanning", which needs a relative URI and a line for each result. Every text is in its
# printable form, since viewers show it.

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"


def sarif(command: str, found: Sequence[Found]) -> dict[str, Any]:
    """A SARIF log with one run: the rules that the issues name, and a result for each issue."""
    from importlib.metadata import version  # slow to import

    rules = {rule: number for number, rule in enumerate(dict.fromkeys(issue.rule for _, issue in found))}
    levels: dict[str, Level] = {issue.rule: issue.level for _, issue in reversed(found)}
    driver = {
        "name": "xbuild",
        "version": version("xbuild-hlo"),
        "rules": [_rule(rule, levels[rule]) for rule in rules],
    }
    folder = "The folder in which xbuild ran, which is the root of the repository in continuous integration."
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"xbuild/{command}/"},
        "originalUriBaseIds": {_ROOT: {"description": {"text": folder}}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(target, issue, rules[issue.rule]) for target, issue in found],
    }
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: str, level: Level) -> dict[str, Any]:
    """A rule with its explanation, which `xbuild explain RULE` prints."""
    from ..reference.words import explain_word

    text = printable("\n\n".join(explain_word(rule)) or rule)
    description = " ".join(text.removeprefix(f"{rule}: ").split("\n\n")[-1].split())
    sentence, dot, _ = description.partition(". ")
    return {
        "id": rule,
        "shortDescription": {"text": sentence + dot.strip()},
        "fullDescription": {"text": description},
        "help": {"text": text},
        "defaultConfiguration": {"level": level},
    }


def _result(target: str, issue: Issue, number: int) -> dict[str, Any]:
    source = issue.source
    place = _location(source.file, source.line) if source else _location(_file_of(target), 1)
    facts = {key: value for key, value in issue.facts.items() if value is not None}
    related = [
        {"id": number, **_location(each.source.file, each.source.line), "message": {"text": _sarif_text(each.message)}}
        for number, each in enumerate(issue.related)
    ]
    return {
        "ruleId": issue.rule,
        "ruleIndex": number,
        "level": issue.level,
        "message": {"text": _sarif_text(_message(issue))},
        "locations": [place],
        **({"relatedLocations": related} if related else {}),
        "properties": {
            "target": printable(target),
            "instructions": [printable(name) for name in issue.instructions],
            "devices": list(issue.devices),
            "facts": _printable_facts(facts),
        },
    }


def _location(file: str, line: int) -> dict[str, Any]:
    region = {"region": {"startLine": line}} if line > 0 else {}
    return {"physicalLocation": {"artifactLocation": _artifact(file), **region}}


def _artifact(file: str) -> dict[str, Any]:
    """The location of a file: relative to the root if the file is in it, else its absolute URI."""
    path = path_in_root(file)
    if os.path.isabs(path):
        return {"uri": "file://" + quote(PurePath(path).as_posix(), errors="surrogatepass")}
    return {"uri": quote(PurePath(path).as_posix(), errors="surrogatepass"), "uriBaseId": _ROOT}


def _file_of(target: str) -> str:
    """The file of a target, as the sources of its instructions name it."""
    file = file_of(target)
    return "<stdin>" if file == STDIN else file


def path_in_root(file: str) -> str:
    """The path of a file from the working directory if the file is in it; any other path unchanged."""
    if not os.path.isabs(file):
        return file
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file


def _sarif_text(text: str) -> str:
    """A plain text message, in which `](` would begin the target of a link."""
    return printable(text).replace("](", "] (")


def _printable_facts(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {printable(str(key)): _printable_facts(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_printable_facts(each) for each in value]
    return printable(value) if isinstance(value, str) else value


def _message(issue: Issue) -> str:
    """The message with the explanation and the fix, each on a line of its own."""
    explanation = issue.facts.get("explanation")
    parts = (issue.message, explanation and f"cause: {explanation}", issue.fix and f"fix: {issue.fix}")
    return "\n".join(filter(None, parts))


# ----------------------------------------------------------------------------
# Annotations for GitHub Actions
#
# Source: GitHub's document "Workflow commands for GitHub Actions". The runner reads each line that begins with `::` as
# a command, and decodes %25, %0D and %0A in all of it, and %3A and %2C in properties.

_COMMANDS: Mapping[Level, str] = {"error": "error", "warning": "warning", "note": "notice"}


def annotation(command: str, target: str, issue: Issue) -> str:
    r"""An issue as a line that GitHub shows as an annotation of a file.

    >>> annotation("check", "step.hlo", Issue("deadlock", "error", "send.3 waits\n100%", fix="move recv.4"))
    '::error file=step.hlo,title=xbuild check%3A deadlock::send.3 waits%0A100%25%0Afix: move recv.4'
    """
    source = issue.source
    file = path_in_root(source.file if source else _file_of(target))
    properties = {
        "file": PurePath(file).as_posix(),
        "line": str(source.line) if source and source.line > 0 else "",
        "title": f"xbuild {command}: {issue.rule}",
    }
    listed = ",".join(f"{key}={in_annotation_property(value)}" for key, value in properties.items() if value)
    return f"::{_COMMANDS[issue.level]} {listed}::{in_annotation(_message(issue))}"
