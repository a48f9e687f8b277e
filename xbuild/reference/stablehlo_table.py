"""What each op becomes in StableHLO text: `python -m xbuild.reference.stablehlo_table` writes docs/stablehlo.md."""

from __future__ import annotations

import inspect
from pathlib import Path

from ..core.op import OPS
from ..stablehlo.spelling import OP_NAMES
from ..stablehlo.writing import module as module
from ..stablehlo.writing.writer import REFUSED, lines, values

_HEAD = """# StableHLO text, in and out

Start with [From JAX or TensorFlow to a checked program in two lines](first_steps/stablehlo.md).

## Reading

`xb.parse_stablehlo(text)`, `xb.parse(text)` and every command read MLIR text with the ops of stablehlo, mhlo, chlo,
func and sdy, in the pretty and the generic form, without any other package. Regions become computations, and the outer
values that they use become elements of a state. Names and lines come from the values and locations of the text.

- jaxlib converts MLIR bytecode, portable artifacts (VHLO) and serialized exports of `jax.export` to text, in a separate
  process; without jaxlib they are refused with a message that says what to install.
- Elements of `dense_resource<...>` are read from the end of the text, at least one byte each; types narrower than a
byte
  use the low bits. Bytes of i1 in `dense<"0x...">` are read both as newer MLIR writes them (one byte each) and as older
  MLIR does (one bit each).
- Groups by axes of a mesh (`#stablehlo.replica_group_mesh_axes`) become explicit lists.
- `sdy.manual_computation`, sharding constraints, sharding groups, collectives and meshes are kept as in XLA: as
  custom calls and frontend attributes.
- MLIR allows attributes without a dialect prefix on every op (`kernel_name` of JAX's TPU kernels). They are kept as
  frontend attributes `mlir.NAME` with their text, and written back unchanged. Attributes of other dialects are ignored
  and lost.
- The operands of a product may have different kinds: an integer next to a float, or a float next to a complex number,
  is converted to the other type, or to the type of the result if that is wider.
- An all_to_all that splits one dimension and concatenates another becomes an exchange along the first, followed by a
  rearrangement of the parts.
- A conversion of a complex number to i1 tests its real part; HLO's convert tests the whole number.
- Text in the form of PyTorch/XLA (`module @IrToHlo.12`) is supported. The tests have hand-written texts in
  that form; PyTorch/XLA itself was not run.
- A module that states counts of 1 is treated as if it stated none: groups, pairs and shardings determine the number of
  devices.

The module equals the one that jaxlib's conversion to HLO produces, and its results are equal bit for bit, with these
exceptions:

- digamma, erf_inv, erfc, lgamma, polygamma, zeta and bessel_i1e of CHLO have no op in HLO. xbuild uses the `xb`
  functions of the same names, and XLA uses different formulas: results differ in the last digits, and for lgamma near 1
  and 2, where it is nearly 0, by 2e-5 of its value in f32.
- A composite becomes a call of its decomposition. XLA restores the CHLO op of a composite with its name, such as
  `chlo.erf`.
- Functions of complex numbers are kept as HLO ops. XLA's conversion expands exponential, log, log_plus_one,
  logistic, power, rsqrt, tan, tanh, and the inverse and hyperbolic functions into ops on real and imaginary parts.
- acos, acosh, asin, asinh, atanh, cosh and sinh of real numbers become the formulas of XLA's conversion. Text that
xbuild writes
  marks each as an HLO op (`mhlo.opcode`), so xbuild reads it as that op again; XLA ignores the mark.
- jaxlib folds constants during conversion, with its own rounding, signs of zero and NaN bits.

## Writing

`module.to_stablehlo()`, `computation.to_stablehlo()` and `xbuild show --stablehlo TARGET` write a program in the pretty
form of MLIR that JAX and XLA read; `locations=True` and `--locations` add names and lines of the program.
`python -m xbuild.reference.stablehlo_table` generates this page from the printer's rules.

How programs are written:

- The entry is `@main`. Its arguments and results, and the state of a loop, are arrays and tokens: tuples are flattened,
  and no op represents them.
- Computations of loops, branches and reducers are regions, one copy for each use; a fusion is written in place,
  and the callee of `call` is a function. Branches capture their operands. A value has the name of its instruction, with
  a number if another value of the function already has that name.
- A dynamic dimension is `?`, with its bound in `#stablehlo.bounds`. Groups are written as lists, short
  ones padded with -1. A reducer of one op is written as the op's name.
- Numbers of replicas and partitions, aliases, donated buffers, shardings and frontend attributes are kept as
  `mhlo.num_replicas`, `mhlo.num_partitions`, `mhlo.input_output_alias`, `jax.buffer_donor`, `mhlo.sharding` and
  `mhlo.frontend_attributes`.
- Shardings in Shardy's text are kept in the same attributes, under XLA's names (`xla.sdy.meshes` of
  the module, `xla.sdy.sharding` of ops, arguments and results). A call of a composite is written as a composite.
- Lost: control predecessors, layouts, backend_config of ops other than custom calls, metadata (names and lines become
  locations), and XLA's notes that do not affect values.
- A send and its send-done become one op at the position of the send; a recv and its recv-done become one at the
position of
  the recv-done, or of the recv if its context leaves the computation.

Refused, with kind `not_in_stablehlo`: element types s1 and u1, elided constants, a start without a done in its own
computation,
in-place collective permutes, select-and-scatter with dilated windows, and the ops marked in the table.

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
