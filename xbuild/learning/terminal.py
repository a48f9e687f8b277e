"""A lesson in a terminal: prose, code, questions answered at the prompt; in colour where `rich` is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field

from ..stepping.face import Face, Piece
from .answers import shown
from .cells import Cell, play
from .lesson import Question, as_text, asked_in, lettered
from .progress import Progress
from .shelf import Entry

AGAIN = "Guess again; Enter shows it."


class Left(Exception):
    """The learner has left the lesson: the input is at its end."""


@define(eq=False)
class Lectern:
    """The session of a terminal: `read` gives a line of the learner, "" at the end of the input."""

    face: Face
    read: Callable[[], str]
    note: Callable[[str], None]
    right: int = field(default=0, init=False)
    asked: int = field(default=0, init=False)

    def ask(self, question: Question) -> None:
        """Ask until the answer is right or the learner gives up; gives the answer and who decides it."""
        self.asked += 1
        self.face.prose(Piece(f"\n? {question.words}", "title"))
        for line in lettered(question):
            self.face.prose(line)
        while (guess := self._line()) and not question.takes(guess):
            why = question.mismatch(guess)
            self.face.prose(Piece(f"  {why}. " if why else "  not so. ", "waits" if why else "bad"), AGAIN)
        if guess:
            self.right += 1
            self.note(question.words)
        self.face.prose(
            Piece("  right: " if guess else "  the answer: ", "good" if guess else "waits"), shown(question.truth)
        )
        self.face.prose(Piece(f"  {question.claim}", "dim"))

    def _line(self) -> str:
        self.face.out.write("> ")
        self.face.out.flush()
        line = self.read()
        if not line:
            raise Left
        return line.strip()

    def show(self, thing: Any) -> None:
        for line in as_text(thing).split("\n"):
            self.face.prose(Piece(f"    {line}", "name"))

    def cell(self, cell: Cell) -> None:
        """Write a cell: prose as it is, code indented."""
        if cell.kind == "code":
            self._code(cell.code_to_read)
        elif self.face.console is None:
            self.face.out.write(f"\n{cell.text}\n")
        else:
            from rich.markdown import Markdown
            from rich.theme import Theme

            with self.face.console.use_theme(Theme({"markdown.code": "bold cyan", "markdown.h2": "bold"})):
                self.face.console.print()
                self.face.console.print(Markdown(cell.text))

    def _code(self, code: str) -> None:
        if not code:
            return
        if self.face.console is None:
            self.face.out.write("\n" + "".join(f"    {line}".rstrip() + "\n" for line in code.split("\n")))
            return
        from rich.padding import Padding
        from rich.syntax import Syntax

        shown_code = Syntax(code, "python", background_color="default", theme="ansi_light", word_wrap=True)
        self.face.console.print(Padding(shown_code, (1, 0, 0, 4)))


def teach(entry: Entry, face: Face, read: Callable[[], str], kept: Progress) -> bool:
    """Go through a lesson; True where every question was answered rightly."""
    lectern = Lectern(face, read, lambda words: kept.note(entry.name, words))
    try:
        with asked_in(lectern):
            play(entry.path, entry.cells, lectern.cell)
    except Left:
        face.prose("\n", Piece(_left_after(lectern.right), "dim"))
        return False
    face.prose("\n", Piece(f"{lectern.right} of {lectern.asked} right", "title"))
    return lectern.right == lectern.asked


def _left_after(right: int) -> str:
    if not right:
        return "left before the first right answer; there is nothing to keep"
    return f"left after {right} right answer{'s; they are' if right > 1 else '; it is'} kept"
