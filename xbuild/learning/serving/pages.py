"""The pages of the server: a list of everything, lessons and puzzles with editors, levels, pictures that move."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from attrs import define, field

from shape_inference.escaping import filled, in_html, in_json, policy

from ...game.levels import in_order
from ...pages import script_text
from .. import shelf
from ..cells import Cell
from ..lesson import Question
from ..moving import PICTURES, moving_page
from ..page import Additions, PageSession, code_html, lesson_page, markdown_html, split_setup
from ..page import asset as lesson_asset
from ..progress import Progress
from ..puzzle import score_text

_IMPORT = "from xbuild.learning import run_program, show"


@define(eq=False)
class Pages:
    """The pages, written when they are first asked for."""

    _written: dict[tuple[str, int], str] = field(factory=dict, init=False)
    _questions: dict[int, list[str]] = field(factory=dict, init=False)
    _lock: threading.RLock = field(factory=threading.RLock, init=False)

    def home(self, learner: Progress) -> str:
        """The lists of lessons, puzzles and levels, with the learner's progress."""
        lessons = (
            (f"lessons/{number}", entry.title, _answered(learner, entry))
            for number, entry in shelf.entries("lessons").items()
        )
        puzzles = (
            (f"puzzles/{number}", entry.title, _solved(learner, entry))
            for number, entry in shelf.entries("puzzles").items()
        )
        levels = ((f"game/{level.number}", level.title.partition(". ")[2], "") for level in in_order())
        pictures = ((f"pictures/{number}", each.title, "") for number, each in enumerate(PICTURES.values(), 1))
        body = (
            "<h1>Learn XLA</h1><p>A lesson asks what a program computes, runs it, and says why. A puzzle is a program "
            "to write. In the game, you are the scheduler, and try to make a program hang. On a picture that moves, "
            "you change a setting and see what follows.</p>"
            f"{_list('Lessons', lessons)}{_list('Puzzles', puzzles)}{_list('Game', levels)}"
            f"{_list('Pictures that move', pictures)}"
        )
        trouble = f'<p class="off">{in_html(learner.trouble)}</p>' if learner.trouble else ""
        return _fill("Learn XLA", trouble + body, {}, links="")

    def lesson(self, entry: shelf.ShelfEntry) -> str:
        """The page of a lesson; each of its cells of code has an editor."""
        return self._once("lessons", entry.number, lambda: self._write_lesson(entry))

    def _write_lesson(self, entry: shelf.ShelfEntry) -> str:
        written = _ServedSession()
        text = lesson_page(entry, written, Additions(_links("lessons", entry.number), _STYLE, _asset("serve.js")))
        self._questions[entry.number] = written.words
        return text

    def questions(self, entry: shelf.ShelfEntry) -> list[str]:
        """The words of the questions of a lesson, in their order."""
        self.lesson(entry)
        return self._questions[entry.number]

    def puzzle(self, entry: shelf.ShelfEntry) -> str:
        """The page of a puzzle: its specification, and an editor for the solution."""
        return self._once("puzzles", entry.number, lambda: _write_puzzle(entry))

    def level(self, number: int) -> str:
        """The page of a level of the game."""
        level = next(level for level in in_order() if level.number == number)
        return self._once(
            "game", number, lambda: level.page(f"<style>{_asset('links.css')}</style>{_links('game', number)}")
        )

    def picture(self, number: int) -> str:
        """The page of a picture that moves."""
        top = f"<style>{_asset('links.css')}</style>{_links('pictures', number)}"
        return self._once("pictures", number, lambda: moving_page([*PICTURES][number - 1], top))

    def _once(self, kind: str, number: int, write: Callable[[], str]) -> str:
        """A page, written by one thread at a time: a lesson that is written takes over stdout."""
        with self._lock:
            if (kind, number) not in self._written:
                self._written[kind, number] = write()
            return self._written[kind, number]


def _answered(learner: Progress, entry: shelf.ShelfEntry) -> str:
    done, total = len(learner.answered.get(entry.name, ())), entry.number_of_questions
    return "done" if done >= total else f"{done} of {total}" if done else ""


def _solved(learner: Progress, entry: shelf.ShelfEntry) -> str:
    if (score := learner.solved.get(entry.name)) is None:
        return ""
    best = shelf.puzzle_of(entry.path).best
    text = score_text({name: score[name] for name in best if name in score})
    return f"solved: {text}" if text else "solved"


def _list(title: str, rows: Iterable[tuple[str, str, str]]) -> str:
    items = "".join(
        f'<li><a href="{in_html(path)}">{in_html(name)}</a>{mark and f" <span class=mark>{in_html(mark)}</span>"}</li>'
        for path, name, mark in rows
    )
    return f"<h2>{title}</h2><ol>{items}</ol>"


def _links(kind: str, number: int) -> str:
    """The links to the list of everything, and to the lesson, puzzle, level or picture before and after."""
    if kind == "pictures":
        known = [*range(1, len(PICTURES) + 1)]
    else:
        known = [level.number for level in in_order()] if kind == "game" else [*shelf.entries(kind)]
    neighbours = ((number - 1, "Previous"), (number + 1, "Next"))
    links = "".join(f'<a href="{other}">{words}</a>' for other, words in neighbours if other in known)
    return f'<nav class="links" aria-label="pages"><a href="../">All lessons and puzzles</a>{links}</nav>'


