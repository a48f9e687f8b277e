"""The functions of jax.lax that lower to an op."""

from __future__ import annotations

_SAME = """
abs acos acosh add asin asinh atan2 atanh cbrt ceil clamp complex concatenate cosh dynamic_slice dynamic_update_slice
erf fft floor gather imag iota is_finite log logistic mulhi pad real reduce reduce_precision reduce_window reshape
rng_bit_generator rsqrt scatter shift_left shift_right_arithmetic shift_right_logical sign sinh slice sort sqrt tan tanh
transpose all_gather all_to_all ragged_all_to_all ragged_dot scaled_dot after_all
"""

_OTHERS = """
all_reduce: psum pmax pmin
reduce_scatter: psum_scatter
collective_permute: ppermute
collective_broadcast: pbroadcast
while: while_loop fori_loop
conditional: cond switch
convert: convert_element_type
bitcast_convert: bitcast_convert_type
broadcast: broadcast broadcast_in_dim
cosine: cos
count_leading_zeros: clz
exponential: exp
exponential_minus_one: expm1
log_plus_one: log1p
negate: neg
not: bitwise_not
popcnt: population_count
round_nearest_afz: round
round_nearest_even: round
sine: sin
and: bitwise_and
divide: div
maximum: max
minimum: min
multiply: mul
or: bitwise_or
power: pow
remainder: rem
subtract: sub
xor: bitwise_xor
compare: eq ne lt le gt ge
select: select select_n
dot: dot_general
convolution: conv_general_dilated
reverse: rev
topk: top_k
partition_id: axis_index
opt_barrier: optimization_barrier
cholesky: linalg.cholesky
triangular_solve: linalg.triangular_solve
"""

JAX_NAMES: dict[str, str] = {name: name for name in _SAME.split()} | {
    opcode: names.strip() for opcode, _, names in (line.partition(":") for line in _OTHERS.strip().splitlines())
}
"""By opcode the names under `jax.lax`, parted by blanks; ops that no function of it gives are left out."""
