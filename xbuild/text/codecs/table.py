"""The codec of each op's attributes in HLO text: by the types of the attributes, or by a row of the op's own."""

from __future__ import annotations

import functools
from typing import Any

import attrs

from shape_inference import PrimitiveType

from ...core.op import OPS
from ..spelling.spelling import ALWAYS, Attribute, Spelling, told
from ..spelling.words import CHOICE, DIMS, FLAG, LABELS, ONE_DIM, SLICES, WINDOW, word_for
from .calls import ALIASES, CALLED, CONFIG, CONSTRAINTS, LENGTH, LITERAL
from .custom_codecs import (
    BRANCHES,
    CHANNEL,
    CHANNEL_OF_START,
    COMPARED,
    CONTEXTS,
    DOMAIN,
    EXCHANGE,
    GROUPS,
    MAPPED,
    OUTFED,
    PAIRS_ELSEWHERE,
    PREFERRED,
    SLICE,
    shards,
)
from .sugar import CALLS

SLICE_SIZES = Attribute("slice_sizes", "slice_sizes", SLICES, ())

# What is no string here goes by its type, under its own name; the order is XLA's.
ROWS: dict[str, tuple[str | Spelling, ...]] = {
    "all_gather": (
        "channel_id", GROUPS, Attribute("all_gather_dimension", "dimensions", ONE_DIM), "use_global_device_ids",
        shards("all_gather_dimension", grows=True),
    ),
    "all_gather_start": (
        "channel_id", GROUPS, Attribute("all_gather_dimension", "dimensions", ONE_DIM), "use_global_device_ids",
        shards("all_gather_dimension", grows=True, of_start=True),
    ),
    "all_reduce": ("channel_id", GROUPS, "use_global_device_ids", "to_apply"),
    "all_reduce_start": ("channel_id", GROUPS, "use_global_device_ids", "to_apply"),
    "all_to_all": ("channel_id", GROUPS, EXCHANGE),
    "broadcast": (
        told("sizes", lambda parsed: parsed.array().dims), Attribute("dimensions", "dimensions", DIMS, missing=()),
    ),
    "cholesky": (Attribute("lower", "lower", FLAG, False),),
    "async_start": ("async_execution_thread", CALLS, CONTEXTS),
    "collective_broadcast": ("channel_id", GROUPS),
    "collective_permute": ("channel_id", "source_target_pairs", SLICE_SIZES),
    "collective_permute_start": ("channel_id", "source_target_pairs", SLICE_SIZES, CONTEXTS),
    "compare": ("direction", COMPARED),
    "concatenate": (Attribute("dimension", "dimensions", ONE_DIM),),
    "conditional": (BRANCHES,),
    "constant": (told("literal", lambda parsed: parsed.inside),),
    "convolution": (
        "window", Attribute("dimension_numbers", "dim_labels", LABELS), "feature_group_count", "batch_group_count",
        "operand_precision", PREFERRED,
    ),
    "custom_call": (
        told("shape", lambda parsed: parsed.result()), CONFIG, Attribute("window", "window", WINDOW),
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
        told("new_size_bounds", lambda parsed: parsed.array().dims),
        told("dims_are_dynamic", lambda parsed: parsed.array().dynamic or (False,) * parsed.array().rank),
    ),
    "fusion": (
        "kind", Attribute("output_to_operand_aliasing", "output_to_operand_aliasing", ALIASES, ()), "calls",
    ),
    "get_dimension_size": (Attribute("dimension", "dimensions", ONE_DIM),),
    "infeed": (told("shape", lambda parsed: parsed.element(0, 2)), "infeed_config"),
    "map": (MAPPED, "to_apply"),
    "outfeed": (OUTFED, "outfeed_config"),
    "parameter": (told("number", lambda parsed: parsed.inside), told("shape", lambda parsed: parsed.result())),
    "ragged_all_to_all": ("channel_id", GROUPS),
    "ragged_dot": (
        "lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims", "lhs_ragged_dims",
        "rhs_group_dims", "operand_precision", PREFERRED,
    ),
    "recv": (told("shape", lambda parsed: parsed.element(0, 3)), CHANNEL, "is_host_transfer", PAIRS_ELSEWHERE),
    "recv_done": (CHANNEL_OF_START, "is_host_transfer"),
    "reduce": ("dimensions", "to_apply"),
    "reduce_scatter": (
        "channel_id", GROUPS, "use_global_device_ids",
        Attribute("scatter_dimension", "dimensions", ONE_DIM), "to_apply", shards("scatter_dimension", grows=False),
    ),
    "reduce_window": ("window", "to_apply"),
    "reshape": (told("new_sizes", lambda parsed: parsed.array().dims),),
    "rng_bit_generator": ("algorithm", told("shape", lambda parsed: parsed.element(1, 2))),
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
    """How each attribute of an op is spelled, in the order of the text."""
    record = OPS[opcode].attributes
    fields = attrs.fields_dict(record) if record else {}
    row = ROWS.get(opcode, tuple(fields))
    return tuple(_by_type(fields[each]) if isinstance(each, str) else each for each in row)


def _by_type(field: attrs.Attribute[Any]) -> Spelling:
    word = word_for(field.type)
    if word is None:
        of_type = field.type in (PrimitiveType, PrimitiveType | None)
        return told(field.name, lambda parsed: parsed.array().dtype if of_type else parsed.array())
    return Attribute(field.name, field.name, word, _left_out(field))


def _left_out(field: attrs.Attribute[Any]) -> Any:
    """The value that text leaves out: the default, but of a flag always False, which is what XLA then reads."""
    if field.type is bool:
        return False
    return ALWAYS if field.default is attrs.NOTHING else field.default
