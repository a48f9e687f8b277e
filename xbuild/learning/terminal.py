"""A lesson in a terminal: prose, code, and questions at a prompt; in color if `rich` is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field

from ..core.report_text import StyledText
from ..stepping.console import TextConsole
from .answers import answer_text
from .cells import Cell, play
from .changing import UnusableNumbers
from .lesson import Question, as_text, lettered_choices, session
from .progress import Progress
from .shelf import ShelfEntry

RETRY = "Try again, or press Enter to see the answer."
RETRY_FOR_HINT = "Try again, or press Enter for a hint."
_TRY = "try "


class EndOfInput(Exception):
    """The input has ended: the learner leaves the lesson."""


@define(eq=False)
class TerminalSession:
    """A lesson in a terminal; `read` returns a line of the learner's input, "" at its end."""

    console: TextConsole
    read: Callable[[], str]
    note: Callable[[str], None]
    right: int = field(default=0, init=False)
    asked: int = field(default=0, init=False)
    missed: list[Question] = field(factory=list, init=False)
    answered: Question | None = field(default=None, init=False)
    explains_try: bool = field(default=True, init=False)

    def ask(self, question: Question) -> None:
        """Ask until the answer is right or the learner gives up; then print the answer and the claim."""
        self.asked += 1
        if not self._is_answered(question):
            self.missed.append(question)

    def ask_again(self) -> None:
        """Ask the questions once more whose answers the learner has seen."""
        if self.missed:
            self.console.prose(StyledText("\nOnce more, the questions whose answers you have seen", "title"))
        for question in self.missed:
            self._is_answered(question)

    def _is_answered(self, question: Question) -> bool:
        """Whether the learner gives the right answer; the first empty line shows the hint, and the next the answer."""
        self.console.prose(StyledText(f"\n? {question.words}", "title"))
        for line in lettered_choices(question):
            self.console.prose(line)
        hint, retry = question.feedback.hint, RETRY
        if hint:
            retry = RETRY_FOR_HINT
        while (guess := self._read_line()) or hint:
            if not guess:
                self.console.prose(StyledText(f"  Hint: {hint} ", "waits"), RETRY)
                hint, retry = "", RETRY
            elif guess.startswith(_TRY):
                self._try(guess.removeprefix(_TRY))
            elif question.accepts(guess):
                break
            else:
                why = question.comment(guess)
                self.console.prose(StyledText(f"  {why or 'Not quite.'} ", "waits" if why else "bad"), retry)
        if guess:
            self.right += 1
            self.note(question.words)
        label = StyledText("  right: " if guess else "  the answer: ", "good" if guess else "waits")
        self.console.prose(label, answer_text(question.truth))
        for line in question.printed.splitlines():
            self.console.prose(f"    {line}")
        self.console.prose(StyledText(f"  {question.claim}", "dim"))
        self.answered = question
        if question.changeable is not None and self.explains_try:
            self.explains_try = False
            usage = (
                f"  Other numbers? At the next question, type {question.changeable.usage} with numbers for the shapes."
            )
            self.console.prose(StyledText(usage, "dim"))
        return bool(guess)

    def _try(self, line: str) -> None:
        """Run the program of the last answered question with other numbers, and show the value of each instruction."""
        changeable = None if self.answered is None else self.answered.changeable
        if changeable is None:
            self.console.prose(StyledText("  The question before this one has no program that takes numbers.", "waits"))
            return
        try:
            self.show("\n".join(changeable.run_line(line)))
        except UnusableNumbers as reason:
            self.console.prose(StyledText(f"  {reason}", "waits"))

    def _read_line(self) -> str:
        self.console.out.write("> ")
        self.console.out.flush()
        line = self.read()
        if not line:
            raise EndOfInput
        return line.strip()

    def show(self, thing: Any) -> None:
        for line in as_text(thing).split("\n"):
            self.console.prose(StyledText(f"    {line}", "name"))

    def cell(self, cell: Cell) -> None:
        """Write a cell: prose unchanged, code indented."""
        if cell.kind == "code":
            self._write_code(cell.code_to_read)
        elif self.console.rich is None:
            self.console.out.write(f"\n{cell.text}\n")
        else:
            from rich.markdown import Markdown
            from rich.theme import Theme

            with self.console.rich.use_theme(Theme({"markdown.code": "bold cyan", "markdown.h2": "bold"})):
                self.console.rich.print()
                self.console.rich.print(Markdown(cell.text))

    def _write_code(self, code: str) -> None:
        if not code:
            return
        if self.console.rich is None:
            self.console.out.write("\n" + "".join(f"    {line}".rstrip() + "\n" for line in code.split("\n")))
            return
        from rich.padding import Padding
        from rich.syntax import Syntax

        shown_code = Syntax(code, "python", background_color="default", theme="ansi_light", word_wrap=True)
        self.console.rich.print(Padding(shown_code, (1, 0, 0, 4)))


def teach(entry: ShelfEntry, console: TextConsole, read: Callable[[], str], progress: Progress) -> bool:
    """Run a lesson; returns whether every answer was right."""
    taught = TerminalSession(console, read, lambda words: progress.note(entry.name, words))
    try:
        with session(taught):
            play(entry.path, entry.cells, taught.cell)
            taught.ask_again()
    except EndOfInput:
        console.prose("\n", StyledText(_saved_text(taught.right), "dim"))
        return False
    console.prose("\n", StyledText(f"{taught.right} of {taught.asked} right", "title"))
    return taught.right == taught.asked


def _saved_text(right: int) -> str:
    return (
        f"lesson ended; {right} right answer{'s' * (right != 1)} saved"
        if right
        else "lesson ended; there are no answers to save"
    )
