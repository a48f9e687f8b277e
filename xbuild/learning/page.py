"""A lesson as one HTML page that needs no network, with pictures, step pages, and questions judged in the page."""

from __future__ import annotations

import contextlib
import io
import math
from importlib.resources import files
from typing import Any

from attrs import define, field

from shape_inference.escaping import filled, in_html, in_json, policy

from ..pages import script_text
from .answers import numbers, shown
from .cells import Cell, play
from .lesson import Question, as_html, asked_in
from .markdown import in_markdown, inline
from .shelf import Entry


@define
class Paper:
    """The session that writes a lesson as HTML; `printed` takes what cells print."""

    parts: list[str] = field(factory=list)
    questions: list[dict[str, Any]] = field(factory=list)
    printed: io.StringIO = field(factory=io.StringIO)

    def ask(self, question: Question) -> None:
        """Write a form with the question, and keep the answer for the page's script."""
        self.flush()
        self.questions.append({**_facts(question), "printed": self._printed()})
        self.parts.append(
            f'<form><p>{inline(question.words)}</p><div class="row">{_fields(question)}'
            '<button type="button" data-show>show it</button></div><output></output></form>'
        )

    def show(self, thing: Any) -> None:
        self.flush()
        self.parts.append(f'<div class="picture">{as_html(thing)}</div>')

    def cell(self, cell: Cell) -> None:
        """Write a cell; a rule is folded until the question before it is answered."""
        self.flush()
        if cell.kind == "code":
            self.parts += [f"<pre>{in_html(cell.code_to_read)}</pre>"] if cell.code_to_read else []
        elif cell.kind == "rule":
            self.parts.append(f"<details><summary>The rule</summary>{in_markdown(cell.text)}</details>")
        else:
            self.parts.append(in_markdown(cell.text))

    def flush(self) -> None:
        """Write what was printed since the last time."""
        if text := self._printed():
            self.parts.append(f"<pre>{in_html(text)}</pre>")

    def _printed(self) -> str:
        text = self.printed.getvalue().rstrip()
        self.printed.seek(0)
        self.printed.truncate()
        return text


def _fields(question: Question) -> str:
    if not question.choices:
        return '<input aria-label="your answer" autocomplete="off" spellcheck="false"><button>check</button>'
    return "".join(
        f'<button type="button" data-choice="{in_html(each)}">{in_html(each)}</button>' for each in question.choices
    )


def _facts(question: Question) -> dict[str, Any]:
    """The answer as the script compares it: text, or numbers with NaN and infinities as words."""
    truth, facts = question.truth, {"shown": shown(question.truth), "claim": str(question.claim)}
    found = None if isinstance(truth, str) or question.choices else numbers(truth)
    return {**facts, "text": str(truth)} if found is None else {**facts, "numbers": [*map(_number, found)]}


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def lesson_page(entry: Entry) -> str:
    """The page of a lesson."""
    paper = Paper()
    with asked_in(paper), contextlib.redirect_stdout(paper.printed):
        play(entry.path, entry.cells, paper.cell)
    paper.flush()
    script = _asset("lesson.js")
    scripts = [script, script_text()] if any("<iframe" in part for part in paper.parts) else [script]
    parts = {
        "policy": policy(*scripts),
        "title": in_html(f"{entry.number}. {entry.title}"),
        "style": _asset("lesson.css"),
        "body": "\n".join(paper.parts),
        "data": in_json(paper.questions),
        "script": script,
    }
    return filled(_asset("lesson.html"), parts)


def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")
