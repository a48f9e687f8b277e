"""Write three lectures to a folder, as notebooks, speaker's notes and pictures: `python -m examples.lecture DIR`."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from typing import Any

from attrs import define, field

import xbuild as xb
from xbuild.files.arrays import replacing
from xbuild.learning.cells import Cell, cells_of, notebook, play
from xbuild.learning.lesson import Question
from xbuild.learning.lesson import session as lesson_session

HERE = Path(__file__).parent
LECTURES = ("collectives", "sharding", "deadlocks")


@define
class Pictures:
    """A session that draws what a lecture shows as SVG; its questions are for the audience."""

    drawn: list[str] = field(factory=list)

    def ask(self, question: Question) -> None:
        """Leave the answer to the audience."""

    def show(self, thing: Any) -> None:
        self.drawn.append(str(xb.viz(thing, "svg", theme="light")))


def cells(name: str) -> list[Cell]:
    return cells_of((HERE / f"{name}.py").read_text(encoding="utf-8"))


def pictures(name: str) -> list[str]:
    """The pictures of a lecture, in order."""
    session = Pictures()
    with lesson_session(session), contextlib.redirect_stdout(io.StringIO()):
        play(HERE / f"{name}.py", cells(name), lambda cell: None)
    return session.drawn


def notes(name: str) -> str:
    """The speaker's notes under the headings of the slides, with the answers to the questions."""
    parts = [
        cell.text if cell.kind != "prose" else cell.text.partition("\n")[0]
        for cell in cells(name)
        if _is_in_notes(cell)
    ]
    return "\n\n".join(parts) + "\n"


def _is_in_notes(cell: Cell) -> bool:
    return cell.kind in ("notes", "rule") or (cell.kind == "prose" and cell.text.startswith("#"))


def write(into: Path) -> list[Path]:
    """Write all lectures; return the files."""
    into.mkdir(parents=True, exist_ok=True)
    files = {}
    for name in LECTURES:
        files[f"{name}.ipynb"] = notebook(cells(name))
        files[f"{name}_notes.md"] = notes(name)
        files |= {f"{name}_{number}.svg": svg for number, svg in enumerate(pictures(name), 1)}
    for name, text in files.items():
        with replacing(into / name) as file:
            file.write(text.encode())
    return [into / name for name in files]


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit("python -m examples.lecture DIR writes notebooks, notes and pictures to DIR")
    for path in write(Path(sys.argv[1])):
        print(path)


if __name__ == "__main__":
    main()
