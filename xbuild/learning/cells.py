"""Files in percent format: their cells of prose and code, which run one after another or become a notebook."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from attrs import frozen

from ..files.arrays import read_text

_DIRECTIONS = frozenset({"ask", "show"})
_CLAIMS = frozenset({"about_xbuild", "chosen", "hangs_on_xla", "on_jax", "on_stablehlo", "on_xla"})


@frozen
class Cell:
    """A cell: `prose`, a `rule` to read after the preceding question, `notes` for a speaker, or `code`.

    `line` is the number of the cell's first line in the file.
    """

    kind: Literal["prose", "rule", "notes", "code"]
    text: str
    line: int

    @property
    def code_to_read(self) -> str:
        """The code without the calls of ask, show and claims, and without their import."""
        return _without_gaps(self._lines_without(_directs_lesson))

    @property
    def code_to_edit(self) -> list[str]:
        """The code before the first question, and for each question a call of `run_program` with the code after it.

        Claims and the import of the functions that direct a lesson are left out.
        """
        asks = [node for node in ast.parse(self.text).body if _call_statement(node) == "ask"]
        lines = self._lines_without(lambda node: _directs_lesson(node) and _call_statement(node) != "show")
        ends = [node.end_lineno or 0 for node in asks]
        begins = [node.lineno - 1 for node in asks]
        runs = ["", *(_run_text(self.text, node) for node in asks)]
        return [
            "\n".join(filter(None, [run, _without_gaps(lines[first:last])]))
            for run, first, last in zip(runs, [0, *ends], [*begins, len(lines)], strict=True)
        ]

    def _lines_without(self, is_removed: Callable[[ast.stmt], bool]) -> list[str]:
        """The lines of the code; those of some statements are empty."""
        lines = [line.removesuffix("  # fmt: skip") for line in self.text.split("\n")]
        for node in ast.parse(self.text).body:
            if is_removed(node):
                lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or 0) - node.lineno + 1)
        return lines

    @property
    def questions(self) -> int:
        """The number of calls of `ask` in the code."""
        return self.kind == "code" and sum(_call_statement(node) == "ask" for node in ast.parse(self.text).body)

    def run(self, file: str, space: dict[str, Any]) -> None:
        """Run the code in a namespace; messages have the line numbers of the file."""
        exec(compile("\n" * (self.line - 1) + self.text, file, "exec"), space)


def _without_gaps(lines: list[str]) -> str:
    """Join lines, and reduce several empty lines to one."""
    joined = [line for number, line in enumerate(lines) if line.strip() or (number and lines[number - 1].strip())]
    return "\n".join(joined).strip("\n")


def _directs_lesson(node: ast.stmt) -> bool:
    """Whether a statement asks, shows or states a claim, and so is not part of the program of the lesson."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "xbuild.learning"
    last = node.body[-1] if isinstance(node, ast.FunctionDef) else node
    if isinstance(last, ast.Assign | ast.Return):
        return last.value is not None and _called_function(last.value) in _CLAIMS
    return _call_statement(node) in _DIRECTIONS


def _call_statement(node: ast.stmt) -> str:
    """The name of the function that a statement calls; "" if the statement is more than a call."""
    return _called_function(node.value) if isinstance(node, ast.Expr) else ""


def _called_function(node: ast.expr) -> str:
    """The name of the function that an expression calls; "" if it is not a call of a named function."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _run_text(text: str, node: ast.stmt) -> str:
    """The call of `run_program` for a call of `ask`, with its inputs; "" if the answer is a constant."""
    assert isinstance(node, ast.Expr)
    assert isinstance(node.value, ast.Call)
    program = node.value.args[2]
    if isinstance(program, ast.Lambda) and isinstance(program.body, ast.Constant):
        return ""
    parts = [ast.get_source_segment(text, argument) or "" for argument in node.value.args[2:]]
    parts += [
        f"of={ast.get_source_segment(text, keyword.value)}" for keyword in node.value.keywords if keyword.arg == "of"
    ]
    return f"run_program({', '.join(parts)})"


def cells_of(text: str) -> list[Cell]:
    """The cells of a file in percent format."""
    cells, head, lines, first = list[Cell](), "", list[str](), 1
    for number, line in enumerate([*text.split("\n"), "# %%"], 1):
        if not line.startswith("# %%"):
            lines.append(line)
            continue
        if any(line.strip() for line in lines):
            cells.extend(_cells_below(head, lines, first))
        head, lines, first = line, [], number + 1
    return cells


def _cells_below(head: str, lines: list[str], first: int) -> Iterator[Cell]:
    """The cell below a head; a new section after a rule becomes a cell of prose."""
    if "[markdown]" not in head:
        while not lines[0].strip():
            lines, first = lines[1:], first + 1
        yield Cell("code", "\n".join(lines).rstrip(), first)
        return
    text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines).strip()
    word = head.split()[-1]
    if word != "rule":
        yield Cell("notes" if word == "notes" else "prose", text, first)
        return
    rule, heading, section = text.partition("\n## ")
    yield Cell("rule", rule.strip(), first)
    if heading:
        yield Cell("prose", f"## {section}", first)


def title_of(cells: list[Cell]) -> str:
    """The first heading."""
    return next((each.text.partition("\n")[0].lstrip("# ") for each in cells if each.kind == "prose"), "")


def play(path: Path, cells: list[Cell], before: Callable[[Cell], None]) -> dict[str, Any]:
    """Run all cells in one namespace and return it; call `before` with each cell before it runs."""
    space: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    for cell in cells:
        before(cell)
        if cell.kind == "code":
            cell.run(str(path), space)
    return space


_INSTALL = """# Install xbuild if this notebook service lacks it.
try:
    import xbuild
except ModuleNotFoundError:
    %pip install --quiet xbuild-hlo"""


def notebook(cells: list[Cell]) -> str:
    """The cells as a Jupyter notebook without speaker's notes; rules stay folded until the reader opens them.

    The first cell installs xbuild where it is missing, as in hosted notebook services.
    """
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    facts = {"kernelspec": kernel, "language_info": {"name": "python"}}
    book = {
        "cells": [*_notebook_cells([Cell("code", _INSTALL, 1), *cells])],
        "metadata": facts,
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def _notebook_cells(cells: list[Cell]) -> Iterator[dict[str, Any]]:
    for number, cell in enumerate(cell for cell in cells if cell.kind != "notes"):
        text = cell.text
        if cell.kind == "rule":
            text = f"<details><summary>Why (open this after you answer)</summary>\n\n{text}\n\n</details>"
        entry: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
        if cell.kind == "code":
            yield {"cell_type": "code", "execution_count": None, "outputs": [], **entry}
        else:
            yield {"cell_type": "markdown", **entry}


_MOST_BYTES = 1 << 26
"""The size of the largest learner's file that is read; a notebook includes its pictures."""


def read_cells_text(path: Path) -> str:
    """The text of a file in percent format; a notebook's code cells are converted to that format."""
    text = read_text(path, _MOST_BYTES).decode("utf-8")
    if path.suffix != ".ipynb":
        return text
    cells = json.loads(text)["cells"]
    code = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return "\n".join("# %%\n" + _MAGIC.sub(r"\1pass", cell) for cell in code)


_MAGIC = re.compile(r"^([ \t]*)[%!]\w.*$", re.MULTILINE)
"""A line that only a notebook understands, such as %pip."""
