"""A lesson as one HTML page that needs no network: it has pictures and step pages, and grades the answers itself.

Sections:

    The page
    Code: coloured, with its imports folded away
    Markdown: the headings, paragraphs, lists, code and tables that lessons use
"""

from __future__ import annotations

import ast
import contextlib
import io
import itertools
import keyword
import math
import re
import tokenize
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from attrs import define, field, frozen

from shape_inference.escaping import filled, in_html, in_json, policy

from ..pages import script_text
from .answers import answer_text, numbers, read_numbers
from .cells import Cell, play
from .lesson import Question, as_html, session
from .shelf import ShelfEntry

# ----------------------------------------------------------------------------
# The page


@define
class PageSession:
    """Writes a lesson as HTML; `printed` collects what its cells print."""

    parts: list[str] = field(factory=list)
    questions: list[dict[str, Any]] = field(factory=list)
    printed: io.StringIO = field(factory=io.StringIO)

    def ask(self, question: Question) -> None:
        """Write a form with the question, and store the answer for the page's script."""
        self.flush()
        self.questions.append({**_answer_facts(question), "printed": question.printed})
        self.parts.append(
            f"<form><p>{inline_html(question.words)}</p>"
            f'<div class="row" role="group" aria-label="{in_html(question.words)}">{_fields(question)}'
            f'<button type="button" data-show>{"Hint" if question.feedback.hint else "Show the answer"}</button></div>'
            "<output></output></form>"
        )

    def show(self, thing: Any) -> None:
        self.flush()
        self.parts.append(f'<div class="picture">{as_html(thing)}</div>')

    def cell(self, cell: Cell) -> None:
        """Write a cell; a rule stays folded until the reader answers the question before it."""
        self.flush()
        if cell.kind == "code":
            self.parts += [*_code_parts(cell.code_to_read)]
        elif cell.kind == "rule":
            self.parts.append(f"<details><summary>Why</summary>{markdown_html(cell.text)}</details>")
        else:
            self.parts.append(markdown_html(cell.text))

    def flush(self) -> None:
        """Write the output that the cells have printed since the last flush."""
        if text := self._take_printed():
            self.parts.append(f"<pre>{in_html(text)}</pre>")

    def _take_printed(self) -> str:
        text = self.printed.getvalue().rstrip()
        self.printed.seek(0)
        self.printed.truncate()
        return text


def _fields(question: Question) -> str:
    if not question.choices:
        return '<input aria-label="your answer" autocomplete="off" spellcheck="false"><button>Check</button>'
    return "".join(
        f'<button type="button" data-choice="{in_html(choice)}">{in_html(choice)}</button>'
        for choice in question.choices
    )


def _answer_facts(question: Question) -> dict[str, Any]:
    """The answer, the hint and the typical wrong answers, as the script compares and shows them."""
    truth, feedback = question.truth, question.feedback
    return {
        "shown": answer_text(truth),
        "claim": str(question.claim),
        "hint": feedback.hint,
        "variants": question.changeable.variants() if question.changeable else [],
        "wrong": [{**_comparable(other, question), "why": why} for other, why in feedback.wrong.items()],
        **_comparable(truth, question),
    }


def _comparable(answer: Any, question: Question) -> dict[str, Any]:
    """An answer as the script compares it: text, or numbers with NaN and infinities as words."""
    is_text = bool(question.choices) or isinstance(question.truth, str)
    found = None if is_text else read_numbers(answer) if isinstance(answer, str) else numbers(answer)
    return {"text": str(answer)} if found is None else {"numbers": [*map(_json_number, found)]}


def _json_number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


@frozen
class Additions:
    """What a server adds to a page: a line of links, style, and a script that may send requests to the server."""

    links: str = ""
    style: str = ""
    script: str = ""


def lesson_page(entry: ShelfEntry, written: PageSession | None = None, additions: Additions | None = None) -> str:
    """The page of a lesson, as HTML."""
    written, added = written or PageSession(), additions or Additions()
    with session(written), contextlib.redirect_stdout(written.printed):
        play(entry.path, entry.cells, written.cell)
    written.flush()
    scripts = [asset("lesson.js"), *([added.script] if added.script else [])]
    frames = [script_text()] if additions or any("<iframe" in part for part in written.parts) else []
    parts = {
        "policy": policy(*scripts, *frames, is_served=additions is not None),
        "title": in_html(f"{entry.number}. {entry.title}"),
        "style": asset("lesson.css") + added.style,
        "links": added.links,
        "body": "\n".join(written.parts),
        "data": in_json(written.questions),
        "script": "</script>\n<script>".join(scripts),
    }
    return filled(asset("lesson.html"), parts)


def asset(name: str) -> str:
    """The text of a file in the folder `assets`."""
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


# ----------------------------------------------------------------------------
# Code: coloured, with its imports folded away

_KINDS = {tokenize.STRING: "string", tokenize.NUMBER: "number", tokenize.COMMENT: "comment"} | {
    getattr(tokenize, name): "string"
    for name in ("FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END")
    if hasattr(tokenize, name)
}
"""The class of a token by its type; Python 3.12 splits strings with expressions."""


