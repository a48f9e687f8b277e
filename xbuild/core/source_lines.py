"""Source lines of recorded instructions; no other module opens the user's files."""

from __future__ import annotations

import linecache
from functools import lru_cache
from pathlib import Path

from .graph import Instruction, KeptSource, MetadataSource, RecordedSource, Source, TextSource
from .hooks import text_of

LARGEST = 1 << 24
"""The largest file, in bytes, that is read under a root."""


def line_of(instruction: Instruction, root: Path | None = None) -> str:
    """The source line that recorded an instruction, stripped; empty if unknown.

    The file is opened if this process runs its code. For a trace the line is the text that the trace has kept, and for
    HLO text the instruction itself. A file that text or a trace names is opened only under `root`, if one is given.
    """
    source = instruction.source
    if isinstance(source, RecordedSource):
        return recorded_line(source)
    if isinstance(source, KeptSource) and source.text:
        return source.text
    if isinstance(source, TextSource) and not isinstance(source, MetadataSource):
        return _itself(instruction)
    return "" if root is None or source is None else _under(root, source)


def recorded_line(source: RecordedSource) -> str:
    """The line of code that this process runs."""
    return linecache.getline(source.file, source.line).strip()


def file_lines(file: str) -> tuple[str, ...]:
    """The lines of a file whose code this process runs."""
    return tuple(linecache.getlines(file))


def _itself(instruction: Instruction) -> str:
    return "" if instruction.opcode == "constant" else text_of(instruction)


def _under(root: Path, source: Source) -> str:
    """A line of a file below a root."""
    lines = lines_under(root, source)
    return lines[source.line - 1].strip() if 0 < source.line <= len(lines) else ""


def lines_under(root: Path, source: Source) -> tuple[str, ...]:
    """The lines of the file of a source that, after links are resolved, lies below a root; none for any other file."""
    try:
        top = root.resolve(strict=True)
        place = (top / source.file).resolve(strict=True)
        inside = place.is_relative_to(top) and place.is_file() and place.stat().st_size <= LARGEST
        return _lines(place) if inside else ()
    except (OSError, ValueError, RuntimeError):
        return ()


@lru_cache(maxsize=64)
def _lines(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8", errors="replace").split("\n"))
