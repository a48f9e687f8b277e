"""Texts of several modules, parted by lines `// -----`: each is a program of its own."""

from __future__ import annotations

from ...core.graph import Module
from .bytecode import as_text
from .parse import parse_stablehlo
from .parts import parts_of


def parse_stablehlo_modules(
    text: str | bytes, file: str | None = None, *, replicas: int | None = None, partitions: int | None = None
) -> tuple[Module, ...]:
    """The modules that a text spells one after another, each with names of its own, parted by lines `// -----`.

    Raises HloParseError as xb.parse_stablehlo does, of the first module that is at fault, with lines of the whole text.

    >>> import xbuild as xb
    >>> one = "module @one { func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> } }"
    >>> [module.name for module in xb.parse_stablehlo_modules(one + "\\n// -----\\n" + one.replace("one", "two"))]
    ['one', 'two']

    Source: MLIR, mlir-opt --split-input-file.
    """
    text = as_text(text, file)
    parts = parts_of(text) or [text]
    return tuple(parse_stablehlo(part, file, replicas=replicas, partitions=partitions) for part in parts)
