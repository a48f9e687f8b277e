"""Candidates for completion in shells: programs in files, words, and names of instructions.

Files of Python are parsed and not run, so that the Tab key has no effect of theirs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from os import environ
from pathlib import Path

import click
from click.shell_completion import CompletionItem

_MOST_BYTES = 1 << 26
"""The size of the largest file that is read for completion."""

_NAME = re.compile(r"^\s*(?:ROOT )?%?([A-Za-z_][\w.-]*) = ", re.MULTILINE)


def targets(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Files, which the shell itself completes; behind FILE.py: the functions and names of the file."""
    file, colon, begun = typed.partition(".py:")
    if not colon:
        return [CompletionItem(typed, type="file")]
    return [CompletionItem(f"{file}.py:{name}") for name in _defined(Path(f"{file}.py")) if name.startswith(begun)]


def _defined(file: Path) -> Iterator[str]:
    """The names of a file of Python that may be programs: functions without needed arguments, and variables."""
    try:
        body = ast.parse(_text(file)).body
    except SyntaxError:
        return
    for each in body:
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
            if len(each.args.args) <= len(each.args.defaults) or each.decorator_list:
                yield each.name
        elif isinstance(each, ast.Assign):
            yield from (to.id for to in each.targets if isinstance(to, ast.Name) and not to.id.startswith("_"))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace") if file.stat().st_size <= _MOST_BYTES else ""
    except OSError:
        return ""


def instructions(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """The names of instructions in the texts of the target, or of the program of a trace."""
    typed_words = environ.get("COMP_LINE", environ.get("COMP_WORDS", "")).split()
    files = [file for word in typed_words for file in _texts(Path(word))]
    names = dict.fromkeys(name for file in files for name in _NAME.findall(_text(file)))
    return [CompletionItem(name) for name in names if name.startswith(typed)]


def _texts(place: Path) -> list[Path]:
    """The HLO texts that a word of the command line names: a file, or those of a folder."""
    if place.suffix in (".hlo", ".txt"):
        return [place]
    return sorted(place.glob("*.hlo")) if place.is_dir() else []


def words(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Words that `explain` knows, and targets."""
    from ...core.op import OPS
    from ...reference.concepts import spellings
    from ...reference.explanations import EXPLANATIONS
    from ...reference.op_names import NAMES

    known = dict.fromkeys([*(NAMES[opcode].spelling for opcode in OPS), *spellings(), *EXPLANATIONS])
    found = [CompletionItem(word) for word in known if typed and word.startswith(typed) and " " not in word]
    return found if found and "/" not in typed else targets(context, parameter, typed)
