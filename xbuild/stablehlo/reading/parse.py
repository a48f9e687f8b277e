"""`parse_stablehlo`: from the text of a module to the module."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...core.graph import Module
from ...process.gc_pause import no_collection
from ...text.reading.counts import check_counts
from ...text.spelling.faults import Fault, parse_error
from ..syntax.parser import Parser
from ..syntax.trees import Operation
from .bytecode import as_text
from .parts import ranges_of
from .reader import Reader
from .rules import all_rules, sized_reader

_OPEN = re.compile(r"tensor<(?:\d+x)*\?x[^,>]*>", re.ASCII)
"""A type with an extent that is not known; one that has bounds has a comma after its element type."""


def parse_tree(text: str, file: str | None = None) -> Operation:
    """The tree of the module that MLIR text spells. Raises HloParseError with up to twenty faults."""
    parser = Parser(text)
    try:
        ranges = ranges_of(text)
        if len(ranges) > 1:
            hint = "the second begins here; xb.parse_stablehlo_modules reads each"
            parser.fail("syntax", f"the text has {len(ranges)} modules, and one is wanted", hint, place=ranges[1][0])
        tree = parser.module()
    except Fault as fault:
        parser.keep(fault)
    except RecursionError:
        parser.keep(Fault("syntax", "this is nested too deep", parser.place))
    if parser.faults:
        raise parse_error(text, file or "<mlir>", parser.faults, parser.count)
    return tree


def module_of(
    tree: Operation,
    text: str,
    file: str | None = None,
    *,
    entry: str | None = None,
    replicas: int | None = None,
    partitions: int | None = None,
    shapes: Mapping[str, int] | None = None,
) -> Module:
    """The module of a tree of `text`; `entry` is the function that it begins with, by default `main`."""
    all_rules()
    if shapes or _OPEN.search(text):
        return sized_reader(tree, text, file, (replicas, partitions), shapes or {}).module(entry)  # type: ignore[no-any-return]
    return Reader(tree, text, file, (replicas, partitions)).module(entry)


def parse_stablehlo(
    text: str | bytes,
    file: str | None = None,
    *,
    replicas: int | None = None,
    partitions: int | None = None,
    shapes: Mapping[str, int] | None = None,
) -> Module:
    """The module that StableHLO text spells, each shape inferred again and compared with the one that is written.

    The text is what `jax.jit(f).lower(x).as_text()`, `jax.export`, TensorFlow and PyTorch/XLA give: MLIR with the ops
    of stablehlo, func and chlo. Bytes may be MLIR bytecode, or what `jax.export` serializes; jaxlib turns them to text.
    Regions become computations, and values that they use from outside elements of a state. Instructions have the names
    of MLIR values (`%total` is `total`, `%3` of an add is `add.3`); reports name the user's lines where the text has
    locations, else those of the text. Shardings are kept as annotations. `file` is what errors call the text.
    `replicas` and `partitions` are their numbers, whatever the module states. `shapes` are sizes of dimensions that the
    text leaves open, by JAX's names ("b") or by argument and dimension ("arg0.1").

    Raises HloParseError with up to twenty faults, each with line, column and what was expected.

    >>> import xbuild as xb
    >>> module = xb.parse_stablehlo('''
    ... func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    ...   %total = stablehlo.add %x, %x : tensor<2xf32>
    ...   return %total : tensor<2xf32>
    ... }''')
    >>> print(module.entry)
    ENTRY main {
      x = f32[2] parameter(0)
      ROOT total = f32[2] add(x, x)
    }

    Source: StableHLO specification; XLA, conversion of StableHLO to HLO.
    """
    if not isinstance(text, str | bytes | bytearray):
        raise TypeError(f"StableHLO text is wanted, and {type(text).__name__} is given")
    check_counts(replicas, partitions)
    text = as_text(text, file)
    with no_collection():
        return module_of(parse_tree(text, file), text, file, replicas=replicas, partitions=partitions, shapes=shapes)
