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
    "op": "a function that records one op of HLO",
    "composition": "a function that records several ops",
    "python": "a class, method or function that records nothing",
    "words": "strings, numbers or tuples as attributes, in place of an enumeration or a record",
    "refused": "not provided; the remark gives the reason",
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
ops.ApproxTopK | composition | approx_top_k | the result is exact
ops.ApproxTopKFallback | composition | approx_top_k_fallback | the result is exact
ops.ApproxTopKReductionOutputSize | python | approx_top_k_reduction_output_size |
ops.Atan | composition | atan |
ops.BesselI0e | composition | bessel_i0e |
ops.BesselI1e | composition | bessel_i1e |
ops.Broadcast | op | broadcast | adds leading dimensions; with `dimensions=` it is HLO's broadcast
ops.Collapse | composition | collapse |
ops.Conj | composition | conj |
ops.Constant | op | constant | takes Python numbers and nested lists, too
ops.CreateToken | op | create_token |
ops.CrossReplicaSum | composition | cross_replica_sum |
ops.CustomCallApiVersion | words | custom_call | `api_version="API_VERSION_TYPED_FFI"` and the like
ops.CustomCallSchedule | words | custom_call | `schedule="SCHEDULE_EARLIEST"` and the like
ops.CustomCallWithAliasing | op | custom_call | `output_to_operand_aliasing=`; kept and printed, without effect on a run
ops.CustomCallWithComputation | op | custom_call | `called_computations=`; kept and printed, without effect on a run
ops.CustomCallWithLayout | op | custom_call | `operand_layout_constraints=`; kept and printed, without effect on a run
ops.Digamma | composition | digamma |
ops.Dot | composition | dot | contracts by the ranks of the operands; HLO's dot is xb.dot_general
ops.Eigh | composition | eigh | `epsilon` defaults to that of the element type
ops.Eq | op | eq | records compare
ops.ErfInv | composition | erf_inv |
ops.Erfc | composition | erfc |
ops.Ge | op | ge | records compare
ops.Gt | op | gt | records compare
ops.Igamma | composition | igamma |
ops.IgammaGradA | composition | igamma_grad_a |
ops.Igammac | composition | igammac |
ops.LU | composition | lu | pivots and the permutation count from 0
ops.Le | op | le | records compare
ops.Lgamma | composition | lgamma |
ops.Lt | op | lt | records compare
ops.MultiCollectivePermute | composition | multi_collective_permute | records a tuple of collective-permutes
ops.Ne | op | ne | records compare
ops.NextAfter | composition | next_after |
ops.ProductOfElementaryHouseholderReflectors | composition | product_of_elementary_householder_reflectors |
ops.QR | composition | qr | `full_matrices` defaults to True
ops.QrDecomposition | composition | qr_decomposition |
ops.RandomAlgorithm | words | rng_bit_generator | `algorithm="rng_three_fry"` and the like
ops.RandomGammaGrad | composition | random_gamma_grad |
ops.Reciprocal | composition | reciprocal |
ops.RecvFromHost | op | recv, recv_done | with `is_host_transfer=True`; xb.recv_sync returns only the data
ops.RegularizedIncompleteBeta | composition | regularized_incomplete_beta |
ops.RemoveDynamicDimension | composition | remove_dynamic_dimension | elements beyond the dynamic size are zero
ops.RngNormal | op | rng_normal | records rng
ops.SVD | composition | svd | `epsilon` defaults to that of the element type
ops.SendToHost | composition | send_sync | with `is_host_transfer=True`
ops.SliceInDim | op | slice_in_dim |
ops.Square | composition | square |
ops.TriangularSolveOptions_Transpose | words | triangular_solve | `transpose_a="ADJOINT"` and the like
ops.Zeta | composition | zeta |
XlaBuilder.Build | python | Builder.build |
XlaBuilder.GetShape | python | Value.shape | a property of the value: `x.shape`
XlaBuilder.__init__ | python | Builder |
XlaBuilder.build | python | Builder.build |
XlaBuilder.clear_frontend_attributes | refused | - | as set_frontend_attributes
XlaBuilder.clear_op_metadata | python | scope | a scope ends with its `with` block
XlaBuilder.clear_sharding | refused | - | as set_sharding
XlaBuilder.get_program_shape | python | Computation.program_shape | of the computation that `build` returns
XlaBuilder.get_shape | python | Value.shape | a property of the value: `x.shape`
XlaBuilder.is_constant | python | is_constant |
XlaBuilder.set_frontend_attributes | refused | - | no op reads them; those in HLO text are kept
XlaBuilder.set_op_metadata | python | scope | sets op_name; the source line is always recorded
XlaBuilder.set_sharding | refused | - | ops state what each device does, since nothing partitions; kept in HLO text
XlaBuilder.setup_alias | refused | - | values have no buffers to share; aliases in the header of HLO text are kept
XlaComputation.__init__ | python | parse_hlo | from HLO text; the binary form is not read
XlaComputation.as_hlo_dot_graph | python | viz | `xb.viz(program).render("dot")`
XlaComputation.as_hlo_module | python | Module | `xb.Module(name, computation)`
XlaComputation.as_hlo_text | python | Module.to_hlo | `str(computation)` is the text of one computation
XlaComputation.as_serialized_hlo_module_proto | refused | - | programs are written as HLO text, which XLA reads
XlaComputation.get_hlo_module | python | Module | `xb.Module(name, computation)`
XlaComputation.hash | python | fingerprint |
XlaComputation.name | python | Computation.name | an attribute
XlaComputation.program_shape | python | Computation.program_shape | a property
ChannelHandle | words | send | `channel_id=1`
ConvolutionDimensionNumbers | python | ConvolutionDimensionNumbers | or a string: `"b01f_01io->b01f"`
DotDimensionNumbers | words | dot_general | `lhs_contracting_dims=` and the like
FftType | words | fft | `"RFFT"` and the like
FrontendAttributes | refused | - | as set_frontend_attributes
GatherDimensionNumbers | words | gather | `offset_dims=` and the like
Layout | python | Layout | read and printed, without effect on values
OpMetadata | python | scope | sets op_name; the source line is always recorded
PaddingConfig | words | pad | `[(low, high, interior), ...]`
PaddingConfigDimension | python | PaddingDimension | a tuple (low, high, interior) is accepted, too
PrecisionConfig | words | dot | `precision="highest"` and the like
PrimitiveType | python | PrimitiveType | `xb.f32` and the like
ReplicaGroup | words | all_reduce | `replica_groups=[(0, 1), (2, 3)]`
ResultAccuracy | refused | - | each op has one accuracy, which its docstring states
ScatterDimensionNumbers | words | scatter | `update_window_dims=` and the like
Shape | python | Shape | `xb.f32[2, 3]`
make_convolution_dimension_numbers | python | ConvolutionDimensionNumbers | or a string: `"b01f_01io->b01f"`
make_dot_dimension_numbers | words | dot_general | `lhs_contracting_dims=` and the like
make_padding_config | words | pad | `[(low, high, interior), ...]`
make_replica_groups | words | all_reduce | `replica_groups=[(0, 1), (2, 3)]`
shape_from_pyval | python | constant | `xb.constant(builder, value).shape`
window_padding_type_to_pad_values | words | conv | `padding="SAME"`
"""

_NOTES = {
    "Call": "operands first; a plain function is accepted for every computation",
    "Conditional": "with a pred and two branches, or with an index and any number",
    "CustomCall": "the function is registered by xb.custom_call_target",
    "InfeedWithToken": "called with (token, shape) or (builder, shape)",
    "Iota": "called with (builder, shape, dimension) or (builder, element type, size)",
    "Map": "operands first; all dimensions where none are named",
    "Reduce": "operands first; all dimensions where none are named",
    "Reshape": "accepts an order of dimensions, too",
    "While": "the initial value first, then condition and body",
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
        lines += [f"## {title}", "", "| XlaBuilder | xbuild | kind | remarks |", "|---|---|---|---|"]
        lines += [_line(row) for row in ROWS.values() if _section(row) == section]
        lines.append("")
    return "\n".join(lines)


_HEAD = """# From XlaBuilder to xbuild

Each function of the last Python XlaBuilder (jaxlib 0.6.0; it was removed in 0.6.1), and those that only the C++
XlaBuilder has, with their counterparts in xbuild. Written by `python -m xbuild.reference.migration`; a test checks that
each counterpart exists and that its example runs.
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
