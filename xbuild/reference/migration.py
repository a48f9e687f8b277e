"""XlaBuilder's functions and their counterparts: `python -m xbuild.reference.migration` writes docs/migration.md."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

import xbuild

from .op_names import NAMES

KINDS = {
    "op": "an op of HLO, its comfortable form included",
    "composition": "a function that records ops",
    "python": "an object, method or function of Python that records nothing",
    "words": "an attribute's words in place of an enumeration or a record",
    "refused": "not there, for the reason that is given",
}


@frozen
class MigrationRow:
    """A function of XlaBuilder and its counterpart: `xb.target`, or the reason why there is none."""

    name: str
    kind: str
    target: str
    note: str = ""

    def found(self) -> list[Any]:
        """The objects that the targets name. Raises AttributeError for a name that does not exist."""
        return [_thing(target) for target in self.target.split(", ") if target != "-"]


def _thing(target: str) -> Any:
    """The object behind a dotted name in `xb`; for a field of a class, which has no value there, its declaration."""
    owner, _, last = target.rpartition(".")
    if not owner:
        return getattr(xbuild, target)
    found = getattr(xbuild, owner)
    fields = attrs.fields_dict(found) if attrs.has(found) else {}
    return fields[last] if last in fields else getattr(found, last)


# Beside the ops of xbuild.reference.op_names: name | kind | target in xb | note.
_OTHERS = """
ops.ApproxTopK | composition | approx_top_k | always exact
ops.ApproxTopKFallback | composition | approx_top_k_fallback | always exact
ops.ApproxTopKReductionOutputSize | python | approx_top_k_reduction_output_size |
ops.Atan | composition | atan |
ops.BesselI0e | composition | bessel_i0e |
ops.BesselI1e | composition | bessel_i1e |
ops.Broadcast | op | broadcast | new leading dimensions; with `dimensions=` HLO's
ops.Collapse | composition | collapse |
ops.Conj | composition | conj |
ops.Constant | op | constant | numbers and lists, too
ops.CreateToken | op | create_token |
ops.CrossReplicaSum | composition | cross_replica_sum |
ops.CustomCallApiVersion | words | custom_call | `api_version="API_VERSION_TYPED_FFI"` and the like
ops.CustomCallSchedule | words | custom_call | `schedule="SCHEDULE_EARLIEST"` and the like
ops.CustomCallWithAliasing | op | custom_call | `output_to_operand_aliasing=`, kept and printed back
ops.CustomCallWithComputation | op | custom_call | `called_computations=`, kept and printed back
ops.CustomCallWithLayout | op | custom_call | `operand_layout_constraints=`, kept and printed back
ops.Digamma | composition | digamma |
ops.Dot | composition | dot | by ranks; HLO's dot is xb.dot_general
ops.Eigh | composition | eigh | `epsilon` is the element type's own where none is given
ops.Eq | op | eq | compare
ops.ErfInv | composition | erf_inv |
ops.Erfc | composition | erfc |
ops.Ge | op | ge | compare
ops.Gt | op | gt | compare
ops.Igamma | composition | igamma |
ops.IgammaGradA | composition | igamma_grad_a |
ops.Igammac | composition | igammac |
ops.LU | composition | lu | pivots and permutation count from 0
ops.Le | op | le | compare
ops.Lgamma | composition | lgamma |
ops.Lt | op | lt | compare
ops.MultiCollectivePermute | composition | multi_collective_permute | a tuple of collective_permutes
ops.Ne | op | ne | compare
ops.NextAfter | composition | next_after |
ops.ProductOfElementaryHouseholderReflectors | composition | product_of_elementary_householder_reflectors |
ops.QR | composition | qr | `full_matrices` is True where it is not given
ops.QrDecomposition | composition | qr_decomposition |
ops.RandomAlgorithm | words | rng_bit_generator | `algorithm="rng_three_fry"` and the like
ops.RandomGammaGrad | composition | random_gamma_grad |
ops.Reciprocal | composition | reciprocal |
ops.RecvFromHost | op | recv, recv_done | `is_host_transfer=True`; recv_sync gives the data alone
ops.RegularizedIncompleteBeta | composition | regularized_incomplete_beta |
ops.RemoveDynamicDimension | composition | remove_dynamic_dimension | what the operand does not reach is zero
ops.RngNormal | op | rng_normal | rng
ops.SVD | composition | svd | `epsilon` is the element type's own where none is given
ops.SendToHost | composition | send_sync | `is_host_transfer=True`
ops.SliceInDim | op | slice_in_dim |
ops.Square | composition | square |
ops.TriangularSolveOptions_Transpose | words | triangular_solve | `transpose_a="ADJOINT"` and the like
ops.Zeta | composition | zeta |
XlaBuilder.Build | python | Builder.build |
XlaBuilder.GetShape | python | Value.shape | of the value: `x.shape`
XlaBuilder.__init__ | python | Builder |
XlaBuilder.build | python | Builder.build |
XlaBuilder.clear_frontend_attributes | refused | - | follows set_frontend_attributes
XlaBuilder.clear_op_metadata | python | scope | a scope ends with its `with` block
XlaBuilder.clear_sharding | refused | - | follows set_sharding
XlaBuilder.get_program_shape | python | Computation.program_shape | of what `build` gives
XlaBuilder.get_shape | python | Value.shape | of the value: `x.shape`
XlaBuilder.is_constant | python | is_constant |
XlaBuilder.set_frontend_attributes | refused | - | they mean nothing to any op; those in HLO text are kept
XlaBuilder.set_op_metadata | python | scope | op_name; the source line is the user's own, always
XlaBuilder.set_sharding | refused | - | no partitioner reads it: ops say what each device does; in HLO text it is kept
XlaBuilder.setup_alias | refused | - | values have no buffers that could be shared; in the header of HLO text it is kept
XlaComputation.__init__ | python | parse_hlo | from HLO text; the binary form is not read
XlaComputation.as_hlo_dot_graph | python | viz | `xb.viz(program).render("dot")`
XlaComputation.as_hlo_module | python | Module | `xb.Module(name, computation)`
XlaComputation.as_hlo_text | python | Module.to_hlo | `str(computation)` is the text of one computation
XlaComputation.as_serialized_hlo_module_proto | refused | - | HLO text is the one form that is written; XLA reads it
XlaComputation.get_hlo_module | python | Module | `xb.Module(name, computation)`
XlaComputation.hash | python | fingerprint |
XlaComputation.name | python | Computation.name | a field
XlaComputation.program_shape | python | Computation.program_shape | its signature
ChannelHandle | words | send | `channel_id=1`
ConvolutionDimensionNumbers | python | ConvolutionDimensionNumbers | or letters: `"b01f_01io->b01f"`
DotDimensionNumbers | words | dot_general | `lhs_contracting_dims=` and the like
FftType | words | fft | `"RFFT"` and the like
FrontendAttributes | refused | - | follows set_frontend_attributes
GatherDimensionNumbers | words | gather | `offset_dims=` and the like
Layout | python | Layout | printed, never computed with
OpMetadata | python | scope | op_name; the source line is the user's own, always
PaddingConfig | words | pad | `[(low, high, interior), ...]`
PaddingConfigDimension | python | PaddingDimension | or a tuple (low, high, interior)
PrecisionConfig | words | dot | `precision="highest"` and the like
PrimitiveType | python | PrimitiveType | `xb.f32` and the like
ReplicaGroup | words | all_reduce | `replica_groups=[(0, 1), (2, 3)]`
ResultAccuracy | refused | - | each op has the one accuracy that its docstring states
ScatterDimensionNumbers | words | scatter | `update_window_dims=` and the like
Shape | python | Shape | `xb.f32[2, 3]`
make_convolution_dimension_numbers | python | ConvolutionDimensionNumbers | or letters: `"b01f_01io->b01f"`
make_dot_dimension_numbers | words | dot_general | `lhs_contracting_dims=` and the like
make_padding_config | words | pad | `[(low, high, interior), ...]`
make_replica_groups | words | all_reduce | `replica_groups=[(0, 1), (2, 3)]`
shape_from_pyval | python | constant | `xb.constant(builder, value).shape`
window_padding_type_to_pad_values | words | conv | `padding="SAME"`
"""

_NOTES = {
    "Call": "operands first; a plain function is accepted for every computation",
    "Conditional": "both forms",
    "CustomCall": "the function is registered by xb.custom_call_target",
    "InfeedWithToken": "(token, shape) or (builder, shape)",
    "Iota": "(builder, shape, dimension) or (builder, element type, size)",
    "Map": "operands first; all dimensions where none are named",
    "Reduce": "operands first; all dimensions where none are named",
    "Reshape": "an order of dimensions as well",
    "While": "init first, then condition and body",
}


def _rows() -> Iterator[MigrationRow]:
    ops: dict[str, list[str]] = {}
    for names in NAMES.values():
        if names.xla_builder:
            ops.setdefault(names.xla_builder, []).append(names.name)
    for name, targets in ops.items():
        own = _snake(name)
        forms = [own] if own not in targets and hasattr(xbuild, own) else []
        yield MigrationRow(f"ops.{name}", "op", ", ".join([*forms, *targets]), _NOTES.get(name, ""))
    for line in _OTHERS.strip().splitlines():
        yield MigrationRow(*(cell.strip() for cell in line.split("|")))


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


_TITLES = {
    "ops": "The ops",
    "XlaBuilder": "The builder",
    "XlaComputation": "Computations",
    "": "Records and helpers",
}


def _section(row: MigrationRow) -> str:
    return row.name.partition(".")[0] if "." in row.name else ""


_ORDER = list(_TITLES)
ROWS: dict[str, MigrationRow] = {
    row.name: row for row in sorted(_rows(), key=lambda row: (_ORDER.index(_section(row)), row.name.lower()))
}


def document() -> str:
    """The migration table as Markdown."""
    kinds = [f"- **{kind}**: {words}" for kind, words in KINDS.items()]
    lines = [_HEAD, "Kinds:", "", *kinds, ""]
    for section, title in _TITLES.items():
        lines += [f"## {title}", "", "| XlaBuilder | here | kind | remarks |", "|---|---|---|---|"]
        lines += [_line(row) for row in ROWS.values() if _section(row) == section]
        lines.append("")
    return "\n".join(lines)


_HEAD = """# From XlaBuilder to xbuild

Each function of the last Python XlaBuilder (jaxlib 0.6.0, gone in 0.6.1), those that only the C++ one has, and where it
went. Made by `python -m xbuild.reference.migration` from its table; a test holds that each target is
there and that its example runs.
"""


def _line(row: MigrationRow) -> str:
    places = ", ".join(f"`xb.{target}`" for target in row.target.split(", ")) if row.target != "-" else "–"
    return f"| `{row.name.removeprefix('ops.')}` | {places} | {row.kind} | {row.note or _sentence(row)} |"


def _sentence(row: MigrationRow) -> str:
    """The first sentence of the docstring of a row's target."""
    text = inspect.getdoc(row.found()[0]) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


def main() -> None:
    """Write docs/migration.md, beside the package."""
    path = Path(__file__).parents[2] / "docs" / "migration.md"
    path.write_text(document(), encoding="utf-8")


if __name__ == "__main__":
    main()
