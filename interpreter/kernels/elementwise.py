"""Tables of elementwise ops: the NumPy function or the kernel of this package for each op and kind of element type."""

from __future__ import annotations

import numpy as np

from . import functions, integers
from .lifting import ByKind, Kernel, by_kind, in_single

NEAR_ZERO: dict[str, np.ufunc] = {
    "asin": np.arcsin, "asinh": np.arcsinh, "atanh": np.arctanh, "exponential_minus_one": np.expm1, "sine": np.sin,
    "sinh": np.sinh, "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip
"""NumPy's functions with f(x) = x near zero; of an operand without denormal numbers each gives what XLA gives."""

UNARY: dict[str, ByKind] = {
    "abs": by_kind(ifc=np.abs),
    "acos": by_kind(fc=np.arccos),
    "acosh": by_kind(fc=np.arccosh),
    "asin": by_kind(f=functions.near_zero(NEAR_ZERO["asin"]), c=np.arcsin),
    "asinh": by_kind(f=functions.near_zero(NEAR_ZERO["asinh"]), c=np.arcsinh),
    "atanh": by_kind(f=functions.near_zero(NEAR_ZERO["atanh"]), c=np.arctanh),
    "cbrt": by_kind(f=np.cbrt),
    "ceil": by_kind(f=np.ceil),
    "cosh": by_kind(fc=np.cosh),
    "cosine": by_kind(fc=np.cos),
    "erf": by_kind(f=in_single(functions.erf)),
    "exponential": by_kind(fc=np.exp),
    "exponential_minus_one": by_kind(
        f=functions.near_zero(NEAR_ZERO["exponential_minus_one"]), c=functions.complex_exponential_minus_one
    ),
    "floor": by_kind(f=np.floor),
    "log": by_kind(fc=np.log),
    "log_plus_one": by_kind(f=np.log1p, c=functions.complex_log_plus_one),
    "logistic": by_kind(f=in_single(functions.logistic), c=functions.complex_logistic),
    "negate": by_kind(iufc=np.negative),
    "not": by_kind(biu=np.invert),
    "round_nearest_afz": by_kind(f=functions.round_nearest_afz),
    "round_nearest_even": by_kind(f=np.rint),
    "rsqrt": by_kind(f=in_single(functions.rsqrt), c=functions.complex_rsqrt),
    "sign": by_kind(i=np.sign, f=functions.sign, c=functions.complex_sign),
    "sine": by_kind(f=functions.near_zero(NEAR_ZERO["sine"]), c=np.sin),
    "sinh": by_kind(f=functions.near_zero(NEAR_ZERO["sinh"]), c=np.sinh),
    "sqrt": by_kind(fc=np.sqrt),
    "tan": by_kind(f=functions.near_zero(NEAR_ZERO["tan"]), c=np.tan),
    "tanh": by_kind(f=functions.tanh, c=np.tanh),
}

BINARY: dict[str, ByKind] = {
    "add": by_kind(biufc=np.add),
    "and": by_kind(biu=np.bitwise_and),
    "atan2": by_kind(f=functions.atan2, c=functions.complex_atan2),
    "divide": by_kind(iu=integers.divide, f=np.divide, c=functions.complex_divide),
    "maximum": by_kind(biuc=np.maximum, f=functions.maximum),
    "minimum": by_kind(biuc=np.minimum, f=functions.minimum),
    "multiply": by_kind(biufc=np.multiply),
    "or": by_kind(biu=np.bitwise_or),
    "power": by_kind(iu=integers.power, f=functions.power, c=np.power),
    "remainder": by_kind(iu=integers.remainder, f=np.fmod),
    "shift_left": by_kind(iu=np.left_shift),
    "subtract": by_kind(iufc=np.subtract),
    "xor": by_kind(biu=np.bitwise_xor),
}

BY_WIDTH: dict[str, Kernel] = {
    "count_leading_zeros": integers.count_leading_zeros,
    "mulhi": integers.mulhi,
    "popcnt": integers.popcnt,
    "shift_right_arithmetic": integers.shift_right_arithmetic,
    "shift_right_logical": integers.shift_right_logical,
}
"""The kernels of ops whose result depends on the bit width, so that operands of small types cannot be widened."""

RELATIONS = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
}  # fmt: skip
