"""The pretty form of each op that has one; the words of a row are explained in `forms.py`."""

from __future__ import annotations

from collections.abc import Mapping

_SAME = (
    "abs",
    "add",
    "and",
    "atan2",
    "cbrt",
    "ceil",
    "clamp",
    "convert",
    "cosine",
    "count_leading_zeros",
    "divide",
    "exponential",
    "exponential_minus_one",
    "floor",
    "imag",
    "log",
    "log_plus_one",
    "logistic",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "not",
    "or",
    "popcnt",
    "power",
    "real",
    "remainder",
    "round_nearest_afz",
    "round_nearest_even",
    "rsqrt",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sine",
    "sqrt",
    "subtract",
    "tan",
    "tanh",
    "uniform_dequantize",
    "uniform_quantize",
    "xor",
)
_FUNCTION = (
    "bitcast_convert",
    "dynamic_pad",
    "dynamic_reshape",
    "dynamic_update_slice",
    "is_finite",
    "real_dynamic_slice",
    "reshape",
)

_STABLEHLO = {
    **dict.fromkeys(_SAME, "%* {} =same"),
    **dict.fromkeys(_FUNCTION, "%* {} =function"),
    "after_all": "%* {} =same",
    "broadcast": "% , sizes = $broadcast_sizes:ints {} =function",
    "broadcast_in_dim": "% , dims = $broadcast_dimensions:ints {} =function",
    "cholesky": "% [ ,_lower = $lower:flag ] {} =same",
    "compare": "$comparison_direction:word , % , % [ , $compare_type:word ] {} =function",
    "complex": "%* {} =complex",
    "composite": "$name:string %* {} =function",
    "concatenate": "%* , dim = $dimension:int {} =function",
    "constant": "&constant",
    "convolution": "( %* ) dim_numbers = &convolution_dimensions , window = &window {} =function",
    "create_token": "{} =results",
    "custom_call": "$call_target_name:name ( %* ) {} =function",
    "dot": "% , % &dot_clauses {} =function",
    "dot_general": "% , % &dot_clauses {} =function",
    "dynamic_broadcast_in_dim": "% , % , dims = $broadcast_dimensions:ints {} =function",
    "dynamic_iota": "% , dim = $iota_dimension:int {} =function",
    "dynamic_slice": "%* , sizes = $slice_sizes:ints {} =function",
    "fft": "% , type = $fft_type:word , length = $fft_length:ints {} =function",
    "get_dimension_size": "% , dim = $dimension:int {} =function",
    "get_tuple_element": "% &tuple_index {} =function",
    "iota": "dim = $iota_dimension:int {} =results",
    "optimization_barrier": "&barrier",
    "pad": "%* , low = $edge_padding_low:ints , high = $edge_padding_high:ints , "
    "interior = $interior_padding:ints {} =function",
    "partition_id": "{} =results",
    "reduce": "&reduce",
    "reduce_precision": "% , format = &float_format {} =same",
    "replica_id": "{} =results",
    "return": "%* {} [ : &operand_types ]",
    "reverse": "% , dims = $dimensions:ints {} =same",
    "rng": "%* , distribution = $rng_distribution:word {} =function",
    "rng_bit_generator": "% , algorithm = $rng_algorithm:word {} =function",
    "select": "%* {} =select",
    "set_dimension_size": "%* , dim = $dimension:int {} =function",
    "slice": "% &slice_ranges {} =function",
    "transpose": "% , dims = $permutation:ints {} =function",
    "tuple": "%* {} =tuple",
    "while": "&while",
}

_SDY = {
    "all_gather": "$gathering_axes:attribute % out_sharding = $out_sharding:sharding {} =same",
    "all_reduce": "$reduction_axes:axes % out_sharding = $out_sharding:sharding {} =same",
    "all_slice": "$slicing_axes:attribute % out_sharding = $out_sharding:sharding {} =same",
    "all_to_all": "$params:axes % out_sharding = $out_sharding:sharding {} =same",
    "collective_permute": "% out_sharding = $out_sharding:sharding {} =same",
    "constant": "&constant",
    "data_flow_edge": "% [ sharding = $sharding:sharding ] {} =same",
    "manual_computation": "&manual_computation",
    "mesh": "$sym_name:name = $mesh:mesh {}",
    "named_computation": "&named_computation",
    "propagation_barrier": "% allowed_direction = $allowed_direction:word {} =same",
    "reduce_scatter": "$reduce_scatter_axes:attribute % out_sharding = $out_sharding:sharding {} =same",
    "reshard": "% $sharding:sharding {} =same",
    "return": "%* {} [ : &operand_types ]",
    "sharding_constraint": "% $sharding:sharding {} =same",
    "sharding_group": "% group_id = $group_id:int {} =operands",
}

_CHLO = {
    "constant": "&constant",
    "scan": "&scan",
    "top_k": "( % , k = $k:int ) {} =arrow",
}

_OTHER = {
    "builtin.module": "&module",
    "check.expect_almost_eq": "% , % [ ,_tolerance = $tolerance:float ] {} =repeated",
    "check.expect_almost_eq_const": "% , &expected [ ,_tolerance = $tolerance:float ] {} [ : &operand_types ]",
    "check.expect_close": "% , % [ ,_max_ulp_difference = $max_ulp_difference:int ] "
    "[ ,_min_ulp_difference = $min_ulp_difference:int ] {} =operands",
    "check.expect_eq": "% , % {} =repeated",
    "check.expect_eq_const": "% , &expected {} [ : &operand_types ]",
    "func.call": "$callee:symbol ( %* ) {} =function",
    "func.func": "&function",
    "func.return": "%* {} [ : &operand_types ]",
    "interpreter.print": "%* {} =operands",
    "interpreter.probe": "% , probe_id = $probe_id:string {} =same",
}

ROWS: Mapping[str, str] = {
    **{f"{dialect}.{name}": row for dialect, rows in (("stablehlo", _STABLEHLO), ("mhlo", _STABLEHLO), ("sdy", _SDY),
       ("chlo", _CHLO)) for name, row in rows.items()},
    **_OTHER,
}  # fmt: skip
"""The row of each op; every other one of chlo has that of `OTHERS`."""

OTHERS = "%* {} =arrow"

SHORT = {"call": "func.call", "func": "func.func", "module": "builtin.module", "return": "func.return"}
"""Ops that may be written without their dialect."""
