"""The kinds of all errors of xbuild; a published kind is never renamed."""

from __future__ import annotations

SHAPE_KINDS = frozenset({
    "arity_mismatch", "attribute_length_mismatch", "bad_order", "dimension_mismatch", "dimension_out_of_range",
    "divisibility", "duplicate_dimension", "element_count_mismatch", "element_type_mismatch",
    "element_type_unsupported", "index_out_of_range", "invalid_attribute", "invalid_group", "negative_size",
    "non_positive", "non_scalar", "not_array", "not_permutation", "not_tuple", "overflow", "rank_mismatch",
    "rank_too_small", "signature_mismatch", "token_expected",
})  # fmt: skip

BUILD_KINDS = frozenset({
    "builder_finished", "foreign_value", "immutable", "invalid_name", "invalid_operand", "missing_parameter",
    "duplicate_parameter", "nested_too_deep", "no_builder", "not_a_computation", "not_concrete", "not_copied",
    "too_many_calls",
})  # fmt: skip

SCHEDULE_KINDS = frozenset({
    "bad_pairs", "bad_schedule", "channel_kind_mix", "companion_conflict", "cycle", "data_dependent", "deadlock",
    "device_out_of_range", "disallowed_computation", "done_channel_mismatch", "done_kind_mismatch",
    "duplicate_channel", "duplicate_done", "group_disagreement", "host_flag_mismatch", "invalid_group",
    "mispaired", "missing_done", "missing_participant", "missing_recv", "missing_send", "missing_start",
    "nest_mismatch",
    "not_partitioned", "peer_mismatch", "race", "reducer_mismatch", "self_send", "shape_mismatch", "start_misused",
    "trip_count_mismatch", "variance_broken",
})  # fmt: skip

RUN_KINDS = frozenset({
    "argument_mismatch", "collective_mismatch", "deadlock", "infeed_starved", "interrupted", "limit_bytes",
    "limit_seconds", "limit_trips", "raised", "transfer_mismatch", "unregistered_target",
})  # fmt: skip

ENGINE_KINDS = frozenset({"engine_failed", "engine_unsupported", "missing_extra", "package_conflict"})

TEXT_KINDS = frozenset({
    "duplicate_attribute", "duplicate_name", "duplicate_parameter", "elided_constant", "invalid_attribute",
    "invalid_literal", "missing_attribute", "missing_parameter", "missing_shape", "not_in_stablehlo", "shape_mismatch",
    "syntax", "undefined_name", "unknown_attribute", "unknown_opcode",
})  # fmt: skip

STRICT_KINDS = frozenset({
    "division_by_zero", "division_overflow", "index_clamped", "inf_born", "nan_born", "nan_converted",
    "promise_broken", "race", "shift_out_of_range", "undefined_read", "update_dropped", "value_out_of_range",
    "variance_broken",
})  # fmt: skip

REPLICA_KINDS = frozenset({
    "duplicate_replica", "duplicate_source", "duplicate_target", "maximum_too_small", "missing_replica",
    "nested_replicate", "no_replicas", "ragged_groups", "replica_out_of_range", "split_count_mismatch",
    "structure_mismatch",
})  # fmt: skip

SIZE_KINDS = frozenset({"too_many_states", "tuple_too_large"})

VARIANCE_KINDS = frozenset({
    "already_varying", "bilinear_on_unreduced", "branch_type_mismatch", "carry_type_mismatch", "divergent_collective",
    "mixed_axis_state", "nonlinear_on_unreduced", "nonzero_pad_on_unreduced", "out_spec_not_replicated",
    "state_mismatch", "unbound_axis", "unsupported_cast",
})  # fmt: skip

SHARDING_KINDS = frozenset({
    "bad_reduction", "device_index_out_of_range", "device_index_size", "grid_axes_duplicate", "grid_axis_duplicated",
    "grid_axis_negative", "grid_axis_out_of_range", "grid_rank_zero", "halo_and_offsets_exclusive", "halo_count",
    "missing_send", "offsets_decreasing", "offsets_wrong_size", "sharding_conflict", "shift_axis_not_in_group",
})  # fmt: skip

DERIVATIVE_KINDS = frozenset({"not_differentiable"})

EDIT_KINDS = frozenset({"condition_not_held", "in_use", "not_a_call", "used_too_early"})

KINDS = (
    SHAPE_KINDS
    | SIZE_KINDS
    | REPLICA_KINDS
    | DERIVATIVE_KINDS
    | BUILD_KINDS
    | EDIT_KINDS
    | VARIANCE_KINDS
    | SHARDING_KINDS
    | SCHEDULE_KINDS
    | RUN_KINDS
    | ENGINE_KINDS
    | STRICT_KINDS
    | TEXT_KINDS
)
