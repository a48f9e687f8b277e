"""Names of NumPy, JAX and XlaBuilder that `xb` does not have, and what each is called here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_TYPES = {
    "bool_": "pred", "bool": "pred", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128", "double": "f64",
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"s{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2",
}  # fmt: skip

_CALLS = {
    "where": "select(pred, on_true, on_false)", "matmul": "dot(x, y)", "einsum": "dot_general(x, y, ...)",
    "tensordot": "dot_general(x, y, ...)", "array": "constant(builder, [1.0, 2.0])",
    "asarray": "constant(builder, [1.0, 2.0])", "zeros": "broadcast(xb.constant(builder, 0.0), sizes)",
    "ones": "broadcast(xb.constant(builder, 1.0), sizes)", "full": "broadcast(xb.constant(builder, value), sizes)",
    "zeros_like": "broadcast(xb.constant(builder, 0.0), x.shape)",
    "ones_like": "broadcast(xb.constant(builder, 1.0), x.shape)", "arange": "iota(builder, xb.s32, size)",
    "broadcasted_iota": "iota(builder, shape, dimension)", "flip": "reverse(x, dimensions)",
    "moveaxis": "transpose(x, permutation)", "permute_dims": "transpose(x, permutation)",
    "stack": "concatenate([xb.expand_dims(x, 0), xb.expand_dims(y, 0)], 0)",
    "vstack": "concatenate([x, y], 0)", "hstack": "concatenate([x, y], -1)", "concat": "concatenate([x, y], dimension)",
    "split": "slice_in_dim(x, start, limit, dimno=dimension)", "take": "index(x, indices), which is x[indices]",
    "clip": "clamp(low, x, high)", "isnan": "is_nan(x)", "isinf": "is_inf(x)", "isfinite": "is_finite(x)",
    "logical_and": "and_(x, y)", "logical_or": "or_(x, y)", "logical_not": "not_(x)", "logical_xor": "xor(x, y)",
    "bitwise_and": "and_(x, y)", "bitwise_or": "or_(x, y)", "bitwise_not": "not_(x)", "invert": "not_(x)",
    "arctan2": "atan2(y, x)", "mod": "remainder(x, y)", "true_divide": "divide(x, y)", "absolute": "abs(x)",
    "equal": "eq(x, y)", "not_equal": "ne(x, y)", "less": "lt(x, y)", "greater": "gt(x, y)",
    "less_equal": "le(x, y)", "greater_equal": "ge(x, y)", "negative": "negate(x)", "rint": "round_nearest_even(x)",
    "cond": "conditional(pred, x, on_true, x, on_false)", "switch": "conditional(index, operands, branches)",
    "fori_loop": "while_((0, x), lambda s: s[0] < n, lambda s: (s[0] + 1, body(s[0], s[1])))[1]",
    "while_loop": "while_(init, condition, body)", "vmap": "map(x, scalar_function)",
    "jit": "computation(xb.f32[2, 3])",
    "pmap": "shard_map(...)", "psum": "cross_replica_sum(x)", "pmean": "cross_replica_sum(x) / replicas",
    "pmax": "all_reduce(x, xb.maximum)", "ppermute": "collective_permute(x, pairs)",
    "axis_index": "replica_id(builder)", "jacrev": "vjp(program)", "jacfwd": "jvp(program)",
    "cumsum": "scan(x, 0.0, lambda each, total: (each + total, each + total))[0] of a vector",
    "argsort": "sort((x, places))[1]", "ndarray": "Value", "run": "evaluate(builder.build(), x)",
    "compile": "computation(xb.f32[2, 3])", "XlaBuilder": "Builder(name)", "XlaComputation": "Computation",
    "ShapeUtil": "f32[2, 3]", "dtype": "primitive_type(dtype)", "average": "mean(x, axis)", "variance_": "var(x, axis)",
    "norm": "sqrt((x * x).sum())", "stop_gradient": "grad(f, argnums=...), of the parameters that are named, alone",
}  # fmt: skip


def hint_for(name: str, names: Iterable[str]) -> str:
    """A hint about a name that `xb` does not have: its name here, or the closest name of `xb`."""
    if name in _TYPES:
        return f"; xb.{_TYPES[name]} is that element type"
    if name in _CALLS:
        return f"; xb.{_CALLS[name]} does it"
    known = {each.lower(): each for each in names}
    target = _of_xla_builder(name) or known.get(name.lower().replace("_", "")) or known.get(name.lower())
    if target:
        return f"; xb.{target} is its name here"
    close = difflib.get_close_matches(name, known.values(), 1)
    return f"; did you mean xb.{close[0]}?" if close else ""


def _of_xla_builder(name: str) -> str | None:
    """The name here of a function of XlaBuilder; None if it has no counterpart, or is not such a function."""
    if not name[:1].isupper():
        return None
    from .migration import ROWS

    rows = [ROWS[key] for key in (f"ops.{name}", name) if key in ROWS]
    return next((row.target for row in rows if row.kind != "refused"), None)
