"""What each op becomes in StableHLO text: `python -m xbuild.reference.stablehlo_table` writes docs/stablehlo.md."""

from __future__ import annotations

import inspect
from pathlib import Path

from ..core.op import OPS
from ..stablehlo.spelling.op_names import OP_NAMES
from ..stablehlo.writing import ops as ops
from ..stablehlo.writing.support.tables import REFUSED, lines, values

_HEAD = """# Programs as StableHLO text

`module.to_stablehlo()`, `computation.to_stablehlo()` and `xbuild show --stablehlo TARGET` write a program in the pretty
form of MLIR that JAX and XLA read; `locations=True` and `--locations` add names and lines of the program. The table is
made by `python -m xbuild.reference.stablehlo_table` from the printer's rules.

The whole program:

- The entry is `@main`; its arguments and results are its arrays and tokens, with tuples dissolved, and so is the state
  of a loop. A tuple is no op.
- Computations of loops, branches and reducers are regions, one copy for each use; a fusion stands where it is used, and
  what `call` calls is a function. Branches capture their operands. A value has the name of its instruction, with a
  number where another value of the function has it already.
- A dimension that is only bounded is `?`, with its bound in `#stablehlo.bounds`. Groups are written as lists, short
  ones filled with -1. A reducer of one op is told by the op's name.
- Numbers of replicas and partitions, aliases, donated buffers, shardings and frontend attributes are kept as
  `mhlo.num_replicas`, `mhlo.num_partitions`, `mhlo.input_output_alias`, `jax.buffer_donor`, `mhlo.sharding` and
  `mhlo.frontend_attributes`.
- Lost: control predecessors, layouts, backend_config of ops that are no custom call, metadata (names and lines are
  locations), and what XLA keeps at an op without a meaning for its value.
- A send and its send-done are one op where the send stands; a recv and its recv-done are one where the value is
  awaited, or where the recv stands if its context leaves the computation.

Refused, with kind `not_in_stablehlo`: element types s1 and u1, constants whose elements the text leaves out, a start
that is not awaited in its own computation, collective permutes in place, select-and-scatter with dilated windows,
and the ops that the table names.

| op | in StableHLO | remarks |
|---|---|---|
"""


def document() -> str:
    """The table as Markdown."""
    return _HEAD + "".join(
        f"| {OPS[opcode].spelling} | {_becomes(opcode)} | {_remark(opcode)} |\n" for opcode in sorted(OPS)
    )


def _becomes(opcode: str) -> str:
    if opcode in REFUSED:
        return "refused"
    return f"`{OP_NAMES[opcode]}`" if opcode in OP_NAMES and opcode not in _DISSOLVED else "–"


_DISSOLVED = ("tuple", "get_tuple_element")


def _remark(opcode: str) -> str:
    """The first sentence of the rule's docstring."""
    if opcode == "parameter":
        return "An argument of the function or of the block."
    rule = lines.get(opcode) or values[opcode]
    text = inspect.getdoc(rule) or ""
    return " ".join(text.partition("\n\n")[0].split())


def main() -> None:
    """Write docs/stablehlo.md, beside the package."""
    path = Path(__file__).parents[2] / "docs" / "stablehlo.md"
    path.write_text(document(), encoding="utf-8")


if __name__ == "__main__":
    main()
