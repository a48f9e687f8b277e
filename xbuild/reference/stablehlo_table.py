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

`xb.parse_stablehlo(text)`, `xb.parse(text)` and every command read MLIR text with the ops of the stablehlo, mhlo, chlo,
func and sdy dialects, in the pretty and the generic form. No other package is needed. A region becomes a computation,
and the outer values that the region uses become elements of a state. Instructions take their names and source lines
from the values and locations of the text.

- jaxlib converts MLIR bytecode, portable artifacts (VHLO) and serialized exports from `jax.export` to text in a
  separate process. Without jaxlib, xbuild refuses them with a message that says what to install.
- xbuild reads the elements of `dense_resource<...>` from the end of the text. Each element takes at least one byte;
  types narrower than a byte use its low bits. For the bytes of i1 in `dense<"0x...">`, xbuild reads both the format of
  newer MLIR (one byte for each element) and the format of older MLIR (one bit for each element).
- Replica groups stated by mesh axes (`#stablehlo.replica_group_mesh_axes`) become explicit lists.
- Like XLA, xbuild keeps `sdy.manual_computation`, sharding constraints, sharding groups, collectives and meshes as
  custom calls and frontend attributes.
- MLIR allows attributes without a dialect prefix on every op, such as `kernel_name` in JAX's TPU kernels. xbuild keeps
  their text as frontend attributes `mlir.NAME` and writes it back unchanged. It ignores attributes of other dialects,
  which are lost.
- The operands of a product may have types of different kinds. An integer operand is converted to the type of a float
  operand, and a float operand is converted to the type of a complex operand; if the result has a wider type of the same
  kind, the operand is converted to that type instead.
- An all_to_all that splits one dimension and concatenates another becomes an exchange along the first dimension and a
  rearrangement of the parts.
- A conversion of a complex number to i1 tests only the real part; HLO's convert tests both parts.
- xbuild reads text in the form of PyTorch/XLA (`module @IrToHlo.12`). The tests use hand-written text in that form;
  they do not run PyTorch/XLA itself.
- If a module states 1 replica and 1 partition, xbuild ignores these counts. Replica groups, source-target pairs and
  shardings then determine the number of devices.

The module equals the one that jaxlib's conversion to HLO produces, and its results are bitwise equal, with these
exceptions:

- HLO has no op for CHLO's digamma, erf_inv, erfc, lgamma, polygamma, zeta and bessel_i1e. xbuild uses the `xb`
  functions of the same names, whose formulas differ from XLA's. The results differ in the last digits. For lgamma near
  1 and 2, where the function is nearly 0, they differ by 2e-5 of the value in f32.
- A composite becomes a call to its decomposition. XLA instead restores the CHLO op that the composite names, such as
  `chlo.erf`.
- xbuild keeps functions of complex numbers as HLO ops. XLA's conversion expands exponential, log, log_plus_one,
  logistic, power, rsqrt, tan, tanh, and the inverse and hyperbolic functions into ops on real and imaginary parts.
- acos, acosh, asin, asinh, atanh, cosh and sinh of real numbers become the formulas of XLA's conversion. In text that
  xbuild writes, the attribute `mhlo.opcode` marks each of them as an HLO op. xbuild reads the mark and restores the op;
  XLA ignores the mark.
- jaxlib folds constants during conversion. Its rounding, signs of zero and NaN bits can differ from xbuild's.

## Writing

`module.to_stablehlo()`, `computation.to_stablehlo()` and `xbuild show --stablehlo TARGET` write a program in the pretty
form of MLIR, which JAX and XLA read. `locations=True` and `--locations` add the names and source lines of the program.
`python -m xbuild.reference.stablehlo_table` generates this page from the printer's rules.

xbuild writes programs according to these rules:

- The entry computation is `@main`. Its arguments and results, and the state of a loop, are arrays and tokens. Tuples
  are flattened, and no op represents them.
- The computations of loops, branches and reducers become regions, with one copy for each use. A fusion is written in
  place, and the callee of a `call` becomes a function. Branches capture their operands. A value has the name of its
  instruction, followed by a number if another value of the function already has that name.
- A dynamic dimension is written as `?`, with its bound in `#stablehlo.bounds`. Replica groups are written as lists; -1
  pads the short ones. A reducer with one op is written as the op's name.
- The numbers of replicas and partitions, aliases, donated buffers, shardings and frontend attributes are kept as
  `mhlo.num_replicas`, `mhlo.num_partitions`, `mhlo.input_output_alias`, `jax.buffer_donor`, `mhlo.sharding` and
  `mhlo.frontend_attributes`.
- Shardings in Shardy's text are kept in the same attributes under XLA's names (`xla.sdy.meshes` of the module,
  `xla.sdy.sharding` of ops, arguments and results). A call to a composite is written as a composite.
- The text omits control predecessors, layouts, backend_config on ops other than custom calls, metadata (names and
  lines become locations), and XLA's annotations that do not affect values.
- A send and its send-done become one op at the position of the send. A recv and its recv-done become one op at the
  position of the recv-done, or at the position of the recv if its context leaves the computation.

xbuild refuses the following with the error kind `not_in_stablehlo`: element types s1 and u1, elided constants, a start
without a done in its own computation, in-place collective permutes, select-and-scatter with dilated windows, and the
ops that the table marks as refused.

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
        return "Becomes an argument of the function or of the block."
    rule = lines.get(opcode) or values[opcode]
    text = inspect.getdoc(rule) or ""
    return " ".join(text.partition("\n\n")[0].split())


def main() -> None:
    """Write docs/stablehlo.md, beside the package."""
    path = Path(__file__).parents[2] / "docs" / "stablehlo.md"
    path.write_text(document(), encoding="utf-8")


if __name__ == "__main__":
    main()
