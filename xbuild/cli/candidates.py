"""Candidates for shell completion: programs in files, words, and names of instructions.

Python files are parsed and never run, so that pressing Tab has no side effects.

Sections:

    Candidates
    The command line up to the cursor, as the shell passes it
"""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Iterator
from itertools import islice
from os import environ
from pathlib import Path

import click
from attrs import frozen
from click.shell_completion import CompletionItem

from ..files.arrays import ArchiveError, read_text

# ----------------------------------------------------------------------------
# Candidates

MOST_BYTES = 1 << 20
"""The size of the largest file that is read for completion."""

MOST_FILES = 64
"""How many HLO files of a folder are read for completion, among its first ten times as many entries."""

_NAME = re.compile(r"^[ \t]*+(?:ROOT )?%?([A-Za-z_][\w.-]*+) = ", re.MULTILINE)


def targets(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Files, which the shell itself completes; after FILE.py: the functions and variables of the file."""
    file, colon, prefix = typed.rpartition(".py:")
    if not colon:
        return [CompletionItem(typed, type="file")]
    names = _program_names(Path(f"{file}.py"))
    return [CompletionItem(f"{file}.py:{name}") for name in names if name.startswith(prefix)]


def _program_names(file: Path) -> Iterator[str]:
    """The names in a Python file that may be programs: functions without required arguments, and variables."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about questionable literals in the file
            body = ast.parse(_read_small(file)).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # the parser's, for deeply nested parentheses
        return
    for statement in body:
        if isinstance(statement, ast.FunctionDef) and not statement.name.startswith("_"):
            if len(statement.args.args) <= len(statement.args.defaults) or statement.decorator_list:
                yield statement.name
        elif isinstance(statement, ast.Assign):
            yield from (to.id for to in statement.targets if isinstance(to, ast.Name) and not to.id.startswith("_"))


def _read_small(file: Path) -> str:
    """The text of a regular file of at most MOST_BYTES; empty for any other file."""
    try:
        return read_text(file, MOST_BYTES).decode("utf-8", "replace")
    except ArchiveError:
        return ""


def instructions(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """The names of the instructions of the target, or of the program of a trace."""
    names: dict[str, None] = {}
    left = MOST_BYTES
    for file in (file for word in typed_line().words[1:] for file in _hlo_files(Path(word))):
        text = _read_small(file)
        left -= len(text)
        if left < 0:
            break
        names |= dict.fromkeys(_NAME.findall(text))
    return [CompletionItem(name) for name in names if name.startswith(typed)]


def _hlo_files(path: Path) -> list[Path]:
    """The HLO files that a word of the command line names: one file, or those of a folder."""
    if path.suffix in (".hlo", ".txt"):
        return [path]
    try:
        with os.scandir(path) as entries:
            names = sorted(entry.name for entry in islice(entries, 10 * MOST_FILES) if entry.name.endswith(".hlo"))
    except (OSError, ValueError):  # not a folder, or not the name of a file
        return []
    return [path / name for name in names[:MOST_FILES]]


def words(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Words that `explain` knows, and targets."""
    from ..core.op import OPS
    from ..reference.concepts import spellings
    from ..reference.explanations import EXPLANATIONS
    from ..reference.op_names import NAMES

    known = dict.fromkeys([*(NAMES[opcode].spelling for opcode in OPS), *spellings(), *EXPLANATIONS])
    matches = [CompletionItem(word) for word in known if typed and word.startswith(typed) and " " not in word]
    return matches if matches and "/" not in typed else targets(context, parameter, typed)


# ----------------------------------------------------------------------------
# The command line up to the cursor, as the shell passes it

LINE = "COMP_LINE"
"""The environment variable in which the completion scripts pass the line."""

_UNSAFE = {"": r"[^\w@%+=:,./-]", '"': r'[$`"\\]'}


@frozen
class TypedLine:
    """The complete words without their quotes, the word at the cursor, and the quotation mark that is open there."""

    words: tuple[str, ...]
    last: str
    quote: str

    def quoted(self, more: str) -> str:
        """Text that continues the last word, quoted as a POSIX shell needs it there."""
        if self.quote == "'":
            return more.replace("'", r"'\''")
        return re.sub(_UNSAFE[self.quote], r"\\\g<0>", more)


def typed_line() -> TypedLine:
    """The line that the shell passes."""
    return split_line(environ.get(LINE, ""))


def split_line(line: str) -> TypedLine:
    r"""Split a line up to the cursor by the rules of POSIX shells, without expansions or substitutions.

    >>> split_line(r"xbuild check a\ $(b).py:")
    TypedLine(words=('xbuild', 'check'), last='a $(b).py:', quote='')
    """
    words: list[str] = []
    word: list[str] | None = None
    quote, letters = "", iter(line)
    for letter in letters:
        if not quote and letter in " \t\n":
            words += [] if word is None else ["".join(word)]
            word = None
            continue
        word = [] if word is None else word
        if letter == quote or (not quote and letter in "'\""):
            quote = "" if quote else letter
        elif letter == "\\" and quote != "'":
            after = next(letters, "")
            word.append(letter * (quote == '"' and after not in '$`"\\\n') + after * (after != "\n"))
        else:
            word.append(letter)
    return TypedLine(tuple(words), "".join(word or ()), quote)
