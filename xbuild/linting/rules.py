"""The table of rules: the name of each, what it means in one sentence, and the function that finds its issues."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from attrs import frozen

from ..core.graph import Instruction
from ..core.issues import Issue
from ..core.report_text import wrapped
from .facts import ProgramFacts

Measure: TypeAlias = Literal["none", "seconds", "memory"]
"""By what an issue must be worth a report: always, by its share of the program's seconds, or of a device's memory."""


@frozen
class Rule:
    """A rule of `xbuild lint`: `find` returns the issues of a program, and `meaning` is its sentence."""

    name: str
    meaning: str
    measure: Measure
    find: Callable[[ProgramFacts], Iterator[Issue]]

    @property
    def details(self) -> str:
        """What counts and what does not, in a paragraph."""
        return " ".join(inspect.cleandoc(self.find.__doc__ or "").split())


UNNEEDED = "unneeded_allow"
"""The rule of a comment that allows nothing."""

UNNEEDED_MEANING = "A comment `# xbuild: allow RULE` allows nothing: the rule reports nothing on its line."

RULES: dict[str, Rule] = {}
"""The rules by name, in the order of the documentation. Importing `xbuild.linting` fills the table."""


def rule(meaning: str, measure: Measure = "seconds") -> Callable[[Find], Find]:
    """A decorator that enters a function of a program's facts under its own name."""

    def enter(find: Find) -> Find:
        RULES[find.__name__] = Rule(find.__name__, meaning, measure, find)
        return find

    return enter


Find: TypeAlias = Callable[[ProgramFacts], Iterator[Issue]]


def explain_rule(name: str) -> str | None:
    """What `xbuild explain` prints about a rule; None for any other name."""
    key = name.replace("-", "_")
    if key == UNNEEDED:
        text = f"{key}: {UNNEEDED_MEANING} See docs/lint.md."
    elif key in RULES:
        text = f"{key}: {RULES[key].meaning} {RULES[key].details} See docs/lint.md."
    else:
        return None
    return "\n".join(wrapped(text, 120))


def issue(
    facts: ProgramFacts,
    name: str,
    message: str,
    fix: str,
    instruction: Instruction,
    *others: Instruction,
    bytes: int = 0,
    seconds: float = 0.0,
    devices: tuple[int, ...] = (),
    line: Instruction | None = None,
    **more: Any,
) -> Issue:
    """An issue at an instruction, with the user's line of it or of `line`; `bytes` and `seconds` are what it costs."""
    numbers: Mapping[str, Any] = {"bytes": bytes, "seconds": seconds, **more}
    names = (instruction.name, *(each.name for each in others))
    return Issue(name, "warning", message, facts.source(line or instruction), names, devices, fix, numbers)
