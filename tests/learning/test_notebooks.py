"""The notebooks of lessons and puzzles: valid, installable in a hosted service, and run by a kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.command_line import usage, xbuild
from xbuild.learning import shelf
from xbuild.learning.cells import notebook, read_cells_text

nbformat = pytest.importorskip("nbformat", reason="notebooks want nbformat and nbclient")
nbclient = pytest.importorskip("nbclient", reason="notebooks want nbformat and nbclient")
pytest.importorskip("ipykernel", reason="notebooks want a kernel")

ALL = [(kind, number) for kind in ("lessons", "puzzles") for number in shelf.entries(kind)]


@pytest.mark.parametrize(("kind", "number"), ALL)
def test_a_notebook_is_valid_and_begins_with_its_installation(kind: str, number: int) -> None:
    entry = shelf.entry(kind, number)
    book = nbformat.reads(notebook(entry.cells), as_version=4)
    nbformat.validate(book)
    assert book.metadata.kernelspec.name == "python3"
    first, second, *_ = book.cells
    assert first.cell_type == "code"
    assert first.source.endswith("except ModuleNotFoundError:\n    %pip install --quiet xbuild-hlo")
    assert second.source.startswith(f"# {number}. {entry.title}")
    assert all("/" not in each.get("source", "")[:1] for each in book.cells)
    assert [cell.source for cell in book.cells if cell.cell_type == "code"][1:] == [
        cell.text for cell in entry.cells if cell.kind == "code"
    ]


def test_a_notebook_is_read_without_its_magics(tmp_path: Path) -> None:
    file = tmp_path / "03_one_hot.ipynb"
    assert xbuild("puzzle", 3, "--notebook", "-o", file).stdout == f"wrote {file}: a notebook\n"
    assert "    pass\n" in read_cells_text(file)
    solved = shelf.solution_of(3).read_text().partition('"""\n\n')[2]
    book = json.loads(file.read_text())
    book["cells"][-1]["source"] = [solved, "\n\n%timeit 1\n!ls\n"]
    file.write_text(json.dumps(book))
    assert xbuild("puzzle", 3, "--check", file).stdout == "solved: 40 FLOPs (the best known)\n"
    assert "already exists" in usage(xbuild("puzzle", 3, "--notebook", "-o", file))
    assert "-o has no effect without --notebook" in usage(xbuild("puzzle", 3, "-o", file))
    assert "as in xbuild puzzle 7 --notebook" in usage(xbuild("puzzle", "--notebook"))


@pytest.mark.slow
def test_a_kernel_runs_a_lesson_and_a_puzzle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    text = notebook([*shelf.entry("lessons", 2).cells, *shelf.entry("puzzles", 3).cells])
    book = nbformat.reads(text.replace("    ...,", "    None,").replace(" ..., ", " None, "), as_version=4)
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    printed = "".join(output.get("text", "") for output in outputs)
    assert "the answer  [[1, 2, 3], [1, 2, 3]]" in printed
    assert "not solved yet: the solution is not filled in yet" in printed
    assert any("<svg" in output.data.get("text/html", "") for output in outputs if "data" in output)
