"""The ops that may be compiled natively, with their types; written by `python -m tests.auto.table`."""

_ROWS = {
    "bf16": "acos acosh asin asinh atanh cosh sinh",
    "bf16 f16 f32 c64": "log log_plus_one",
    "bf16 f16 f32 f64": (
        "batch_norm_grad batch_norm_inference ceil cosine erf floor reduce_precision round_nearest_afz "
        "round_nearest_even sine"
    ),
    "bf16 f16 f32 f64 c128": "tan",
    "bf16 f16 f32 f64 c64": "exponential_minus_one sqrt",
    "bf16 f16 f32 f64 c64 c128": "cholesky exponential imag real rsqrt tanh",
    "bf16 f32 f64 c64 c128": "logistic",
    "f16": "atan2",
    "f16 f64": "cbrt",
    "f32 f64 c64 c128": "complex fft",
    "pred bf16 f16 f32 f64": "is_finite",
    "pred s8 s16 s32 s64 u8 u16 u32 bf16 f16 f32 f64 c128": "scatter",
    "pred s8 s16 s32 s64 u8 u16 u32 u64": "and not or xor",
    "pred s8 s16 s32 s64 u8 u16 u32 u64 bf16 f16 f32 f64": "clamp convert maximum minimum",
    "pred s8 s16 s32 s64 u8 u16 u32 u64 bf16 f16 f32 f64 c64": "call multiply",
    "pred s8 s16 s32 s64 u8 u16 u32 u64 bf16 f16 f32 f64 c64 c128": (
        "add broadcast compare concatenate conditional constant convolution copy dot dynamic_reshape "
        "dynamic_slice dynamic_update_slice gather get_tuple_element map opt_barrier pad parameter reduce "
        "reduce_window reshape reverse scan select select_and_scatter slice transpose tuple while"
    ),
    "s8 s16 s32 s64 bf16 f16 f32 f64": "sign",
    "s8 s16 s32 s64 bf16 f16 f32 f64 c64 c128": "abs",
    "s8 s16 s32 s64 u8 u16 u32 u64": "count_leading_zeros popcnt shift_left shift_right_arithmetic shift_right_logical",
    "s8 s16 s32 s64 u8 u16 u32 u64 bf16 f16 f32 f64": "remainder",
    "s8 s16 s32 s64 u8 u16 u32 u64 bf16 f16 f32 f64 c64 c128": "bitcast_convert divide iota negate subtract",
}

TESTED = {opcode: frozenset(types.split()) for types, opcodes in _ROWS.items() for opcode in opcodes.split()}
