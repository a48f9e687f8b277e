"""The little Markdown that lessons are written in, as HTML: headings, paragraphs, lists, code, tables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shape_inference.escaping import in_html

_INLINE = ((r"\*\*([^*]+)\*\*", r"<b>\1</b>"), (r"\*([^*]+)\*", r"<i>\1</i>"))
_HEADING = re.compile(r"(#{1,4}) (.*)")


def in_markdown(text: str) -> str:
    """HTML of a text; what is not among these forms is shown as it stands.

    >>> in_markdown("## Pad\\n\\nIt *crops* `x < 3`, too.")
    '<h2>Pad</h2>\\n<p>It <i>crops</i> <code>x &lt; 3</code>, too.</p>'
    """
    return "\n".join(map(_block, _blocks(text)))


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs, and heading lines by themselves; indented code keeps its empty lines."""
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        first, _, rest = block.partition("\n")
        if _HEADING.fullmatch(first) and rest:
            yield first
            yield rest
        else:
            yield block


def _block(text: str) -> str:
    lines = text.split("\n")
    if heading := _HEADING.fullmatch(text):
        return f"<h{len(heading[1])}>{inline(heading[2])}</h{len(heading[1])}>"
    if all(line.startswith("    ") for line in lines):
        return _code(lines)
    if lines[0].startswith("- "):
        return _list(text)
    if all(line.startswith("|") for line in lines):
        return _table(lines)
    return f"<p>{inline(' '.join(lines))}</p>"


def _code(lines: list[str]) -> str:
    return "<pre>" + in_html("\n".join(line[4:] for line in lines)) + "</pre>"


def _list(text: str) -> str:
    items = [" ".join(item.split()) for item in re.split(r"^- ", text, flags=re.MULTILINE) if item]
    return "<ul>" + "".join(f"<li>{inline(item)}</li>" for item in items) + "</ul>"


def _table(lines: list[str]) -> str:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    head, body = rows[0], [row for row in rows[1:] if not set("".join(row)) <= set("-: ")]
    parts = ["".join(f"<th>{inline(cell)}</th>" for cell in head)]
    parts += ["".join(f"<td>{inline(cell)}</td>" for cell in row) for row in body]
    return "<table>" + "".join(f"<tr>{part}</tr>" for part in parts) + "</table>"


def inline(text: str) -> str:
    """A line with its code, bold and italic parts; inside code nothing else is marked."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(_marked(part) for part in parts)


def _marked(part: str) -> str:
    found = in_html(part)
    if found.startswith("`"):
        return f"<code>{found.strip('`')}</code>"
    for pattern, by in _INLINE:
        found = re.sub(pattern, by, found)
    return found
