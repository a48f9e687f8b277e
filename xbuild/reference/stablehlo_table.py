"""What each op becomes in StableHLO text: `python -m xbuild.reference.stablehlo_table` writes docs/stablehlo.md."""

from __future__ import annotations

import inspect
from pathlib import Path

from ..core.op import OPS
from ..stablehlo.spelling.op_names import OP_NAMES
from ..stablehlo.writing import ops as ops
from ..stablehlo.writing.support.tables import REFUSED, lines, values

_HEAD = """# StableHLO text, in and out

[From JAX or TensorFlow to a checked program in two lines](first_steps/stablehlo.md) is the page to begin with.

## Reading

`xb.parse_stablehlo(text)`, `xb.parse(text)` and every command read MLIR text with the ops of stablehlo, mhlo, chlo,
func and sdy, in the pretty and in the generic form, without any other package. Regions become computations, and what
they use from outside elements of a state; names and lines come from the values and locations of the text.

- MLIR bytecode, portable artifacts (VHLO) and what `jax.export` serializes are turned into text by jaxlib, in a
  process of its own; without jaxlib they are refused, and the message says what to install.
- Elements of `dense_resource<...>` are read from the end of the text, a byte or more each; of types narrower than a
  byte the low bits count. Bytes of i1 in `dense<"0x...">` are read as newer MLIR writes them (a byte each) and as older
  does (a bit each).
- Groups by axes of a mesh (`#stablehlo.replica_group_mesh_axes`) become the lists that they stand for.
- `sdy.manual_computation`, sharding constraints and meshes are kept as XLA keeps them: custom calls and frontend
  attributes. Shardy's collectives are refused by name, since its partitioner has to make a program for each device of
  them.
- Text in the form of PyTorch/XLA (`module @IrToHlo.12`) is read. The tests have texts of ours in that form;
  PyTorch/XLA itself was not run.
- Counts of 1 that a module states are as if it stated none: groups, pairs and shardings tell how many devices there
  are.

The module is the one that jaxlib's conversion to HLO gives, and its results are the same bit for bit, with these
exceptions:

- digamma, erf_inv, erfc, lgamma, polygamma, zeta and bessel_i1e of CHLO have no op in HLO. Here they are the
  functions of `xb` (by the same names), and XLA has others: results differ in the last digits, and of lgamma near 1
  and 2, where it is nearly 0, by 2e-5 of its value in f32.
- A composite is a call of its decomposition. XLA makes the op of CHLO again of one that is called so, such as
  `chlo.erf`.
- Functions of complex numbers are kept as ops of HLO. XLA's conversion expands exponential, log, log_plus_one,
  logistic, power, rsqrt, tan, tanh, and the inverse and hyperbolic functions into ops on real and imaginary parts.
- acos, acosh, asin, asinh, atanh, cosh and sinh of real numbers are the formulas of XLA's conversion. Text that is
  written here says at each that it was an op of HLO (`mhlo.opcode`), so that it is read as that op again; XLA does
  not look at it.
- jaxlib folds constants while it converts, with roundings, signs of zeros and bits of NaNs of its own.

## Writing

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
