"""The lessons and puzzles on the site: a list, the offline page of each lesson, and what each puzzle asks for."""

from __future__ import annotations

from xbuild.learning import shelf
from xbuild.learning.cells import notebook
from xbuild.learning.page import lesson_page

from .markdown import escaped, fenced, table
from .staging import Stage

_LESSONS = """# Lessons

Each lesson asks before it shows, runs what it asks about, and says why. It explains typical wrong answers, gives hints,
and asks missed questions again. The pages need no network, and keep what is answered to themselves. `xbuild learn 7`
takes the same lesson in the terminal, and `xbuild learn --serve` opens all of them in the browser with editors. The
notebooks open in any notebook service, such as Colab ("Upload notebook") or JupyterLab; their first cell installs
xbuild: [how it works, and what counts as passed](learning.md).
"""

_PUZZLES = """# Puzzles

`xbuild puzzle --copy .` copies the stubs; `xbuild puzzle 3 --check puzzles/03_one_hot.py` judges a solution by its
specification on random inputs, by the check for deadlock, and scores it by the cost of its program.
"""


def make(stage: Stage) -> None:
    """Stage both lists, and the pages of the lessons."""
    rows = []
    for number, entry in shelf.entries("lessons").items():
        name = entry.path.stem
        stage.text(f"_extra/lessons/{name}.html", lesson_page(entry))
        link = f'<a href="lessons/{name}.html">{escaped(entry.title)}</a>'
        rows.append((str(number), link, str(entry.number_of_questions), _notebook_link(stage, "lessons", entry)))
    stage.page("lessons", f"{_LESSONS}\n{table(('', 'lesson', 'questions', ''), rows)}")
    parts = [_PUZZLES]
    for number, entry in shelf.entries("puzzles").items():
        parts += [f"## {number}. {escaped(entry.title)}", _notebook_link(stage, "puzzles", entry)]
        parts.append(fenced(entry.path.read_text(encoding="utf-8"), "python"))
    stage.page("puzzles", "\n\n".join(parts))


def _notebook_link(stage: Stage, kind: str, entry: shelf.ShelfEntry) -> str:
    """Stage the notebook of a lesson or puzzle; returns the link to it."""
    name = f"{kind}/{entry.path.stem}.ipynb"
    stage.text(f"_extra/{name}", notebook(entry.cells))
    return f'<a href="{name}" download>notebook</a>'
