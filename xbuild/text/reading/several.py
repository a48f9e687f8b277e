"""Texts of several modules, parted by lines `// -----` or by headers: each is a program of its own."""

from __future__ import annotations

from ...core.graph import Module
from .parts import parts_of
from .reader import parse_hlo


def parse_hlo_modules(
    text: str | bytes,
    file: str | None = None,
    *,
    origins: bool = False,
    replicas: int | None = None,
    partitions: int | None = None,
) -> tuple[Module, ...]:
    """The modules that a text spells one after another, each with names of its own; one begins at a line `// -----`,
    or at a header.

    Raises HloParseError as xb.parse_hlo does, of the first module that is at fault, with lines of the whole text.

    >>> import xbuild as xb
    >>> one = "HloModule one ENTRY e { ROOT x = f32[2] parameter(0) }"
    >>> [module.name for module in xb.parse_hlo_modules(one + "\\n// -----\\n" + one.replace("one", "two"))]
    ['one', 'two']

    Source: XLA, hlo-opt --split-input-file.
    """
    if isinstance(text, bytes | bytearray):
        text = text.decode("utf-8", errors="surrogateescape")
    given = {"origins": origins, "replicas": replicas, "partitions": partitions}
    return tuple(parse_hlo(part, file, **given) for part in parts_of(text) or [text])  # type: ignore[arg-type]
