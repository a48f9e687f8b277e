"""Docstrings and other plain text as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

_SPECIAL = re.compile(r"([\\*_\[\]<>#|~$^{}])")
_CODE = re.compile(r"(`[^`]+`)")
_HEAD = re.compile(r"^([A-Z][a-z]+(?: [a-z]+)?): (?=\S)")


def escaped(text: str, links: Mapping[str, str] | None = None) -> str:
    """Plain text in which backticks mark code: Markdown's own signs are escaped, and known words become links."""
    parts = _CODE.split(text)
    return "".join(part if number % 2 else _linked(part, links or {}) for number, part in enumerate(parts))


def _linked(text: str, links: Mapping[str, str]) -> str:
    def word(found: re.Match[str]) -> str:
        plain = found[0]
        if plain in links:
            return f"[`{plain}`]({links[plain]})"
        return _SPECIAL.sub(r"\\\1", plain)

    return re.sub(rf"{'[a-z][a-z0-9_]*' if links else '(?!)'}|.", word, text, flags=re.DOTALL)


def fenced(text: str, language: str = "text") -> str:
    """Text as a block of code."""
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{ticks}{language}\n{text}\n{ticks}"


def document(text: str, links: Mapping[str, str] | None = None) -> str:
    """A docstring as Markdown: paragraphs, sessions of Python as code, a bold word where a line begins a part.

    `links` are the pages of the words of the part Raises.
    """
    return "\n\n".join(_block(block, links or {}) for block in _blocks(text.splitlines()))


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lines in blocks: sessions, and paragraphs, which end at an empty line or before a line that begins a part."""
    block: list[str] = []
    for line in lines:
        in_session = bool(block) and block[0].startswith(">>>")
        if not line.strip() or (block and not in_session and (_HEAD.match(line) or line.startswith(">>>"))):
            if block:
                yield block
            block = []
        if line.strip():
            block.append(line)
    if block:
        yield block


def _block(lines: list[str], links: Mapping[str, str]) -> str:
    if lines[0].startswith(">>>"):
        return fenced("\n".join(lines), "pycon")
    if all(line.startswith("  ") for line in lines):
        return fenced("\n".join(line[2:] for line in lines))
    text = "\n".join(line.strip() for line in lines)
    head = _HEAD.match(text)
    if head:
        return f"**{head[1]}**: {escaped(text[head.end() :], links if head[1] == 'Raises' else {})}"
    return escaped(text)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown; cells are Markdown already."""
    names = [*head]
    lines = [names, [":---"] * len(names), *[[*row] for row in rows]]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines)


def tree(pages: Iterable[str], *, caption: str = "", depth: int = 1, hidden: bool = False) -> str:
    """A table of contents of other pages."""
    options = [f":maxdepth: {depth}", *[f":caption: {caption}"] * bool(caption), *[":hidden:"] * hidden]
    return "\n".join(["```{toctree}", *options, "", *pages, "```"])
