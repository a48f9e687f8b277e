"""The notebook: its cells run as they stand, and the file that is kept has them, with what they print and draw."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="notebooks want nbformat and nbclient")
pytest.importorskip("nbclient", reason="notebooks want nbformat and nbclient")
pytest.importorskip("ipykernel", reason="notebooks want a kernel")

from examples.notebook.__main__ import CELLS, HERE, executed, notebook  # noqa: E402


def test_it_runs_and_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    book = executed(notebook(CELLS.read_text(encoding="utf-8")))
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    texts = "".join(
        output.get("text", "") for output in outputs if output.output_type == "stream" and output.name == "stdout"
    )
    assert "HloModule share" in texts
    assert "dimension_mismatch" in texts
    assert "deadlock" in texts
    assert "[0.  1.5 3.  4.5]" in texts
    shown = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert any("<svg" in html for html in shown)
    assert any(html.startswith("<iframe") and "srcdoc=" in html for html in shown)


def test_the_kept_file_has_the_same_cells() -> None:
    kept = nbformat.read(HERE / "tour.ipynb", as_version=4)
    fresh = notebook(CELLS.read_text(encoding="utf-8"))
    assert [cell.source for cell in kept.cells] == [cell.source for cell in fresh.cells], "python -m examples.notebook"


def test_the_step_page_in_the_kept_file_has_its_data() -> None:
    kept = nbformat.read(HERE / "tour.ipynb", as_version=4)
    outputs = [output for cell in kept.cells if cell.cell_type == "code" for output in cell.outputs]
    frames = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    pages = [html.unescape(each.partition('srcdoc="')[2]) for each in frames if each.startswith("<iframe")]
    texts = [re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL) for page in pages]
    run, stuck = (json.loads(text) for (text,) in texts)
    assert (run["title"], run["stop"]) == ("share", None)
    assert run["spots"][0]["w"][0].startswith("tour.py:")
    assert [each["cause"] for each in stuck["stop"]["devices"]] == [False, True]
