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
    "op": "a function that records one HLO op",
    "composition": "a function that records several HLO ops",
    "python": "a class, method or function that records no op",
    "words": "strings, numbers or tuples, which you pass in place of an enumeration or a record",
    "refused": "not provided; the remark states the reason or the alternative",
}


@frozen
class MigrationRow:
    """A function of XlaBuilder and its counterpart: `xb.target`, or the reason for its absence."""

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
ops.ApproxTopK | composition | approx_top_k | returns the exact result
ops.ApproxTopKFallback | composition | approx_top_k_fallback | returns the exact result
ops.ApproxTopKReductionOutputSize | python | approx_top_k_reduction_output_size |
ops.Atan | composition | atan |
ops.BesselI0e | composition | bessel_i0e |
ops.BesselI1e | composition | bessel_i1e |
ops.Broadcast | op | broadcast | adds leading dimensions; with `dimensions=` it is HLO's broadcast
ops.Collapse | composition | collapse |
ops.Conj | composition | conj |
ops.Constant | op | constant | also accepts Python numbers and nested lists
ops.CreateToken | op | create_token |
ops.CrossReplicaSum | composition | cross_replica_sum |
ops.CustomCallApiVersion | words | custom_call | pass `api_version="API_VERSION_TYPED_FFI"`, for example
ops.CustomCallSchedule | words | custom_call | pass `schedule="SCHEDULE_EARLIEST"`, for example
ops.CustomCallWithAliasing | op | custom_call | `output_to_operand_aliasing=` is printed, but has no effect on a run
ops.CustomCallWithComputation | op | custom_call | `called_computations=` is printed, but has no effect on a run
ops.CustomCallWithLayout | op | custom_call | `operand_layout_constraints=` is printed, but has no effect on a run
ops.Digamma | composition | digamma |
ops.Dot | composition | dot | chooses the contraction from the ranks of the operands; HLO's dot is xb.dot_general
ops.Eigh | composition | eigh | `epsilon` defaults to the machine epsilon of the element type
ops.Eq | op | eq | records a compare op
ops.ErfInv | composition | erf_inv |
ops.Erfc | composition | erfc |
ops.Ge | op | ge | records a compare op
ops.Gt | op | gt | records a compare op
ops.Igamma | composition | igamma |
ops.IgammaGradA | composition | igamma_grad_a |
ops.Igammac | composition | igammac |
ops.LU | composition | lu | numbers the pivots and the permutation from 0
ops.Le | op | le | records a compare op
ops.Lgamma | composition | lgamma |
ops.Lt | op | lt | records a compare op
ops.MultiCollectivePermute | composition | multi_collective_permute | records a tuple of collective-permutes
ops.Ne | op | ne | records a compare op
ops.NextAfter | composition | next_after |
ops.ProductOfElementaryHouseholderReflectors | composition | product_of_elementary_householder_reflectors |
ops.QR | composition | qr | `full_matrices` defaults to True
ops.QrDecomposition | composition | qr_decomposition |
ops.RandomAlgorithm | words | rng_bit_generator | pass `algorithm="rng_three_fry"`, for example
ops.RandomGammaGrad | composition | random_gamma_grad |
ops.Reciprocal | composition | reciprocal |
ops.RecvFromHost | op | recv, recv_done | pass `is_host_transfer=True`; xb.recv_sync returns only the data
ops.RegularizedIncompleteBeta | composition | regularized_incomplete_beta |
ops.RemoveDynamicDimension | composition | remove_dynamic_dimension | sets elements beyond the dynamic size to zero
ops.RngNormal | op | rng_normal | records an rng op
ops.SVD | composition | svd | `epsilon` defaults to the machine epsilon of the element type
ops.SendToHost | composition | send_sync | pass `is_host_transfer=True`
ops.SliceInDim | op | slice_in_dim |
ops.Square | composition | square |
ops.TriangularSolveOptions_Transpose | words | triangular_solve | pass `transpose_a="ADJOINT"`, for example
ops.Zeta | composition | zeta |
XlaBuilder.Build | python | Builder.build |
XlaBuilder.GetShape | python | Value.shape | read the property of the value: `x.shape`
XlaBuilder.__init__ | python | Builder |
XlaBuilder.build | python | Builder.build |
XlaBuilder.clear_frontend_attributes | refused | - | no op reads frontend attributes
XlaBuilder.clear_op_metadata | python | scope | leave the `with` block to end the scope
XlaBuilder.clear_sharding | refused | - | a builder has no sharding to clear
XlaBuilder.get_program_shape | python | Computation.program_shape | a property of the computation that `build` returns
XlaBuilder.get_shape | python | Value.shape | read the property of the value: `x.shape`
XlaBuilder.is_constant | python | is_constant |
XlaBuilder.set_frontend_attributes | refused | - | no op reads frontend attributes; xbuild keeps those in HLO text
XlaBuilder.set_op_metadata | python | scope | sets op_name; xbuild always records the source line
XlaBuilder.set_sharding | refused | - | use `xb.shard.annotated`; xbuild keeps shardings in HLO text
XlaBuilder.setup_alias | refused | - | values have no buffers to share; xbuild keeps aliases in the header of HLO text
XlaComputation.__init__ | python | parse_hlo | reads HLO text, but not the binary form
XlaComputation.as_hlo_dot_graph | python | viz | call `xb.viz(program).render("dot")`
XlaComputation.as_hlo_module | python | Module | call `xb.Module(name, computation)`
XlaComputation.as_hlo_text | python | Module.to_hlo | writes a module; `str(computation)` is the text of one computation
XlaComputation.as_serialized_hlo_module_proto | refused | - | write the program as HLO text, which XLA reads
XlaComputation.get_hlo_module | python | Module | call `xb.Module(name, computation)`
XlaComputation.hash | python | fingerprint |
XlaComputation.name | python | Computation.name | read the attribute
XlaComputation.program_shape | python | Computation.program_shape | read the property
ChannelHandle | words | send | pass `channel_id=1`, for example
ConvolutionDimensionNumbers | python | ConvolutionDimensionNumbers | accepts text, too: `"b01f_01io->b01f"`
DotDimensionNumbers | words | dot_general | pass `lhs_contracting_dims=` and similar arguments
FftType | words | fft | pass `"RFFT"`, for example
FrontendAttributes | refused | - | no op reads frontend attributes
GatherDimensionNumbers | words | gather | pass `offset_dims=` and similar arguments
Layout | python | Layout | layouts are read and printed, but have no effect on values
OpMetadata | python | scope | sets op_name; xbuild always records the source line
PaddingConfig | words | pad | pass `[(low, high, interior), ...]`
PaddingConfigDimension | python | PaddingDimension | also accepts a tuple (low, high, interior)
PrecisionConfig | words | dot | pass `precision="highest"`, for example
PrimitiveType | python | PrimitiveType | write `xb.f32`, for example
ReplicaGroup | words | all_reduce | pass `replica_groups=[(0, 1), (2, 3)]`, for example
ResultAccuracy | refused | - | each op has a single accuracy, which its docstring states
ScatterDimensionNumbers | words | scatter | pass `update_window_dims=` and similar arguments
Shape | python | Shape | write `xb.f32[2, 3]`, for example
make_convolution_dimension_numbers | python | ConvolutionDimensionNumbers | accepts text, too: `"b01f_01io->b01f"`
make_dot_dimension_numbers | words | dot_general | pass `lhs_contracting_dims=` and similar arguments
make_padding_config | words | pad | pass `[(low, high, interior), ...]`
make_replica_groups | words | all_reduce | pass `replica_groups=[(0, 1), (2, 3)]`, for example
shape_from_pyval | python | constant | read `xb.constant(builder, value).shape`
window_padding_type_to_pad_values | words | conv | pass `padding="SAME"`, for example
"""

_NOTES = {
    "Call": "takes the operands first, and accepts a plain function in place of a computation",
    "Conditional": "takes a pred and two branches, or an index and any number of branches",
    "CustomCall": "calls a function that you register with xb.custom_call_target",
    "InfeedWithToken": "takes (token, shape) or (builder, shape)",
    "Iota": "takes (builder, shape, dimension) or (builder, element type, size)",
    "Map": "takes the operands first; `dimensions` defaults to all dimensions",
    "Reduce": "takes the operands first; `dimensions` defaults to all dimensions",
    "Reshape": "also accepts an order of dimensions",
    "While": "takes the initial value first, then the condition and the body",
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
    lines = [_HEAD, "The kinds are:", "", *kinds, ""]
    for section, title in _TITLES.items():
        lines += [f"## {title}", "", "| XlaBuilder | xbuild | kind | remarks |", "|---|---|---|---|"]
        lines += [_line(row) for row in ROWS.values() if _section(row) == section]
        lines.append("")
    return "\n".join(lines)


_HEAD = """# From XlaBuilder to xbuild

This page lists the functions of the last Python XlaBuilder (jaxlib 0.6.0; removed in 0.6.1) and the functions that only
the C++ XlaBuilder has, with their counterparts in xbuild. `python -m xbuild.reference.migration` generates the page. A
test confirms that each counterpart exists and that its example runs.
"""


def _line(row: MigrationRow) -> str:
    places = ", ".join(f"`xb.{target}`" for target in row.target.split(", ")) if row.target != "-" else "–"
    return f"| `{row.name.removeprefix('ops.')}` | {places} | {row.kind} | {_capitalized(row.note) or _sentence(row)} |"


def _capitalized(note: str) -> str:
    """A note as a sentence."""
    return f"{note[:1].upper()}{note[1:]}." if note else ""


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
