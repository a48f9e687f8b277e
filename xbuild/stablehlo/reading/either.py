"""`parse`: text of HLO or of StableHLO, whichever it is."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...core.graph import Module
from ...text.reading.reader import parse_hlo
from .bytecode import as_text
from .parse import parse_stablehlo

_MLIR = re.compile(
    r"""(?:\s++|//[^\n]*+)*+
    (?: [#!][A-Za-z_][\w.$-]*+\s*+=
      | module\b\s*+(?:@|attributes\b|\{\s*+(?:\}|["%\#]|//|func\.func\b|sdy\.mesh\b|shard\.grid\b|mesh\.mesh\b))
      | (?:func\.func|sdy\.mesh|stablehlo\.mesh|shard\.grid|mesh\.mesh)\b
      | "(?:builtin\.module|func\.func)"
      | \{-\#
    )""",
    re.VERBOSE | re.ASCII,
)


def is_mlir(text: str) -> bool:
    """Whether a text begins as MLIR does, and not as HLO."""
    return _MLIR.match(text) is not None


def parse(
    text: str | bytes,
    file: str | None = None,
    *,
    origins: bool = False,
    replicas: int | None = None,
    partitions: int | None = None,
    shapes: Mapping[str, int] | None = None,
) -> Module:
    """The module that a text spells, of HLO or of StableHLO: which of them it is follows from how it begins.

    Takes what `xb.parse_hlo` and `xb.parse_stablehlo` take, and raises what they raise; `shapes` is for StableHLO,
    `origins` for HLO.

    >>> import xbuild as xb
    >>> hlo = xb.parse("ENTRY main { ROOT x = f32[2] parameter(0) }")
    >>> stablehlo = xb.parse("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }")
    >>> xb.same_structure(hlo, stablehlo)
    True

    Source: the grammars of HLO text and of MLIR.
    """
    if isinstance(text, str | bytes | bytearray):
        text = as_text(text, file)
    if isinstance(text, str) and is_mlir(text):
        return parse_stablehlo(text, file, replicas=replicas, partitions=partitions, shapes=shapes)
    if shapes:
        raise ValueError("shapes= is for StableHLO text, and this is none")
    return parse_hlo(text, file, origins=origins, replicas=replicas, partitions=partitions)