# ----------------------------------------------------------------------------
# Editors


@define
class _ServedSession(PageSession):
    """Writes a lesson whose cells can be edited; what a cell printed and showed is marked with the cell's number."""

    words: list[str] = field(factory=list)
    editors: int = 0
    _pieces: list[str] = field(factory=list)

    def cell(self, cell: Cell) -> None:
        if cell.kind != "code":
            super().cell(cell)
            return
        self.flush()
        first, *self._pieces = cell.code_to_edit
        setup, code = split_setup(first)
        if not self.editors:
            self.parts.append(KEYS)
            setup = f"{setup}\n{_IMPORT}".strip()
        self.editors += 1
        name = f"cell {self.editors}"
        if setup:
            self.parts.append(
                f'<details class="setup"><summary>Set-up</summary><pre data-setup="{self.editors}">{code_html(setup)}'
                "</pre></details>"
            )
        self.parts.append(editor_html(name, code, "Run"))

    def ask(self, question: Question) -> None:
        super().ask(question)
        self.words.append(question.words)
        self.questions[-1] |= {"editor": self.editors, "piece": self._pieces.pop(0) if self._pieces else ""}

    def show(self, thing: Any) -> None:
        self.flush()
        self._mark(lambda: PageSession.show(self, thing))

    def flush(self) -> None:
        self._mark(lambda: PageSession.flush(self))

    def _mark(self, write: Callable[[], None]) -> None:
        """Put what a function writes into an element that the output of a later run replaces."""
        count = len(self.parts)
        write()
        self.parts[count:] = [f'<div data-from="{self.editors}">{part}</div>' for part in self.parts[count:]]


def editor_html(name: str, code: str, action: str) -> str:
    """An editor: the code in a text field over its coloured copy, a button that runs it, and the output.

    An editor without code is hidden until it gets some.
    """
    return (
        f'<section class="editor" data-name="{name}" aria-label="{name}"{"" if code else " data-empty"}>'
        f'<div class="layers"><pre aria-hidden="true"></pre><textarea aria-label="code of {name}" '
        'aria-describedby="keys" spellcheck="false" autocapitalize="off" autocomplete="off" wrap="off">'
        f"\n{in_html(code)}</textarea></div>"
        f'<div class="row"><button type="button" data-run aria-label="{action}: {name}">{action}</button>'
        f'<button type="button" data-reset aria-label="Reset: {name}">Reset</button>'
        '<span class="status" role="status"></span></div>'
        '<div class="out"></div></section>'
    )


KEYS = (
    '<p id="keys" class="claim">In an editor, Ctrl+Enter runs the code. When you have typed, Tab indents; Escape and '
    "then Tab leaves the editor.</p>"
)


def _write_puzzle(entry: shelf.ShelfEntry) -> str:
    puzzle = shelf.puzzle_of(entry.path)
    cells = entry.cells
    stub = next(cell for cell in reversed(cells) if cell.kind == "code").text.partition("\n\n\nif __name__")[0]
    setup, code = split_setup(next(cell for cell in cells if cell.kind == "code").text)
    code = code.partition("\n\n\npuzzle = Puzzle(")[0]
    imports = "\n".join(line for line in setup.split("\n") if line.startswith(("import numpy", "import xbuild")))
    parts = [markdown_html(cell.text) for cell in cells if cell.kind == "prose"]
    parts.append(f"<pre>{code_html(code)}</pre>")
    arguments = ", ".join(f"<code>{shape}</code>" for shape in puzzle.shapes) if puzzle.program is None else ""
    devices = f" The program runs on {puzzle.devices} devices." if puzzle.devices > 1 else ""
    if arguments or devices:
        parts.append(f"<p>{arguments and f'The solution takes {arguments}.'}{devices}</p>")
    if puzzle.limits:
        parts.append(f"<p>At most {in_html(score_text(puzzle.limits))}.</p>")
    if puzzle.allowed:
        ops = ", ".join(f"<code>{op}</code>" for op in puzzle.allowed.split())
        parts.append(f"<p>Allowed ops: {ops}; parameters, constants and tuples do not count.</p>")
    if puzzle.best:
        parts.append(f"<p>The best known solution: {in_html(score_text(puzzle.best))}.</p>")
    parts += [KEYS, editor_html("solution", f"{imports}\n\n\n{stub}\n", "Run and grade")]
    title = f"{entry.number}. {entry.title}"
    return _fill(title, "".join(parts), {"draft": entry.name}, _links("puzzles", entry.number))


def _fill(title: str, body: str, data: dict[str, Any], links: str) -> str:
    script = _asset("serve.js")
    parts = {
        "policy": policy(script, script_text(), is_served=True),
        "title": in_html(title),
        "style": lesson_asset("lesson.css") + _STYLE,
        "links": links,
        "body": body,
        "data": in_json(data),
        "script": script,
    }
    return filled(_asset("served.html"), parts)


@cache
def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


_STYLE = _asset("serve.css") + _asset("links.css")
