"""Comments `# xbuild: allow RULE` in the user's source: which issues they allow, and which are no longer needed.

A file is read only if this process runs its code, or if it lies below a folder that the user names; see `Readable`. In
HLO and StableHLO text, the comments are `// xbuild: allow RULE`; the readers keep them with the module.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from attrs import define, field, frozen

from ..core.graph import MetadataSource, RecordedSource, Source, TextSource
from ..core.issues import Issue
from ..core.source_lines import file_lines, lines_under
from ..text.comments import TextComment
from .rules import RULES, UNNEEDED

_ALLOW = re.compile(r"#\s*xbuild:\s*allow\s+([\w-]+(?:\s*,\s*[\w-]+)*)")


@frozen
class Allow:
    """A comment that allows a rule on one line of a file; `mark` begins a comment of its language."""

    file: str
    line: int
    rule: str
    mark: str = "#"


@define(eq=False)
class Readable:
    """Which files may be read for comments.

    Files whose code this process has recorded are. A file that metadata names is read only if the user passed a
    program of this process (`is_own`) and the process has imported the file, or if the file is below `root`.
    """

    is_own: bool = False
    root: Path | None = None
    _lines: dict[tuple[type, str], tuple[str, ...]] = field(factory=dict, init=False)

    def lines(self, source: Source) -> tuple[str, ...]:
        """The lines of the file of a source; none if it may not be read."""
        key = (type(source), source.file)
        if key not in self._lines:
            self._lines[key] = self._read(source)
        return self._lines[key]

    def _read(self, source: Source) -> tuple[str, ...]:
        if isinstance(source, RecordedSource):
            return file_lines(source.file)
        if not isinstance(source, MetadataSource):
            return ()
        if self.is_own and source.file in self._imported:
            return file_lines(source.file)
        return () if self.root is None else lines_under(self.root, source)

    @cached_property
    def _imported(self) -> frozenset[str]:
        """The files of the modules of this process."""
        files = (getattr(module, "__file__", None) for module in [*sys.modules.values()])
        return frozenset(str(file) for file in files if file)


def allows_on(source: Source, readable: Readable) -> Iterator[Allow]:
    """The comments on a line."""
    lines = readable.lines(source)
    match = _ALLOW.search(lines[source.line - 1]) if 0 < source.line <= len(lines) else None
    for name in match[1].split(",") if match else ():
        yield Allow(source.file, source.line, name.strip().replace("-", "_"))


@define(eq=False)
class WrittenComments:
    """The comments of a program's text, found by the line that they are on and by the name of its instruction."""

    comments: Sequence[TextComment]
    _of_line: dict[tuple[str, int], list[TextComment]] = field(factory=dict, init=False)
    _of_name: dict[str, list[TextComment]] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        for each in self.comments:
            self._of_line.setdefault((each.file, each.line), []).append(each)
            if each.instruction:
                self._of_name.setdefault(each.instruction, []).append(each)

    def allows(self, issue: Issue) -> Iterator[Allow]:
        """The comments on the line of an issue, or on a line of one of its instructions."""
        source = issue.source
        found = self._of_line.get((source.file, source.line), []) if type(source) is TextSource else []
        for each in dict.fromkeys(
            [*found, *(one for name in issue.instructions for one in self._of_name.get(name, []))]
        ):
            yield from _allows_of(each)


def _allows_of(comment: TextComment) -> Iterator[Allow]:
    return (Allow(comment.file, comment.line, rule, "//") for rule in comment.rules)


def apply_comments(
    issues: Iterable[Issue], sources: Iterable[Source], readable: Readable, written: Sequence[TextComment] = ()
) -> tuple[list[Issue], int]:
    """The issues that no comment allows, with one for each comment that allows none; and the number that is allowed.

    `sources` are the lines of the program's instructions: only comments on these are known to be about the program.
    `written` are the comments of the program's text.
    """
    left, used, allowed = [], set[Allow](), 0
    of_text = WrittenComments(written)
    for each in issues:
        found = [] if each.source is None else [*allows_on(each.source, readable)]
        matching = [allow for allow in (*found, *of_text.allows(each)) if allow.rule == each.rule]
        used.update(matching)
        allowed += bool(matching)
        if not matching:
            left.append(each)
    of_lines = ((source, allow) for source in sources for allow in allows_on(source, readable))
    in_text = ((TextSource(each.file, each.line, ""), allow) for each in written for allow in _allows_of(each))
    seen: set[Allow] = set()
    for source, allow in (*of_lines, *in_text):
        if allow not in used and allow not in seen:
            seen.add(allow)
            left.append(_unneeded(allow, source))
    return left, allowed


def _unneeded(allow: Allow, source: Source) -> Issue:
    comment = f"`{allow.mark} xbuild: allow {allow.rule}`"
    reason = (
        f"{comment} allows nothing: the rule reports nothing on this line"
        if allow.rule in RULES
        else f"{comment} names no rule; the rules are {', '.join(RULES)}"
    )
    return Issue(UNNEEDED, "note", reason, source, fix="remove the comment", facts={"bytes": 0, "seconds": 0.0})
