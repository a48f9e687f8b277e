"""The pretty form of each op that has one, a line each; the words of a row are explained in `forms.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .grid_forms import rows as grid_rows

_STABLEHLO = """
abs: %* {} =same
add: %* {} =same
after_all: %* {} =same
and: %* {} =same
atan2: %* {} =same
bitcast_convert: %* {} =function
broadcast: % , sizes = $broadcast_sizes:ints {} =function
broadcast_in_dim: % , dims = $broadcast_dimensions:ints {} =function
cbrt: %* {} =same
ceil: %* {} =same
cholesky: % [ ,_lower = $lower:flag ] {} =same
clamp: %* {} =same
compare: $comparison_direction:word , % , % [ , $compare_type:word ] {} =function
complex: %* {} =complex
composite: $name:string %* {} =function
concatenate: %* , dim = $dimension:int {} =function
constant: &constant
convert: %* {} =same
convolution: ( %* ) dim_numbers = &convolution_dimensions , window = &window {} =function
cosine: %* {} =same
count_leading_zeros: %* {} =same
create_token: {} =results
custom_call: $call_target_name:name ( %* ) {} =function
divide: %* {} =same
dot: % , % &dot_clauses {} =function
dot_general: % , % &dot_clauses {} =function
dynamic_broadcast_in_dim: % , % , dims = $broadcast_dimensions:ints {} =function
dynamic_iota: % , dim = $iota_dimension:int {} =function
dynamic_pad: %* {} =function
dynamic_reshape: %* {} =function
dynamic_slice: %* , sizes = $slice_sizes:ints {} =function
dynamic_update_slice: %* {} =function
exponential: %* {} =same
exponential_minus_one: %* {} =same
fft: % , type = $fft_type:word , length = $fft_length:ints {} =function
floor: %* {} =same
get_dimension_size: % , dim = $dimension:int {} =function
get_tuple_element: % &tuple_index {} =function
imag: %* {} =same
iota: dim = $iota_dimension:int {} =results
is_finite: %* {} =function
log: %* {} =same
log_plus_one: %* {} =same
logistic: %* {} =same
maximum: %* {} =same
minimum: %* {} =same
multiply: %* {} =same
negate: %* {} =same
not: %* {} =same
optimization_barrier: &barrier
or: %* {} =same
pad: %* , low = $edge_padding_low:ints , high = $edge_padding_high:ints , interior = $interior_padding:ints {} =function
partition_id: {} =results
popcnt: %* {} =same
power: %* {} =same
real: %* {} =same
real_dynamic_slice: %* {} =function
reduce: &reduce
reduce_precision: % , format = &float_format {} =same
remainder: %* {} =same
replica_id: {} =results
reshape: %* {} =function
return: %* {} [ : &operand_types ]
reverse: % , dims = $dimensions:ints {} =same
rng: %* , distribution = $rng_distribution:word {} =function
rng_bit_generator: % , algorithm = $rng_algorithm:word {} =function
round_nearest_afz: %* {} =same
round_nearest_even: %* {} =same
rsqrt: %* {} =same
select: %* {} =select
set_dimension_size: %* , dim = $dimension:int {} =function
shift_left: %* {} =same
shift_right_arithmetic: %* {} =same
shift_right_logical: %* {} =same
sign: %* {} =same
sine: %* {} =same
slice: % &slice_ranges {} =function
sqrt: %* {} =same
subtract: %* {} =same
tan: %* {} =same
tanh: %* {} =same
transpose: % , dims = $permutation:ints {} =function
tuple: %* {} =tuple
uniform_dequantize: %* {} =same
uniform_quantize: %* {} =same
while: &while
xor: %* {} =same
"""

_SDY = """
all_gather: $gathering_axes:axes % out_sharding = $out_sharding:sharding {} =same
all_reduce: $reduction_axes:reduced % out_sharding = $out_sharding:sharding {} =same
all_slice: $slicing_axes:axes % out_sharding = $out_sharding:sharding {} =same
all_to_all: $params:axes % out_sharding = $out_sharding:sharding {} =same
collective_permute: % out_sharding = $out_sharding:sharding {} =same
constant: &constant
data_flow_edge: % [ sharding = $sharding:sharding ] {} =same
manual_computation: &manual_computation
mesh: $sym_name:name = $mesh:mesh {}
named_computation: &named_computation
propagation_barrier: % allowed_direction = $allowed_direction:word {} =same
reduce_scatter: $reduce_scatter_axes:reduced % out_sharding = $out_sharding:sharding {} =same
replicated_to_unreduced: $axes:axes % out_sharding = $out_sharding:sharding {} =same
reshard: % $sharding:sharding {} =same
return: %* {} [ : &operand_types ]
sharded_to_unreduced: $axes:axes % out_sharding = $out_sharding:sharding {} =same
sharding_constraint: % $sharding:sharding {} =same
sharding_group: % group_id = $group_id:int {} =operands
"""

_CHLO = """
constant: &constant
scan: &scan
top_k: ( % , k = $k:int ) {} =arrow
"""

_OTHER = """
arith.constant: &arith_constant
builtin.module: &module
check.expect_almost_eq: % , % [ ,_tolerance = $tolerance:float ] {} =repeated
check.expect_almost_eq_const: % , &expected [ ,_tolerance = $tolerance:float ] {} [ : &operand_types ]
check.expect_close: % , % [ ,_max_ulp_difference = $max_ulp_difference:int ] \
[ ,_min_ulp_difference = $min_ulp_difference:int ] {} =operands
check.expect_eq: % , % {} =repeated
check.expect_eq_const: % , &expected {} [ : &operand_types ]
func.call: $callee:symbol ( %* ) {} =function
func.func: &function
func.return: %* {} [ : &operand_types ]
interpreter.print: %* {} =operands
interpreter.probe: % , probe_id = $probe_id:string {} =same
mhlo.erf: %* {} =same
"""


def _rows(lines: str, *dialects: str) -> Iterator[tuple[str, str]]:
    for line in lines.strip().splitlines():
        name, _, row = line.partition(": ")
        yield from ((f"{dialect}{name}", row) for dialect in dialects)


ROWS: Mapping[str, str] = dict([
    *_rows(_STABLEHLO, "stablehlo.", "mhlo."), *_rows(_SDY, "sdy."), *_rows(_CHLO, "chlo."), *_rows(_OTHER, ""),
    *grid_rows().items(),
])  # fmt: skip
"""The row of each op; every other one of chlo has that of `OTHERS`."""

OTHERS = "%* {} =arrow"

SHORT = {"call": "func.call", "func": "func.func", "module": "builtin.module", "return": "func.return"}
"""Ops that may be written without their dialect."""
