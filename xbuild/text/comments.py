"""Comments `// xbuild: allow RULE` in a text: readers keep them with the module, because its instructions have none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from attrs import frozen

ALLOWED = "allow_comments"
"""The annotation of a module with its comments; printing omits it."""

_MARK = "xbuild:"
_COMMENT = re.compile(r"//\s*xbuild:\s*allow\s+([\w-]+(?:\s*,\s*[\w-]+)*)")
_NAMED = re.compile(r"\s*(?:ROOT\s+)?%?([A-Za-z_][\w.$-]*)\s+=")


@frozen
class TextComment:
    """A comment on a line of a text: the rules that it allows, and the name of the HLO instruction on that line.

    The name is empty if the line has none, as a line that is only a comment.
    """

    file: str
    line: int
    rules: tuple[str, ...]
    instruction: str


def with_comments(annotations: Mapping[str, Any], text: str, file: str) -> Mapping[str, Any]:
    """The annotations of a module with the comments of its text, if it has any.

    An instruction may be on several lines; a comment on any of them is the instruction's.
    """
    if _MARK not in text:
        return annotations
    found = []
    name = ""
    for number, line in enumerate(text.split("\n"), 1):
        named = _NAMED.match(line)
        if named or line.lstrip().startswith("}"):
            name = named[1] if named else ""
        comment = _COMMENT.search(line)
        if comment:
            rules = tuple(each.strip().replace("-", "_") for each in comment[1].split(","))
            is_alone = line.lstrip().startswith("//")
            found.append(TextComment(file, number, rules, "" if is_alone else name))
    return {**annotations, ALLOWED: tuple(found)} if found else annotations
