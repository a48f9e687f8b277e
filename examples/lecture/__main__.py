"""Write eight lectures to a folder, as slides, notebooks, notes and pictures: `python -m examples.lecture DIR`.

A lecture is a file of cells with speaker's notes, or a list of lessons with a note for each of their headings.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field

import xbuild as xb
from shape_inference.escaping import filled, in_html, policy
from xbuild.files.arrays import replacing
from xbuild.learning import shelf
from xbuild.learning.cells import Cell, cells_of, notebook, play
from xbuild.learning.lesson import Question
from xbuild.learning.lesson import session as lesson_session
from xbuild.learning.page import code_html, inline_html, markdown_html, split_setup
from xbuild.traces import Trace

HERE = Path(__file__).parent
LECTURES = ("programs", "indices", "numbers", "control", "collectives", "sharding", "deadlocks", "gradients")

# ----------------------------------------------------------------------------
# Cells and notes


def cells(name: str) -> list[Cell]:
    if (path := HERE / f"{name}.py").exists():
        return cells_of(path.read_text(encoding="utf-8"))
    return [*_cells_of_lessons(tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8")))]


def _cells_of_lessons(lecture: dict[str, Any]) -> Iterator[Cell]:
    """A title, then the cells of each lesson; a note follows each heading."""
    yield Cell("prose", f"# {lecture['title']}\n\n{lecture['intro']}", 1)
    yield Cell("notes", lecture["notes"], 1)
    for part in lecture["lesson"]:
        lesson, remaining = shelf.entry("lessons", part["number"]), [*part["notes"]]
        for cell in lesson.cells:
            is_heading = cell.kind == "prose" and cell.text.startswith("#")
            text = cell.text.replace(f"# {lesson.number}. ", "## ", 1) if is_heading else cell.text
            yield Cell(cell.kind, text, cell.line)
            if is_heading:
                yield Cell("notes", remaining.pop(0), cell.line)
        assert not remaining, f"lesson {lesson.number} has fewer headings than notes"


def notes(name: str) -> str:
    """The speaker's notes under the headings of the slides, with the answers to the questions."""
    parts = [
        cell.text if cell.kind != "prose" else cell.text.partition("\n")[0]
        for cell in cells(name)
        if _is_in_notes(cell)
    ]
    return "\n\n".join(parts) + "\n"


def _is_in_notes(cell: Cell) -> bool:
    return cell.kind in ("notes", "rule") or _is_heading(cell)


def _is_heading(cell: Cell) -> bool:
    return cell.kind == "prose" and cell.text.startswith("#")


# ----------------------------------------------------------------------------
# Slides and pictures


@define
class Slides:
    """Writes a lecture as slides, one for each heading, and one for each answer; and draws what the lecture shows."""

    slides: list[list[str]] = field(factory=list)
    drawn: list[str] = field(factory=list)

    def ask(self, question: Question) -> None:
        """Write the question; the audience answers it."""
        choices = "".join(f"<li>{in_html(choice)}</li>" for choice in question.choices)
        self.slides[-1].append(f'<p class="ask">{inline_html(question.words)}</p>{choices and f"<ol>{choices}</ol>"}')

    def show(self, thing: Any) -> None:
        """Draw a program or a verdict; of a run, the lanes of its devices."""
        if isinstance(thing, Trace):
            thing = xb.check(thing.program)
        self.drawn.append(str(xb.viz(thing, "svg", theme="light")))
        self.slides[-1].append(f'<div class="picture">{self.drawn[-1]}</div>')

    def cell(self, cell: Cell) -> None:
        if _is_heading(cell) or cell.kind == "rule":
            self.slides.append([])
        if cell.kind == "code":
            if code := split_setup(cell.code_to_read)[1]:
                self.slides[-1].append(f"<pre>{code_html(code)}</pre>")
        elif cell.kind != "notes":
            self.slides[-1].append(markdown_html(cell.text))


def draw(name: str) -> Slides:
    """The slides and pictures of a lecture."""
    written = Slides()
    with lesson_session(written), contextlib.redirect_stdout(io.StringIO()):
        play(HERE / f"{name}.py", cells(name), written.cell)
    return written


def slides(name: str, written: Sequence[Sequence[str]]) -> str:
    """The slides as one HTML page without a script: the keys that scroll a page turn them, and it prints."""
    body = "\n".join(f"<section>{''.join(parts)}</section>" for parts in written)
    parts = {"policy": policy(), "title": in_html(name.title()), "body": body}
    return filled((HERE / "slides.html").read_text(encoding="utf-8"), parts)


def write(into: Path) -> list[Path]:
    """Write all lectures; return the files."""
    into.mkdir(parents=True, exist_ok=True)
    files = {}
    for name in LECTURES:
        drawn = draw(name)
        files[f"{name}.html"] = slides(name, drawn.slides)
        files[f"{name}.ipynb"] = notebook(cells(name))
        files[f"{name}_notes.md"] = notes(name)
        files |= {f"{name}_{number}.svg": svg for number, svg in enumerate(drawn.drawn, 1)}
    for name, text in files.items():
        with replacing(into / name) as file:
            file.write(text.encode())
    return [into / name for name in files]


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit("python -m examples.lecture DIR writes slides, notebooks, notes and pictures to DIR")
    for path in write(Path(sys.argv[1])):
        print(path)


if __name__ == "__main__":
    main()
