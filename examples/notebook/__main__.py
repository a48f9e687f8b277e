"""Write the notebook from its cells, with their output: `python -m examples.notebook [OUT.ipynb]`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from examples.extras import wanted

with wanted("test"):
    import nbformat
    from nbclient import NotebookClient
    from nbformat import NotebookNode
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

HERE = Path(__file__).parent
CELLS = HERE / "tour.py"

_PLACES = re.compile(r"[\w./~-]*ipykernel_\d+/\d+\.py")
"""The temporary path of a cell's text in a kernel, which differs between machines and runs."""


def notebook(text: str) -> NotebookNode:
    """The cells of a file in percent format, without outputs."""
    cells = []
    for number, part in enumerate(text.split("# %%")[1:]):
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            cell = new_markdown_cell(
                "\n".join(line.removeprefix("#").removeprefix(" ") for line in body.strip().split("\n"))
            )
        else:
            cell = new_code_cell(body.strip())
        cell["id"] = f"cell-{number}"
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})


def executed(book: NotebookNode) -> NotebookNode:
    """The notebook with outputs; raises the exception of a cell that fails."""
    NotebookClient(book, timeout=120, kernel_name="python3").execute(cwd=str(HERE.parents[1]))
    for cell in book.cells:
        cell.get("metadata", {}).pop("execution", None)
    return book


def main() -> None:
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "tour.ipynb"
    book = executed(notebook(CELLS.read_text(encoding="utf-8")))
    nbformat.validate(book)
    out.write_text(_PLACES.sub("tour.py", nbformat.writes(book)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