def _code_parts(code: str) -> Iterator[str]:
    """The HTML of the code of a cell; imports at its beginning are folded away."""
    setup, rest = split_setup(code)
    if setup:
        yield f'<details class="setup"><summary>Set-up</summary><pre>{code_html(setup)}</pre></details>'
    if rest:
        yield f"<pre>{code_html(rest)}</pre>"


def split_setup(code: str) -> tuple[str, str]:
    """The imports at the beginning of code, and the rest."""
    body, lines = ast.parse(code).body, code.split("\n")
    imports = [*itertools.takewhile(lambda node: isinstance(node, ast.Import | ast.ImportFrom), body)]
    end = (imports[-1].end_lineno or 0) if imports else 0
    return "\n".join(lines[:end]), "\n".join(lines[end:]).strip("\n")


def code_html(code: str) -> str:
    """The HTML of Python code, with a class for keywords, strings, numbers and comments.

    >>> code_html("return x + 1  # one")
    '<i class="keyword">return</i> x + <i class="number">1</i>  <i class="comment"># one</i>'
    """
    starts = [0, *itertools.accumulate(len(line) + 1 for line in code.split("\n"))]
    parts, done = list[str](), 0
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        kind = "keyword" if token.type == tokenize.NAME and keyword.iskeyword(token.string) else _KINDS.get(token.type)
        begin, end = (starts[row - 1] + column for row, column in (token.start, token.end))
        if kind and end > begin >= done:
            parts += [in_html(code[done:begin]), f'<i class="{kind}">{in_html(code[begin:end])}</i>']
            done = end
    return "".join([*parts, in_html(code[done:])])


# ----------------------------------------------------------------------------
# Markdown: the headings, paragraphs, lists, code and tables that lessons use

_INLINE = ((r"\*\*([^*]+)\*\*", r"<b>\1</b>"), (r"(?<![\w)\]*])\*(?=[^\s*])([^*]+)(?<!\s)\*(?![\w*])", r"<i>\1</i>"))
"""Bold and italic parts. An asterisk after a word or a closing bracket, or before a space, multiplies."""

_HEADING = re.compile(r"(#{1,4}) (.*)")


def markdown_html(text: str) -> str:
    """The HTML of a text in Markdown; forms that lessons do not use stay unchanged.

    >>> markdown_html("## Pad\\n\\nIt *crops* `x < 3`, too.")
    '<h2>Pad</h2>\\n<p>It <i>crops</i> <code>x &lt; 3</code>, too.</p>'
    >>> markdown_html("(1+10)*1 = 11, (2+10)*2 = 24; [1]*8, 2 * 3 * 4, *twice*.")
    '<p>(1+10)*1 = 11, (2+10)*2 = 24; [1]*8, 2 * 3 * 4, <i>twice</i>.</p>'
    """
    return "\n".join(map(_block_html, _blocks(text)))


def _blocks(text: str) -> Iterator[str]:
    """Split a text into blocks; a heading is a separate block even without an empty line after it."""
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        first, _, rest = block.partition("\n")
        if _HEADING.fullmatch(first) and rest:
            yield first
            yield rest
        else:
            yield block


def _block_html(text: str) -> str:
    lines = text.split("\n")
    if heading := _HEADING.fullmatch(text):
        return f"<h{len(heading[1])}>{inline_html(heading[2])}</h{len(heading[1])}>"
    if all(line.startswith("    ") for line in lines):
        return "<pre>" + in_html("\n".join(line[4:] for line in lines)) + "</pre>"
    if lines[0].startswith("- "):
        return _list_html(text)
    if all(line.startswith("|") for line in lines):
        return _table_html(lines)
    return f"<p>{inline_html(' '.join(lines))}</p>"


def _list_html(text: str) -> str:
    items = [" ".join(item.split()) for item in re.split(r"^- ", text, flags=re.MULTILINE) if item]
    return "<ul>" + "".join(f"<li>{inline_html(item)}</li>" for item in items) + "</ul>"


def _table_html(lines: list[str]) -> str:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    head, body = rows[0], [row for row in rows[1:] if not set("".join(row)) <= set("-: ")]
    parts = ["".join(f"<th>{inline_html(cell)}</th>" for cell in head)]
    parts += ["".join(f"<td>{inline_html(cell)}</td>" for cell in row) for row in body]
    return "<table>" + "".join(f"<tr>{part}</tr>" for part in parts) + "</table>"


def inline_html(text: str) -> str:
    """The HTML of a line with its code, bold and italic parts; code contains no other markup."""
    return "".join(_span_html(part) for part in re.split(r"(`[^`]+`)", text))


def _span_html(part: str) -> str:
    html = in_html(part)
    if html.startswith("`"):
        return f"<code>{html.strip('`')}</code>"
    for pattern, replacement in _INLINE:
        html = re.sub(pattern, replacement, html)
    return html
