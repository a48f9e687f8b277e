"""Files in percent format: their cells of prose and code, played one after the other, and as a notebook."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from attrs import frozen

_DIRECTED = frozenset({"ask", "show"})
_CLAIMS = frozenset({"about_xbuild", "chosen", "hangs_on_xla", "on_jax", "on_stablehlo", "on_xla"})


@frozen
class Cell:
    """A cell: `prose`, a `rule` (to be read after the question before it), `notes` of a speaker, or `code`.

    `line` is the number of its first line in the file.
    """

    kind: Literal["prose", "rule", "notes", "code"]
    text: str
    line: int

    @property
    def code_to_read(self) -> str:
        """The code without the calls that ask, show and claim, and without the import of these."""
        lines = [line.removesuffix("  # fmt: skip") for line in self.text.split("\n")]
        for node in ast.parse(self.text).body:
            if _is_directed(node):
                lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or 0) - node.lineno + 1)
        return _without_gaps(lines)

    @property
    def questions(self) -> int:
        """How many calls of `ask` stand in the code."""
        return self.kind == "code" and sum(_called(node) == "ask" for node in ast.parse(self.text).body)

    def run(self, file: str, space: dict[str, Any]) -> None:
        """Run the code in a namespace; places in messages are those of the file."""
        exec(compile("\n" * (self.line - 1) + self.text, file, "exec"), space)


def _without_gaps(lines: list[str]) -> str:
    """Lines joined, with at most one empty line between two others."""
    kept = [line for number, line in enumerate(lines) if line.strip() or (number and lines[number - 1].strip())]
    return "\n".join(kept).strip("\n")


def _is_directed(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "xbuild.learning"
    last = node.body[-1] if isinstance(node, ast.FunctionDef) else node
    if isinstance(last, ast.Assign | ast.Return):
        return last.value is not None and _named(last.value) in _CLAIMS
    return _called(node) in _DIRECTED


def _called(node: ast.stmt) -> str:
    """The name of the function that a statement calls, if it is a call and no more."""
    return _named(node.value) if isinstance(node, ast.Expr) else ""


def _named(node: ast.expr) -> str:
    """The name of the function that an expression calls."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def cells_of(text: str) -> list[Cell]:
    """The cells of a file in percent format."""
    found, head, kept, first = list[Cell](), "", list[str](), 1
    for number, line in enumerate([*text.split("\n"), "# %%"], 1):
        if not line.startswith("# %%"):
            kept.append(line)
            continue
        if any(each.strip() for each in kept):
            found.extend(_cells(head, kept, first))
        head, kept, first = line, [], number + 1
    return found


def _cells(head: str, lines: list[str], first: int) -> Iterator[Cell]:
    """The cell under a head; a new section after a rule is a cell of prose."""
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
    """The words of the first heading."""
    return next((each.text.partition("\n")[0].lstrip("# ") for each in cells if each.kind == "prose"), "")


def play(path: Path, cells: list[Cell], before: Callable[[Cell], None]) -> dict[str, Any]:
    """Run all cells in one namespace; `before` is called with each cell first. Gives the namespace."""
    space: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    for cell in cells:
        before(cell)
        if cell.kind == "code":
            cell.run(str(path), space)
    return space


def notebook(cells: list[Cell]) -> str:
    """The cells as a Jupyter notebook, without a speaker's notes; rules are folded until the reader opens them."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    facts = {"kernelspec": kernel, "language_info": {"name": "python"}}
    book = {"cells": [*_entries(cells)], "metadata": facts, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def _entries(cells: list[Cell]) -> Iterator[dict[str, Any]]:
    for number, cell in enumerate(each for each in cells if each.kind != "notes"):
        text = cell.text
        if cell.kind == "rule":
            text = f"<details><summary>The rule (open it after your guess)</summary>\n\n{text}\n\n</details>"
        entry: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
        if cell.kind == "code":
            yield {"cell_type": "code", "execution_count": None, "outputs": [], **entry}
        else:
            yield {"cell_type": "markdown", **entry}


def text_of_file(path: Path) -> str:
    """The text of a file in percent format; of a notebook its code, a cell after the other."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    cells = json.loads(text)["cells"]
    return "\n".join("# %%\n" + "".join(each["source"]) for each in cells if each["cell_type"] == "code")
