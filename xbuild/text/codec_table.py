"""The spelling of each op's attributes in HLO text: by their types, or by a row of the op."""

from __future__ import annotations

import functools
from typing import Any

import attrs

from shape_inference import PrimitiveType

from ..core.op import OPS
from .async_sugar import CALLS
from .custom_codecs import (
    ALIASES,
    BRANCHES,
    CALLED,
    CHANNEL,
    CHANNEL_OF_START,
    COMPARED,
    CONFIG,
    CONSTRAINTS,
    CONTEXTS,
    DOMAIN,
    EXCHANGE,
    FIXED_ROOT,
    GROUPS,
    LENGTH,
    LITERAL,
    MAPPED,
    OUTFED,
    PAIRS_ELSEWHERE,
    PREFERRED,
    SLICE,
    shard_count,
)
from .spelling import (
    ALWAYS,
    CHOICE,
    DIMS,
    FLAG,
    LABELS,
    ONE_DIM,
    SLICES,
    WINDOW,
    Attribute,
    Spelling,
    derived,
    word_for,
)

SLICE_SIZES = Attribute("slice_sizes", "slice_sizes", SLICES, ())

# A string is an attribute that is spelled by its type, under its own name. The order is XLA's.
ROWS: dict[str, tuple[str | Spelling, ...]] = {
    "all_gather": (
        "channel_id", GROUPS, Attribute("all_gather_dimension", "dimensions", ONE_DIM), "use_global_device_ids",
        shard_count("all_gather_dimension", grows=True),
    ),
    "all_gather_start": (
        "channel_id", GROUPS, Attribute("all_gather_dimension", "dimensions", ONE_DIM), "use_global_device_ids",
        shard_count("all_gather_dimension", grows=True, of_start=True),
    ),
    "all_reduce": ("channel_id", GROUPS, "use_global_device_ids", "to_apply"),
    "all_reduce_start": ("channel_id", GROUPS, "use_global_device_ids", "to_apply"),
    "all_to_all": ("channel_id", GROUPS, EXCHANGE),
    "broadcast": (
        derived("sizes", lambda parsed: parsed.array().dims), Attribute("dimensions", "dimensions", DIMS, missing=()),
    ),
    "cholesky": (Attribute("lower", "lower", FLAG, False),),
    "async_start": ("async_execution_thread", CALLS, CONTEXTS),
    "collective_broadcast": ("channel_id", GROUPS, FIXED_ROOT),
    "collective_permute": ("channel_id", "source_target_pairs", SLICE_SIZES),
    "collective_permute_start": ("channel_id", "source_target_pairs", SLICE_SIZES, CONTEXTS),
    "compare": ("direction", COMPARED),
    "concatenate": (Attribute("dimension", "dimensions", ONE_DIM),),
    "conditional": (BRANCHES,),
    "constant": (derived("literal", lambda parsed: parsed.inside),),
    "convolution": (
        "window", Attribute("dimension_numbers", "dim_labels", LABELS), "feature_group_count", "batch_group_count",
        "operand_precision", PREFERRED,
    ),
    "custom_call": (
        derived("shape", lambda parsed: parsed.result()), CONFIG, Attribute("window", "window", WINDOW),
        Attribute("dim_labels", "dim_labels", LABELS), "feature_group_count", "batch_group_count", "operand_precision",
        "padding_type", "custom_call_target",
        Attribute("operand_layout_constraints", "operand_layout_constraints", CONSTRAINTS),
        "custom_call_has_side_effect", LITERAL,
        Attribute("output_to_operand_aliasing", "output_to_operand_aliasing", ALIASES, ()), "schedule", "api_version",
        CALLED,
    ),
    "domain": (DOMAIN,),
    "dot": (
        "lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims", "operand_precision",
        PREFERRED,
    ),
    "dynamic_reshape": (
        derived("new_size_bounds", lambda parsed: parsed.array().dims),
        derived("dims_are_dynamic", lambda parsed: parsed.array().dynamic or (False,) * parsed.array().rank),
    ),
    "fusion": (
        "kind", Attribute("output_to_operand_aliasing", "output_to_operand_aliasing", ALIASES, ()), "calls",
    ),
    "get_dimension_size": (Attribute("dimension", "dimensions", ONE_DIM),),
    "infeed": (derived("shape", lambda parsed: parsed.element(0, 2)), "infeed_config"),
    "map": (MAPPED, "to_apply"),
    "outfeed": (OUTFED, "outfeed_config"),
    "parameter": (derived("number", lambda parsed: parsed.inside), derived("shape", lambda parsed: parsed.result())),
    "ragged_all_to_all": ("channel_id", GROUPS),
    "ragged_dot": (
        "lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims", "lhs_ragged_dims",
        "rhs_group_dims", "operand_precision", PREFERRED,
    ),
    "recv": (derived("shape", lambda parsed: parsed.element(0, 3)), CHANNEL, "is_host_transfer", PAIRS_ELSEWHERE),
    "recv_done": (CHANNEL_OF_START, "is_host_transfer"),
    "reduce": ("dimensions", "to_apply"),
    "reduce_scatter": (
        "channel_id", GROUPS, "use_global_device_ids",
        Attribute("scatter_dimension", "dimensions", ONE_DIM), "to_apply",
        shard_count("scatter_dimension", grows=False),
    ),
    "reduce_window": ("window", "to_apply"),
    "reshape": (derived("new_sizes", lambda parsed: parsed.array().dims),),
    "rng_bit_generator": ("algorithm", derived("shape", lambda parsed: parsed.element(1, 2))),
    "scaled_dot": (
        "lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims", "operand_precision",
        PREFERRED,
    ),
    "scan": (
        Attribute("dimension", "dimensions", ONE_DIM), "num_carries", "is_reverse",
        Attribute("is_associative", "is_associative", FLAG, missing=False), "to_apply", LENGTH,
    ),
    "scatter": (
        "update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "input_batching_dims",
        "scatter_indices_batching_dims", "index_vector_dim", "indices_are_sorted", "unique_indices", "to_apply",
    ),
    "select_and_scatter": ("window", "select", "scatter"),
    "send": (CHANNEL, "is_host_transfer", PAIRS_ELSEWHERE),
    "send_done": (CHANNEL_OF_START, "is_host_transfer"),
    "set_dimension_size": (Attribute("dimension", "dimensions", ONE_DIM),),
    "slice": (SLICE,),
    "sort": (Attribute("dimension", "dimensions", ONE_DIM), "is_stable", "to_apply"),
    "topk": ("k", Attribute("largest", "largest", FLAG)),
    "transpose": (Attribute("permutation", "dimensions", DIMS),),
    "triangular_solve": (
        "left_side", "lower", "unit_diagonal", Attribute("transpose_a", "transpose_a", CHOICE, missing="NO_TRANSPOSE"),
    ),
}  # fmt: skip


@functools.cache
def spellings(opcode: str) -> tuple[Spelling, ...]:
    """The spelling of each attribute of an op, in text order."""
    record = OPS[opcode].attributes
    fields = attrs.fields_dict(record) if record else {}
    row = ROWS.get(opcode, tuple(fields))
    return tuple(_by_type(fields[each]) if isinstance(each, str) else each for each in row)


def _by_type(field: attrs.Attribute[Any]) -> Spelling:
    word = word_for(field.type)
    if word is None:
        of_type = field.type in (PrimitiveType, PrimitiveType | None)
        return derived(field.name, lambda parsed: parsed.array().dtype if of_type else parsed.array())
    return Attribute(field.name, field.name, word, _omitted_value(field))


def _omitted_value(field: attrs.Attribute[Any]) -> Any:
    """The value that the text omits: the default, but False for a flag, which XLA reads then."""
    if field.type is bool:
        return False
    return ALWAYS if field.default is attrs.NOTHING else field.default
