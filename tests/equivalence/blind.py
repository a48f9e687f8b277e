"""Random pairs of programs, judged by runs in floating point that this file makes itself.

It is written from docs/equivalence.md and the public interface alone, by somebody who has not read how a verdict comes
about. A pair is one random program in which one instruction is spelled in two ways, or with one slip in it. Both are
run with all floats as f64 and as f32, and in the type of the program, on ordinary, negative, zero, tied, near-singular
and larger inputs.

    python -m tests.equivalence.blind --seed N --pairs M [--kind KIND]... [--seconds N]

prints a line for each verdict that these runs contradict: `equal` although a NaN or a gap persists in both precisions,
`different` although no run shows any, two orders of the arguments that disagree, an exception that is not an
XbuildError, more than 20 s of processor time. It ends with the counts by kind of pair and by verdict.
"""

import argparse
import math
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

import ml_dtypes
import numpy as np

import xbuild as xb

FLOATS = ("f32", "f64", "bf16", "f16")
INTEGERS = ("s32", "u8", "s8", "u32", "s64", "s16", "u16", "u64")
NUMPY = {"f": "f", "s": "i", "u": "u"}
LOSSY = ("f64", "bf16", "f16", "f8e4m3fn", "f8e5m2")
SHAPES = ((4,), (2, 3), (3, 3), (2, 2, 3))
DOMAINS: tuple[Any, ...] = ("positive", "nonnegative", "negative", "nonpositive", "nonzero", "unit", (-1, 1), (0.5, 2))
ENOUGH = 20.0  # seconds of processor time for one verdict

# A form: the kind of pair, and two spellings of one function of x and y. Whether they are the same is left to the runs.
FORMS = """
algebra | x + y | y + x
algebra | (x + y) + x | y + 2.0 * x
algebra | (x + y) + (x - y) | x + x
algebra | x * (y + 1.0) | x * y + x
algebra | (x + y) * (x - y) | x * x - y * y
algebra | (x + 1.0) * (x + 1.0) | x * x + 2.0 * x + 1.0
algebra | x - y | x + (-y)
algebra | -(x - y) | y - x
algebra | x * x * x | power(x, 3.0)
algebra | x / 2.0 | x * 0.5
algebra | x / 3.0 | x * (1 / 3)
algebra | x / 10.0 | x * 0.1
algebra | (x + y) / 4.0 | x / 4.0 + y / 4.0
algebra | x * 4.0 / 2.0 | x * 2.0
algebra | x / x | x * 0.0 + 1.0
algebra | (x * y) / y | x
algebra | x / y | x * (1.0 / y)
algebra | (x / y) / x | 1.0 / y
algebra | x / (y / x) | x * x / y
algebra | (x * x - y * y) / (x - y) | x + y
algebra | 1.0 / (1.0 / x) | x
algebra | x / (1.0 + x) | 1.0 - 1.0 / (1.0 + x)
algebra | 1.0 / x + 1.0 / y | (x + y) / (x * y)
algebra | 1.0 / (1.0 / x + 1.0 / y) | (x * y) / (x + y)
algebra | x * 0.0 | x - x
algebra | x * 0.0 + y | y
algebra | x - x + y | y
algebra | (x - y) * (x - y) | x * x + y * y
algebra | x * x - 2.0 * x * y + y * y | square(x - y)
algebra | x + y * 0.5 | (x + y) * 0.5
algebra | x * y + x * x | x * (x + y)
algebra | -x * -y | x * y
algebra | x / -y | -(x / y)
algebra | x * x * x - y * y * y | (x - y) * (x * x + x * y + y * y)
algebra | power(x, 2.0) * power(x, 3.0) | power(x, 5.0)
algebra | power(x, -1.0) | 1.0 / x
algebra | power(x, -2.0) | 1.0 / (x * x)
algebra | power(x, 0.0) | x * 0.0 + 1.0
algebra | power(x, 0.0) | where(x == x, 1.0, 1.0 + x * 0.0)
algebra | power(power(x, 2.0), 0.5) | abs(x)
algebra | power(x, 1.0) | x
algebra | power(x * y, 2.0) | power(x, 2.0) * power(y, 2.0)
algebra | power(x / y, 2.0) | x * x / (y * y)
functions | sqrt(x) * sqrt(x) | x
functions | sqrt(x) * sqrt(y) | sqrt(x * y)
functions | sqrt(x * x) | abs(x)
functions | sqrt(x * x) | x
functions | x / sqrt(x) | sqrt(x)
functions | 1.0 / sqrt(x) | rsqrt(x)
functions | x * rsqrt(x) | sqrt(x)
functions | rsqrt(x) * rsqrt(x) | 1.0 / x
functions | rsqrt(x * x) | 1.0 / abs(x)
functions | sqrt(1.0 / x) | rsqrt(x)
functions | sqrt(x / y) | sqrt(x) / sqrt(y)
functions | sqrt(4.0 * x) | 2.0 * sqrt(x)
functions | sqrt(2.0 * x) | 1.4142135623730951 * sqrt(x)
functions | sqrt(sqrt(x)) | power(x, 0.25)
functions | power(x, 0.5) | sqrt(x)
functions | power(x, 1.5) | x * sqrt(x)
functions | power(x, -0.5) | rsqrt(x)
functions | power(x, 1 / 3) | cbrt(x)
functions | power(x, y) | exp(y * log(x))
functions | power(x, y) * x | power(x, y + 1.0)
functions | power(x, y + x) | power(x, y) * power(x, x)
functions | power(2.0 + x * 0.0, y) | exp(y * 0.6931471805599453)
functions | power(abs(x), y) | exp(y * log(abs(x)))
functions | cbrt(x) * cbrt(x) * cbrt(x) | x
functions | cbrt(x * x * x) | x
functions | cbrt(-x) | -cbrt(x)
functions | cbrt(8.0 * x) | 2.0 * cbrt(x)
functions | exp(x + y) | exp(x) * exp(y)
functions | exp(x - y) | exp(x) / exp(y)
functions | exp(-x) | 1.0 / exp(x)
functions | exp(2.0 * x) | exp(x) * exp(x)
functions | exp(x * 0.5) | sqrt(exp(x))
functions | exp(x * y) | power(exp(x), y)
functions | log(exp(x)) | x
functions | exp(log(x)) | x
functions | log(x * y) | log(x) + log(y)
functions | log(x / y) | log(x) - log(y)
functions | log(x * x) | 2.0 * log(x)
functions | log(x * x) | 2.0 * log(abs(x))
functions | log(1.0 / x) | -log(x)
functions | log(sqrt(x)) | 0.5 * log(x)
functions | log(2.0 * x) | 0.6931471805599453 + log(x)
functions | log(-x) | log(x)
functions | log(abs(x * y)) | log(abs(x)) + log(abs(y))
functions | logistic(x) | 1.0 / (1.0 + exp(-x))
functions | logistic(x) | exp(x) / (exp(x) + 1.0)
functions | logistic(-x) | 1.0 - logistic(x)
functions | logistic(x) * logistic(-x) | logistic(x) - square(logistic(x))
functions | log(logistic(x)) | -log1p(exp(-x))
functions | log(logistic(x) / (1.0 - logistic(x))) | x
functions | tanh(x) | 2.0 * logistic(2.0 * x) - 1.0
functions | tanh(x) | expm1(2.0 * x) / (expm1(2.0 * x) + 2.0)
functions | tanh(x) | (exp(x) - exp(-x)) / (exp(x) + exp(-x))
functions | tanh(-x) | -tanh(x)
functions | tanh(x + y) | (tanh(x) + tanh(y)) / (1.0 + tanh(x) * tanh(y))
functions | expm1(x) | exp(x) - 1.0
functions | log1p(x) | log(1.0 + x)
functions | log1p(expm1(x)) | x
functions | expm1(log1p(x)) | x
functions | log1p(-x) | log(1.0 - x)
functions | sinh(x) | (exp(x) - exp(-x)) * 0.5
functions | cosh(x) | (exp(x) + exp(-x)) / 2.0
functions | cosh(x) * cosh(x) - sinh(x) * sinh(x) | x * 0.0 + 1.0
functions | sinh(-x) | -sinh(x)
functions | cosh(-x) | cosh(x)
functions | tanh(x) | sinh(x) / cosh(x)
functions | sin(-x) | -sin(x)
functions | cos(-x) | cos(x)
functions | sin(x) | cos(x)
functions | tan(x) | sin(x) / cos(x)
functions | sin(x) * sin(x) + cos(x) * cos(x) | x * 0.0 + 1.0
functions | 2.0 * sin(x) * cos(x) | sin(2.0 * x)
functions | sin(x + y) | sin(x) * cos(y) + cos(x) * sin(y)
functions | erf(-x) | -erf(x)
functions | 1.0 - erf(x) | erfc(x)
functions | asinh(x) | log(x + sqrt(x * x + 1.0))
functions | acosh(x) | log(x + sqrt(x * x - 1.0))
functions | atanh(x) | 0.5 * log((1.0 + x) / (1.0 - x))
functions | atanh(x) | 0.5 * (log1p(x) - log1p(-x))
functions | atan2(x, x * 0.0 + 1.0) | atan(x)
functions | atan2(x, y) | atan(x / y)
functions | atan2(x, y) | -atan2(-x, y)
functions | atan2(x, y) | 2.0 * atan(x / (y + sqrt(x * x + y * y)))
functions | atan2(2.0 * x, 2.0 * y) | atan2(x, y)
functions | atan2(x, y) | atan2(y, x)
functions | asin(x) | atan2(x, sqrt(1.0 - x * x))
functions | acos(x) | 1.5707963267948966 - asin(x)
order | maximum(x, y) | maximum(y, x)
order | maximum(x, y) | where(x > y, x, y)
order | maximum(x, y) | where(x >= y, x, y)
order | maximum(x, y) | where(y > x, y, x)
order | maximum(x, y) + minimum(x, y) | x + y
order | maximum(x, y) * minimum(x, y) | x * y
order | maximum(x, y) - minimum(x, y) | abs(x - y)
order | maximum(x, y) | (x + y + abs(x - y)) / 2.0
order | minimum(x, y) | -maximum(-x, -y)
order | maximum(2.0 * x, 2.0 * y) | 2.0 * maximum(x, y)
order | maximum(x + y, x) | x + maximum(y, 0.0)
order | maximum(x * y, 0.0) | maximum(x, 0.0) * maximum(y, 0.0)
order | maximum(x, maximum(y, 0.0)) | maximum(maximum(x, y), 0.0)
order | maximum(x, minimum(x, y)) | x
order | minimum(maximum(x, y), 0.5) | maximum(minimum(x, 0.5), minimum(y, 0.5))
order | abs(x) | maximum(x, -x)
order | abs(x) | where(x < 0.0, -x, x)
order | abs(x) | x * sign(x)
order | abs(x * y) | abs(x) * abs(y)
order | abs(x + y) | abs(x) + abs(y)
order | abs(x / y) | abs(x) / abs(y)
order | abs(abs(x) - abs(y)) | abs(x - y)
order | sign(x) | where(x > 0.0, 1.0, -1.0)
order | sign(x) | where(x >= 0.0, 1.0, -1.0)
order | sign(x) | x / abs(x)
order | sign(x) | where(x > 0.0, 1.0, where(x < 0.0, -1.0, 0.0))
order | sign(x) | clamp(-1.0, x * 1e6, 1.0)
order | sign(x * y) | sign(x) * sign(y)
order | maximum(x, 0.0) | where(x > 0.0, x, 0.0)
order | maximum(x, 0.0) | x * convert(x > 0.0, x)
order | maximum(x, 0.0) | (x + abs(x)) * 0.5
order | maximum(x, 0.0) - maximum(-x, 0.0) | x
order | maximum(x, 0.1 * x) | where(x > 0.0, x, 0.1 * x)
order | where(x > 0.0, x, 0.1 * x) | maximum(x, 0.0) + 0.1 * minimum(x, 0.0)
order | clamp(-1.0, x, 1.0) | minimum(maximum(x, -1.0), 1.0)
order | clamp(-1.0, x, 1.0) | maximum(minimum(x, -1.0), 1.0)
order | clamp(1.0, x, -1.0) | minimum(maximum(x, 1.0), -1.0)
order | clamp(1.0, x, -1.0) | maximum(minimum(x, -1.0), 1.0)
order | clamp(0.0, x, 6.0) | maximum(x, 0.0) - maximum(x - 6.0, 0.0)
order | clamp(-1.0, x, 1.0) | (abs(x + 1.0) - abs(x - 1.0)) / 2.0
order | clamp(-1.0, x, 1.0) | where(x > 1.0, 1.0, where(x < -1.0, -1.0, x))
order | clamp(-1.0, x, 1.0) | clamp(-1.0, x, 1.5)
order | clamp(-9.0, x, 9.0) | x
order | where(x == y, 1.0, 0.0) | where(x >= y, 1.0, 0.0) * where(x <= y, 1.0, 0.0)
order | where(x > y, 1.0, 0.0) | where(x >= y, 1.0, 0.0)
order | where(x > y, 1.0, 0.0) | 1.0 - where(x <= y, 1.0, 0.0)
order | where(x > y, 1.0, 0.0) | where(y < x, 1.0, 0.0)
order | where(x > y, 1.0, 0.0) | where(x - y > 0.0, 1.0, 0.0)
order | where(x != y, x, y) | x
order | where(x == x, x, 0.0) | x
order | where(is_finite(x), x, 0.0) | x
order | where(x < y, x, y) | minimum(x, y)
order | where(x * x > 0.0, x, 0.0) | x
order | where(abs(x) < 1.0, x, 0.0) | where(x * x < 1.0, x, 0.0)
order | where(compare(x, y, "GT", type="TOTALORDER"), x, y) | maximum(x, y)
order | where(not_(x > y), x, y) | where(x <= y, x, y)
order | where(and_(x > 0.0, y > 0.0), 1.0, 0.0) | where(x * y > 0.0, 1.0, 0.0)
order | where(or_(x > 0.0, y > 0.0), 1.0, 0.0) | where(maximum(x, y) > 0.0, 1.0, 0.0)
order | floor(x) | -ceil(-x)
order | floor(x) | ceil(x) - 1.0
order | floor(x + 0.5) | round(x)
order | round(x) | round_nearest_even(x)
order | round(-x) | -round(x)
order | ceil(x - 0.5) | round(x)
order | floor(x + 1.0) | floor(x) + 1.0
order | floor(x + y) | floor(x) + floor(y)
order | sign(x) * floor(abs(x)) | where(x < 0.0, ceil(x), floor(x))
order | rem(x, 1.0) | x - floor(x)
order | rem(x, 1.0) | x - sign(x) * floor(abs(x))
order | rem(x, y) | x - y * trunc(x / y)
order | rem(x, y) | rem(x, -y)
order | rem(x, y) | rem(x, abs(y))
order | rem(-x, y) | -rem(x, y)
order | rem(x + y, y) | rem(x, y)
order | rem(2.0 * x, 2.0 * y) | 2.0 * rem(x, y)
order | floor(floor(x)) | floor(x)
order | sqrt(abs(x)) | sqrt(x)
order | sqrt(maximum(x, 0.0)) | sqrt(x)
order | log(maximum(x, 0.0)) | log(x)
order | log(maximum(x, 1e-6)) | log(x)
order | maximum(log(x), 0.0) | where(log(x) > 0.0, log(x), 0.0)
order | maximum(sqrt(x), y) | where(sqrt(x) >= y, sqrt(x), y)
order | minimum(log(x), 0.0) | log(minimum(x, 1.0))
order | maximum(exp(x), exp(y)) | exp(maximum(x, y))
order | maximum(log(x), log(y)) | log(maximum(x, y))
order | maximum(1.0 / x, 1.0 / y) | 1.0 / minimum(x, y)
order | sqrt(maximum(x, y)) | maximum(sqrt(x), sqrt(y))
order | abs(tanh(x)) | tanh(abs(x))
order | sign(tanh(x)) | sign(x)
order | where(exp(x) > 1.0, x, 0.0) | maximum(x, 0.0)
order | where(logistic(x) > 0.5, 1.0, 0.0) | where(x > 0.0, 1.0, 0.0)
order | maximum(tanh(x), -1.0) | tanh(x)
order | clamp(0.0, logistic(x), 1.0) | logistic(x)
order | abs(exp(x)) | exp(x)
order | maximum(x * x, 0.0) | x * x
order | sqrt(x * x + 1e-12) | abs(x)
order | x / maximum(abs(x), 1e-6) | sign(x)
order | where(x != 0.0, x / x, 1.0) | x * 0.0 + 1.0
order | where(x == 0.0, 0.0, y / where(x == 0.0, 1.0, x)) | y / x
order | where(x > 0.0, sqrt(x), 0.0) | sqrt(maximum(x, 0.0))
order | where(x > 0.0, log(x), -inf) | log(x)
stable | softmax(x) | exp(x) / sums(exp(x))
stable | exp(x - maxes(x)) / sums(exp(x - maxes(x))) | exp(x) / sums(exp(x))
stable | exp(x - maxes(x)) / sums(exp(x - maxes(x))) | exp(x - means(x)) / sums(exp(x - means(x)))
stable | exp(x - maxes(x)) / sums(exp(x - maxes(x))) | exp(x - mins(x)) / sums(exp(x - mins(x)))
stable | exp(x - maxes(x)) / sums(exp(x - maxes(x))) | exp(x - maxes(x)) / (sums(exp(x - maxes(x))) + 1e-6)
stable | exp(x - maxes(x)) / sums(exp(x - maxes(x))) | exp(x - 5.0) / sums(exp(x - 5.0))
stable | exp(x - maxes(x)) / sums(exp(x)) | exp(x) / sums(exp(x))
stable | log(sums(exp(x))) | maxes(x) + log(sums(exp(x - maxes(x))))
stable | log(sums(exp(x))) | mins(x) + log(sums(exp(x - mins(x))))
stable | log(sums(exp(x))) | maxes(x) + log(sums(exp(x - mins(x))))
stable | log(sums(exp(x))) | maxes(x)
stable | x - log(sums(exp(x))) | log(softmax(x))
stable | log_softmax(x) | x - maxes(x) - log(sums(exp(x - maxes(x))))
stable | sums(softmax(x)) | x * 0.0 + 1.0
stable | -sums(softmax(x) * log_softmax(x)) | log(sums(exp(x))) - sums(softmax(x) * x)
stable | sums(softmax(x) * y) | sums(exp(x) * y) / sums(exp(x))
stable | softmax(x + y - y) | softmax(x)
stable | softmax(2.0 * x) | square(exp(x)) / sums(square(exp(x)))
stable | means(x * x) - square(means(x)) | means(square(x - means(x)))
stable | means(x * x) - square(means(x)) | sums(square(x - means(x))) / (n(x) - 1)
stable | (x - means(x)) * rsqrt(means(square(x - means(x))) + 1e-5) | (x - means(x)) / sqrt(variance(x) + 1e-5)
stable | (x - means(x)) / sqrt(variance(x) + 1e-5) | (x - means(x)) / (sqrt(variance(x)) + 1e-5)
stable | (x - means(x)) / sqrt(variance(x) + 1e-5) | (x - means(x)) / sqrt(means(x * x) - square(means(x)) + 1e-5)
stable | (x - means(x)) / sqrt(variance(x) + 1e-5) | x / sqrt(variance(x) + 1e-5)
stable | x / sqrt(means(x * x) + 1e-6) | x * rsqrt(sums(x * x) / n(x) + 1e-6)
stable | x / sqrt(sums(x * x)) | x * rsqrt(sums(x * x))
stable | sqrt(sums(x * x)) | maxes(abs(x)) * sqrt(sums(square(x / maxes(abs(x)))))
stable | sqrt(sums(square(x - y))) | sqrt(sums(x * x) + sums(y * y) - 2.0 * sums(x * y))
stable | sqrt(x * x + y * y) | maximum(abs(x), abs(y)) * sqrt(1.0 + square(minimum(abs(x), abs(y)) / maximum(abs(x), abs(y))))
stable | log1p(exp(x)) | maximum(x, 0.0) + log1p(exp(-abs(x)))
stable | log1p(exp(x)) | log(1.0 + exp(x))
stable | log1p(exp(x)) | x + log1p(exp(-x))
stable | log1p(exp(x)) | maximum(x, 0.0) + log1p(exp(abs(x)))
stable | log(exp(x) + exp(y)) | maximum(x, y) + log1p(exp(-abs(x - y)))
stable | log(exp(x) + exp(y)) | x + log1p(exp(y - x))
stable | log(exp(x) - exp(y)) | x + log1p(-exp(y - x))
stable | maximum(x, 0.0) - x * y + log1p(exp(-abs(x))) | -y * log(logistic(x)) - (1.0 - y) * log(1.0 - logistic(x))
stable | where(x >= 0.0, 1.0 / (1.0 + exp(-x)), exp(x) / (1.0 + exp(x))) | logistic(x)
stable | where(x >= 0.0, 1.0 / (1.0 + exp(-abs(x))), exp(-abs(x)) / (1.0 + exp(-abs(x)))) | logistic(x)
stable | where(x < 0.0, 1.0 / (1.0 + exp(-x)), exp(x) / (1.0 - exp(x))) | logistic(x)
stable | x * logistic(x) | x / (1.0 + exp(-x))
stable | gelu(x, approximate=False) | 0.5 * x * (1.0 + erf(x * 0.7071067811865476))
stable | gelu(x, approximate=True) | gelu(x, approximate=False)
stable | 0.5 * x * erfc(-x * 0.7071067811865476) | 0.5 * x * (1.0 + erf(x * 0.7071067811865476))
stable | 0.5 * x * (1.0 + tanh(0.7978845608 * (x + 0.044715 * x * x * x))) | x * logistic(1.5957691216 * (x + 0.044715 * x * x * x))
stable | (sqrt(x + 1.0) - sqrt(x)) | 1.0 / (sqrt(x + 1.0) + sqrt(x))
stable | (1.0 - cos(x)) / (x * x) | 2.0 * square(sin(x / 2.0)) / (x * x)
stable | (exp(x) - 1.0) / x | expm1(x) / x
stable | x + y - x | y
stable | (x + 1e3) - 1e3 | x
stable | (x * 1e3) / 1e3 | x
stable | x + 1e-9 | x
stable | sums(x - means(x)) | x * 0.0
reduce | fold(x, 0.0, add) | fold(x, 1.0, add) - 1.0
reduce | fold(x, 0.0, add) | fold(x, 1.0, add)
reduce | fold(x, 0.0, add) | fold(x, -0.0, add)
reduce | fold(x, 1.0, multiply) | fold(x, 2.0, multiply) / 2.0
reduce | fold(x, 1.0, multiply) | fold(x, -1.0, multiply)
reduce | fold(x, 1.0, multiply) | fold(x, 0.0, multiply)
reduce | fold(x, -inf, maximum) | fold(x, 0.0, maximum)
reduce | fold(x, -inf, maximum) | fold(x, -1e30, maximum)
reduce | fold(x, -inf, maximum) | fold(x, -3.0, maximum)
reduce | fold(x, -inf, maximum) | fold(x, inf, maximum)
reduce | fold(x, -inf, maximum) | -fold(-x, inf, minimum)
reduce | fold(x, inf, minimum) | fold(x, 100.0, minimum)
reduce | fold(x, -inf, maximum) | fold(flip(x), -inf, maximum)
reduce | fold(x, 0.0, lambda a, b: a + b) | fold(x, 0.0, lambda a, b: b + a)
reduce | fold(x, 0.0, lambda a, b: a + abs(b)) | fold(abs(x), 0.0, add)
reduce | fold(x, -inf, lambda a, b: xb.select(a > b, a, b)) | fold(x, -inf, maximum)
reduce | fold(x, -inf, lambda a, b: xb.select(a >= b, a, b)) | fold(x, -inf, lambda a, b: xb.select(b >= a, b, a))
reduce | sums(x) | fold(x, 0.0, add, 0)
reduce | sums(x + y) | sums(x) + sums(y)
reduce | sums(x * y) | sums(x) * sums(y)
reduce | sums(flip(x)) | sums(x)
reduce | sums(2.0 * x) | 2.0 * sums(x)
reduce | sums(x) / n(x) | means(x)
reduce | fold(fold(x, 0.0, add), 0.0, add, 0) | fold(fold(x, 0.0, add, 0), 0.0, add)
reduce | fold(fold(x, -inf, maximum), 0.0, add, 0) | fold(fold(x, 0.0, add, 0), -inf, maximum)
reduce | wide(x.max(axis=-1), x) | wide(sort(x)[..., -1], x)
reduce | wide(x.max(axis=-1), x) | wide(sort(x)[..., 0], x)
reduce | wide(xb.top_k(x, 1)[0][..., 0], x) | maxes(x)
reduce | wide(xb.top_k(x, 2)[0][..., 1], x) | wide(sort(x)[..., -2], x)
reduce | flip(sort(-x)) | -sort(x)
reduce | sort(flip(x)) | sort(x)
reduce | sort(x) | x
reduce | sort(sort(x)) | sort(x)
reduce | sort(2.0 * x) | 2.0 * sort(x)
reduce | sort(exp(x)) | exp(sort(x))
reduce | sort(x * x) | square(sort(x))
reduce | sort(x + sums(x)) | sort(x) + sums(x)
reduce | sums(sort(x) * sort(y)) | sums(sort(x * y))
reduce | wide(convert(xb.argmax(x, -1), x), x) | wide(convert(xb.argmin(-x, -1), x), x)
reduce | wide(convert(xb.argmax(x, -1), x), x) | n(x) - 1.0 - wide(convert(xb.argmax(flip(x), -1), x), x)
reduce | wide(convert(xb.argmax(x, -1), x), x) | wide(convert(xb.top_k(x, 1)[1][..., 0], x), x)
reduce | running(x) | flip(running(flip(x)))
reduce | running(x) + flip(running(flip(x))) - x | sums(x)
reduce | running(x) | cumulated(x)
reduce | wide(cumulated(x)[..., -1], x) | sums(x)
reduce | cumulated(x) | fold(x, 0.0, add)
reduce | x.var(axis=-1, keepdims=True) + x | variance(x) + x
reduce | convert(x.sum(axis=-1, keepdims=True) > 0.0, x) + x | convert(means(x) > 0.0, x) + x
reduce | sums(convert(x > 0.0, x)) | n(x) - sums(convert(x <= 0.0, x))
reduce | wide(convert(xb.any(x > 0.0, -1), x), x) | convert(maxes(x) > 0.0, x)
reduce | wide(convert(xb.all(x > 0.0, -1), x), x) | convert(mins(x) > 0.0, x)
reduce | wide(convert(xb.all(x > 0.0, -1), x), x) | 1.0 - wide(convert(xb.any(x <= 0.0, -1), x), x)
shape | turned(turned(x)) | x
shape | flip(flip(x)) | x
shape | flip(flip(x), 0) | flip(flip(x, 0))
shape | flip(x + y) | flip(x) + flip(y)
shape | flip(x) * y | flip(x * flip(y))
shape | flip(x) * y | flip(x * y)
shape | x.reshape(-1).reshape(dims(x)) | x
shape | turned(x).reshape(dims(x)) | x
shape | cat(cut(x, 0, 1), cut(x, 1, n(x))) | x
shape | cat(cut(x, 1, n(x)), cut(x, 0, 1)) | x
shape | cat(cut(x, 1, n(x)), cut(x, 0, 1)) | roll(x, 1)
shape | roll(roll(x, 1), n(x) - 1) | x
shape | roll(roll(x, 1), 1) | roll(x, 2)
shape | sums(roll(x, 1)) | sums(x)
shape | sums(x * roll(y, 1)) | sums(roll(x, n(x) - 1) * y)
shape | sums(x * roll(y, 1)) | sums(roll(x, 1) * y)
shape | cut(padded(x, 1, 1, 0.0), 1, n(x) + 1) | x
shape | cut(padded(x, 1, 1, 0.0), 1, n(x) + 1) | cut(padded(x, 1, 1, 5.0), 1, n(x) + 1)
shape | cut(padded(x, 1, 1, 0.0), 0, n(x)) | cut(padded(x, 1, 1, 5.0), 0, n(x))
shape | cut(padded(x, 1, 0, 0.0), 0, n(x)) | masked(roll(x, n(x) - 1), "GE", 1)
shape | cut(padded(x, 0, 1, 0.0), 1, n(x) + 1) | masked(roll(x, 1), "LT", n(x) - 1)
shape | cut(padded(x, 0, 1, 0.0), 1, n(x) + 1) | masked(roll(x, 1), "LE", n(x) - 1)
shape | padded(cut(x, 1, n(x)), 1, 0, 0.0) | masked(x, "GE", 1)
shape | padded(cut(x, 1, n(x)), 1, 0, 0.0) | masked(x, "GT", 1)
shape | padded(cut(x, 0, 1), 0, n(x) - 1, 0.0) + padded(cut(x, 1, n(x)), 1, 0, 0.0) | x
shape | sums(padded(cut(x, 1, n(x)), 1, 0, 0.0)) | sums(x) - wide(x[..., 0], x)
shape | masked(x, "EQ", 1) | masked(x, "GE", 1) - masked(x, "GE", 2)
shape | masked(x, "LT", 2) + masked(x, "GE", 2) | x
shape | masked(x, "LT", 2) + masked(x, "GT", 2) | x
shape | wide(x[..., 0], x) | wide(x[..., -1], x)
shape | wide(means(x)[..., 0], x) | means(x)
shape | wide(x[..., 1], x) | sums(masked(x, "EQ", 1))
shape | moved(x, 1) | cut(padded(x, 0, 1, 0.0), 1, n(x) + 1)
shape | moved(x, 9) | wide(x[..., -1], x)
shape | moved(x, -3) | wide(x[..., 0], x)
shape | moved(x, 1) | moved(x, 2)
shape | updated(x, 0.0, 1) | masked(x, "NE", 1)
shape | updated(x, 0.0, 1) | masked(x, "GT", 1)
shape | updated(updated(x, 1.0, 0), 2.0, 0) | updated(x, 2.0, 0)
shape | updated(updated(x, 1.0, 0), 2.0, 1) | updated(updated(x, 2.0, 1), 1.0, 0)
shape | xb.opt_barrier(x) + y | x + y
shape | xb.map([x, y], lambda a, b: a * b + a) | x * y + x
shape | xb.map([x, y], lambda a, b: a * b + a) | x * y + y
shape | outer(x, y) | turned(outer(y, x))
shape | outer(x, y) | outer(y, x)
shape | outer(x + y, x) | outer(x, x) + outer(y, x)
shape | outer(x, y) | outer(roll(x, 1), roll(y, 1))
shape | outer(2.0 * x, y) | outer(x, 2.0 * y)
dtype | down(x, "bf16") | x
dtype | down(x, "f16") * 2.0 | x * 2.0
dtype | down(x + y, "bf16") | down(x, "bf16") + down(y, "bf16")
dtype | down(x, "bf16") * y | x * down(y, "f16")
dtype | down(exp(x), "bf16") | exp(down(x, "bf16"))
dtype | sums(down(x, "bf16")) | down(sums(x), "bf16")
dtype | down(x, "f64") | x
dtype | xb.reduce_precision(x, 8, 7) | x
dtype | xb.reduce_precision(x, 5, 10) | down(x, "f16")
dtype | down(x, "f8e4m3fn") | x
dtype | down(x, "f8e5m2") * y | x * y
dtype | through(x, "s32") | trunc(x)
dtype | through(x, "s32") | floor(x)
dtype | through(x, "s32") | through(x, "s8")
dtype | through(x, "s32") | through(x, "u8")
dtype | through(x, "s64") | through(x, "s32")
dtype | through(x, "u32") | through(x, "u8")
dtype | through(x, "pred") | x
dtype | through(x, "pred") | convert(x != 0.0, x)
dtype | through(x, "pred") | sign(x) * sign(x)
dtype | through(x + 0.5, "s32") | round(x)
dtype | through(floor(x), "s32") | floor(x)
dtype | through(through(x, "s32"), "s8") | through(x, "s32")
dtype | through(2.0 * x, "s32") | 2.0 * through(x, "s32")
dtype | through(abs(x), "u32") | abs(through(x, "s32"))
reduce | xb.sort(x, lambda a, b: a > b) | flip(sort(x))
reduce | xb.sort(x, lambda a, b: a > b) | xb.sort(x, lambda a, b: a >= b)
reduce | xb.sort([x, y], lambda a, b, c, d: a < b, -1, True)[1] | xb.sort([x, y], lambda a, b, c, d: a <= b, -1, True)[1]
reduce | xb.sort([x, y], lambda a, b, c, d: a < b, -1, True)[1] | xb.sort([x, y], lambda a, b, c, d: b > a, -1, True)[1]
reduce | xb.sort([x, y], lambda a, b, c, d: a < b, -1, True)[1] | xb.sort([x, y], lambda a, b, c, d: c < d, -1, True)[1]
reduce | xb.sort([x, y], lambda a, b, c, d: a < b, -1, True)[1] | flip(xb.sort([x, y], lambda a, b, c, d: a > b, -1, True)[1])
reduce | sums(xb.sort([x, y], lambda a, b, c, d: a < b, -1, True)[1]) | sums(y)
reduce | wide(xb.top_k(x, 2, False)[0][..., 1], x) | wide(sort(x)[..., 1], x)
reduce | wide(xb.prod(x, axis=-1), x) | fold(flip(x), 1.0, multiply)
reduce | xb.scan(x, 1.0, lambda a, c: (a * c, a * c), 0)[0] if len(dims(x)) == 1 else x | loop(n(x), x, lambda s, i: s) if len(dims(x)) > 1 else xb.reduce_window(x, 1.0, multiply, [n(x)], [1], [(n(x) - 1, 0)])
matrix | dot(x, y) | turned(dot(turned(y), turned(x)))
matrix | dot(x, y) | dot(y, x)
matrix | dot(x, y) | dot(x, turned(y))
matrix | dot(dot(x, y), x) | dot(x, dot(y, x))
matrix | dot(x, y + x) | dot(x, y) + dot(x, x)
matrix | dot(2.0 * x, y) | 2.0 * dot(x, y)
matrix | dot(x, turned(y)) | xb.dot_general(x, y, [1], [1])
matrix | dot(x, turned(y)) | xb.dot_general(x, y, [1], [0])
matrix | dot(turned(x), y) | xb.dot_general(x, y, [0], [0])
matrix | dot(x, y) | xb.reduce(xb.broadcast_in_dim(x, (3, 3, 3), (0, 1)) * xb.broadcast_in_dim(y, (3, 3, 3), (1, 2)), 0.0, add, [1])
matrix | dot(x, y) | xb.reduce(xb.broadcast_in_dim(x, (3, 3, 3), (1, 0)) * xb.broadcast_in_dim(y, (3, 3, 3), (1, 2)), 0.0, add, [1])
matrix | dot(x, unit(x)) | x
matrix | dot(unit(x), x) | dot(x, unit(x))
matrix | x * unit(x) | turned(x) * unit(x)
matrix | x * unit(x) | x
matrix | sums(dot(x, y)) | dot(x, sums(y))
matrix | turned(x) * y | turned(x * turned(y))
matrix | turned(x) * y | turned(x * y)
matrix | turned(x) | x
matrix | fold(x, 0.0, add, 0) | turned(sums(turned(x)))
matrix | fold(x, 0.0, add, 0) | turned(sums(x))
matrix | x[[2, 1, 0]] | flip(x, 0)
matrix | x[[1, 2, 0]] | flip(x, 0)
matrix | x[[1, 2, 0]][[2, 0, 1]] | x
matrix | x[[1, 2, 0]][[1, 2, 0]] | x
matrix | dot(convert(xb.one_hot(xb.constant(x.builder, [2, 0, 1]), 3), x), x) | x[[2, 0, 1]]
matrix | dot(convert(xb.one_hot(xb.constant(x.builder, [2, 0, 1]), 3), x), x) | x[[1, 2, 0]]
matrix | xb.cholesky(definite(x)) | turned(xb.cholesky(definite(x)))
matrix | xb.cholesky(definite(x)) | xb.cholesky(turned(definite(x)))
matrix | xb.cholesky(definite(x)) | xb.cholesky(definite(turned(x)))
matrix | xb.cholesky(definite(x)) | xb.cholesky(definite(x) + 1e-3 * unit(x))
matrix | dot(xb.cholesky(definite(x)), turned(xb.cholesky(definite(x)))) | definite(x)
matrix | xb.triangular_solve(lower(x), y, left_side=True, lower=True) | xb.triangular_solve(lower(x), 2.0 * y, left_side=True, lower=True) * 0.5
matrix | xb.triangular_solve(lower(x), y, left_side=True, lower=True) | xb.triangular_solve(lower(x) + turned(x) * 0.0, y, left_side=True, lower=True)
matrix | xb.triangular_solve(lower(x), y, left_side=True, lower=True) | xb.triangular_solve(lower(x), y, left_side=False, lower=True)
matrix | dot(lower(x), xb.triangular_solve(lower(x), y, left_side=True, lower=True)) | y
complex | xb.real(square(xb.complex(x, y))) | x * x - y * y
complex | xb.imag(square(xb.complex(x, y))) | 2.0 * x * y
complex | xb.imag(square(xb.complex(x, y))) | xb.imag(square(xb.complex(y, x)))
complex | xb.real(xb.complex(x, y) * xb.conj(xb.complex(x, y))) | x * x + y * y
complex | abs(xb.complex(x, y)) | sqrt(x * x + y * y)
complex | xb.real(exp(xb.complex(x, y))) | exp(x) * cos(y)
complex | xb.real(1.0 / xb.complex(x, y)) | x / (x * x + y * y)
complex | xb.imag(1.0 / xb.complex(x, y)) | y / (x * x + y * y)
complex | xb.real(xb.complex(x, y)) | xb.real(xb.conj(xb.complex(x, y)))
complex | xb.imag(xb.complex(x, y)) | xb.imag(xb.conj(xb.complex(x, y)))
complex | xb.real(xb.complex(x, y) / xb.complex(y, x)) | 2.0 * x * y / (x * x + y * y)
dtype | convert(x, "f64") | x
dtype | convert(x, "bf16") | x
dtype | convert(x, "f16") + 1.0 | x + 1.0
dtype | convert(x, "s32") | x
dtype | convert(x > 0.0, x) | x > 0.0
dtype | convert(convert(x, "bf16") * 2.0, "f64") | 2.0 * x
dtype | convert(sums(convert(x, "f64")), "bf16") | sums(x)
structure | spread(x, y, xb.ge) | spread(x, y, xb.gt)
structure | spread(x, y, xb.ge) | spread(x, y, xb.le)
structure | spread(x, y, xb.ge) | spread(2.0 * x, y, xb.ge)
structure | spread(x, y, xb.ge) | spread(x, 2.0 * y, xb.ge) / 2.0
structure | pooled(x, -inf, maximum) | maximum(x, before(x, -inf))
structure | pooled(x, -inf, maximum) | maximum(x, before(x, 0.0))
structure | pooled(x, -inf, maximum) | pooled(x, 0.0, maximum)
structure | pooled(x, -inf, maximum) | -pooled(-x, inf, minimum)
structure | pooled(x, 0.0, add) | x + before(x, 0.0)
structure | pooled(x, 1.0, multiply) | x * before(x, 1.0)
structure | pooled(x, 1.0, multiply) | x * before(x, 0.0)
structure | convolved(x, y) | x * wide(y[..., 1], x) + before(x, 0.0) * wide(y[..., 0], x)
structure | convolved(x, y) | x * wide(y[..., 0], x) + before(x, 0.0) * wide(y[..., 1], x)
structure | convolved(x, y) | convolved(2.0 * x, 0.5 * y)
structure | convolved(x + y, y) | convolved(x, y) + convolved(y, y)
structure | scattered(x, y, [0, 2], add) | x + padded(cut(y, 0, 1), 0, 3, 0.0) + padded(cut(y, 1, 2), 2, 1, 0.0)
structure | scattered(x, y, [0, 0], add) | x + padded(cut(y, 0, 1) + cut(y, 1, 2), 0, 3, 0.0)
structure | scattered(x, y, [0, 0], add) | x + padded(cut(y, 1, 2), 0, 3, 0.0)
structure | scattered(x, y, [2, 0], add) | scattered(x, y, [0, 2], add)
structure | scattered(x, y, [1, 1], maximum) | maximum(x, padded(maximum(cut(y, 0, 1), cut(y, 1, 2)), 1, 2, -inf))
structure | scattered(x, y, [1, 1], maximum) | maximum(x, padded(maximum(cut(y, 0, 1), cut(y, 1, 2)), 1, 2, 0.0))
structure | scattered(x, y, [1, 9], add) | x + padded(cut(y, 0, 1), 1, 2, 0.0)
structure | scattered(x, y, [1, 9], add) | x + padded(cut(y, 0, 1), 1, 2, 0.0) + padded(cut(y, 1, 2), 3, 0, 0.0)
structure | scattered(x, y, [1, -1], add) | x + padded(cut(y, 0, 1), 1, 2, 0.0) + padded(cut(y, 1, 2), 3, 0, 0.0)
structure | x[[0, 0, 1, 2]] | before(x, 0.0) + masked(x, "EQ", 0)
structure | x[[0, 0, 1, 2]] | before(x, 0.0) + masked(x, "EQ", 1)
structure | xb.real(xb.fft(xb.fft(xb.complex(x, y), "FFT", 4), "IFFT", 4)) | x
structure | xb.real(xb.fft(xb.complex(x + y, y), "FFT", 4)) | xb.real(xb.fft(xb.complex(x, y * 0.0), "FFT", 4)) + xb.real(xb.fft(xb.complex(y, y), "FFT", 4))
structure | xb.real(xb.fft(xb.complex(x, y), "FFT", 4)) | xb.real(xb.fft(xb.complex(y, x), "FFT", 4))
structure | moved(x, place(y)) | moved(x, clamp(0, place(y), 3))
structure | moved(x, place(y)) | moved(x, clamp(0, place(y), 2))
structure | moved(x, place(y)) | moved(x, place(y) + 1)
structure | moved(x, abs(place(y))) | moved(x, place(abs(y)))
structure | updated(x, 0.0, place(y)) | masked(x, "NE", place(y))
structure | xb.batch_norm_inference(x, y, x, y, y * y, 1e-3, 0) | (x - y) / sqrt(y * y + 1e-3) * y + x
structure | xb.batch_norm_inference(x, y, x, y, y * y, 1e-3, 0) | (x - y) / (sqrt(y * y) + 1e-3) * y + x
structure | xb.batch_norm_inference(x, y, x, y, y, 1e-3, 0) | (x - y) * rsqrt(y + 1e-3) * y + x
structure | xb.batch_norm_inference(x, y, x, y, y, 1e-3, 0) | (x - y) * rsqrt(y + 2e-3) * y + x
structure | xb.map([x, y], lambda a, b: xb.select(a > b, a, b)) | maximum(x, y)
structure | xb.scan(x, 0.0, lambda a, c: (a * 0.5 + c, a + c), is_reverse=True)[0] | flip(xb.scan(flip(x), 0.0, lambda a, c: (a * 0.5 + c, a + c))[0])
structure | xb.scan(x, 0.0, lambda a, c: (a * 0.5 + c, a + c), is_reverse=True)[0] | xb.scan(x, 0.0, lambda a, c: (a * 0.5 + c, a + c))[0]
structure | xb.scan(x, -inf, lambda a, c: (xb.maximum(a, c), xb.maximum(a, c)))[0] | xb.reduce_window(x, -inf, maximum, [4], [1], [(3, 0)])
structure | xb.scan(x, 0.0, lambda a, c: (xb.maximum(a, c), xb.maximum(a, c)))[0] | xb.reduce_window(x, -inf, maximum, [4], [1], [(3, 0)])
structure | xb.scan(x, 0.0, lambda a, c: (c, a + c))[0] | cumulated(x) - x
signed zero | 1.0 / x | 1.0 / (x + 0.0)
signed zero | 1.0 / (x * 0.0) | 1.0 / (abs(x) * 0.0)
signed zero | 1.0 / -x | 1.0 / (0.0 - x)
signed zero | 1.0 / (x - y) | -1.0 / (y - x)
signed zero | 1.0 / maximum(x, 0.0) | 1.0 / where(x > 0.0, x, 0.0)
signed zero | 1.0 / abs(x) | abs(1.0 / x)
signed zero | 1.0 / sqrt(x * x) | abs(1.0 / x)
signed zero | y / x | (y * x) / (x * x)
signed zero | atan2(x, -1.0 - abs(y)) | atan2(x + 0.0, -1.0 - abs(y))
signed zero | atan2(-x, -1.0 - abs(y)) | -atan2(x, -1.0 - abs(y))
signed zero | atan2(0.0 - x, -1.0 - abs(y)) | -atan2(x, -1.0 - abs(y))
signed zero | atan2(x * 0.0, y) | x * 0.0
signed zero | atan2(x, y) | where(y > 0.0, atan(x / y), where(x >= 0.0, atan(x / y) + 3.141592653589793, atan(x / y) - 3.141592653589793))
signed zero | 1.0 / rem(x, 1.0) | 1.0 / (x - trunc(x))
signed zero | 1.0 / round(x * 0.1) | 1.0 / floor(x * 0.1 + 0.5)
signed zero | rsqrt(x * 0.0) | rsqrt(abs(x) * 0.0)
signed zero | where(x < 0.0, -x, x) / x | abs(x) / x
signed zero | 1.0 / where(x < 0.0, -x, x) | 1.0 / abs(x)
signed zero | 1.0 / power(x, 3.0) | 1.0 / (x * x * x)
signed zero | power(x, -3.0) | 1.0 / (x * x * x)
signed zero | power(x, -1.0) | rsqrt(x) * rsqrt(x)
signed zero | 1.0 / cbrt(x) | cbrt(1.0 / x)
signed zero | 1.0 / sinh(x) | 2.0 / (exp(x) - exp(-x))
signed zero | log(abs(x)) * sign(x) | where(x > 0.0, log(x), -log(-x))
signed zero | maximum(x, y) / minimum(x, y) | where(x > y, x / y, y / x)
signed zero | power(x, y + y) | power(x, y) * power(x, y)
signed zero | power(x, y + 1.0) | power(x, y) * x
signed zero | power(x, y - 1.0) | power(x, y) / x
signed zero | power(x, -y) | 1.0 / power(x, y)
signed zero | power(x, y) | power(-x, y)
signed zero | power(x, 2.0 * y) | power(x * x, y)
signed zero | power(x, 2.0 * y) | power(abs(x), 2.0 * y)
signed zero | power(power(x, y), 2.0) | power(x, 2.0 * y)
signed zero | power(power(x, y), 0.5) | power(x, 0.5 * y)
signed zero | power(x, y) * power(x, -y) | x * 0.0 + 1.0
signed zero | power(x, y) / power(x, y) | x * 0.0 + 1.0
signed zero | log(power(x, y)) | y * log(x)
signed zero | power(x * y, y) | power(x, y) * power(y, y)
signed zero | power(x, floor(y)) | exp(floor(y) * log(x))
signed zero | power(x, 4.0) | square(square(x))
signed zero | power(x, 2.5) | x * x * sqrt(x)
signed zero | power(x, 3.5) | sqrt(power(x, 7.0))
signed zero | sqrt(x * x * x) | x * sqrt(x)
signed zero | sqrt(x * y * y) | abs(y) * sqrt(x)
signed zero | sqrt(x * y * y) | y * sqrt(x)
signed zero | exp(y * log(x) + x) | power(x, y) * exp(x)
signed zero | log(x) - log(x) | x * 0.0
signed zero | exp(log(x) - log(x)) | x * 0.0 + 1.0
signed zero | exp(log(x) * 2.0) | x * x
signed zero | exp(log(x) + log(y)) | x * y
signed zero | exp(log(abs(x)) + log(abs(y))) | abs(x * y)
signed zero | exp(2.0 * log(abs(x))) | x * x
signed zero | exp(-log(x)) | 1.0 / x
signed zero | exp(0.5 * log(x)) | sqrt(x)
signed zero | log(exp(x) * x) | x + log(x)
signed zero | log(x * x * x) | 3.0 * log(x)
signed zero | log(x * x * y) | 2.0 * log(abs(x)) + log(y)
signed zero | log(sqrt(x * x)) | log(abs(x))
signed zero | log(sqrt(x * x)) | 0.5 * log(x * x)
signed zero | log(-x / y) | log(-x) - log(y)
signed zero | log1p(x / y) | log(x + y) - log(y)
signed zero | log1p(x) + log1p(-x) | log1p(-x * x)
signed zero | log(exp(x) + 1.0) - x | log1p(exp(-x))
signed zero | logistic(log(x)) | x / (1.0 + x)
signed zero | tanh(log(x)) | (x * x - 1.0) / (x * x + 1.0)
signed zero | tanh(0.5 * log(x)) | (x - 1.0) / (x + 1.0)
signed zero | logistic(log(x) - log(y)) | x / (x + y)
signed zero | sqrt(x) * sqrt(x) * sqrt(y) | x * sqrt(y)
signed zero | sqrt(x) / sqrt(y) | sqrt(x * y) / y
signed zero | sqrt(x) / x | rsqrt(x)
signed zero | sqrt(x) * rsqrt(x) | x * 0.0 + 1.0
signed zero | rsqrt(x / y) | sqrt(y / x)
signed zero | cbrt(x * y) | cbrt(x) * cbrt(y)
signed zero | cbrt(x) * cbrt(x) | cbrt(x * x)
signed zero | cbrt(x * x) | power(x, 2 / 3)
literal | x * (1.0 + TINY) | x
literal | x + TINY | x
literal | x * 0.3 | x * (0.3 + TINY)
literal | x * (1 / 7) | x / 7.0
literal | x * 0.142857 | x / 7.0
literal | x * 0.14285715 | x / 7.0
literal | x * 3.141592653589793 | x * 3.1415927
literal | x * 3.141592653589793 | x * 3.14159
literal | x * 3.141592653589793 / 180.0 | x * 0.017453292519943295
literal | exp(x * 0.6931471805599453) | exp(x * 0.693147)
literal | exp(x * 0.6931471805599453) | exp(x * 0.69314718)
literal | x * 0.1 + y * 0.9 | y + 0.1 * (x - y)
literal | x * 0.1 + y * 0.9 | y + 0.1 * (x + y)
literal | x * 0.1 * 0.1 | x * 0.01
literal | x * 0.3 - x * 0.2 - x * 0.1 | x * 0.0
literal | x * 0.999 + y * 0.001 | x + (y - x) / 1000.0
literal | x * (0.1 + 0.2) | x * 0.3
literal | x * 1.4142135 * 0.70710677 | x
literal | x * 1.4142135 | x * 1.4142137
literal | x * 2.718281828 | x * exp(x * 0.0 + 1.0)
literal | x * 16777217.0 | x * 16777216.0
literal | x * 0.333 | x / 3.0
literal | x * 0.33333334 | x / 3.0
literal | x * 0.3333333 | x / 3.0
literal | x * 1e-4 | x / 10000.0
literal | x * 1e-4 | x / 10001.0
literal | x / 255.0 | x * 0.003921569
literal | x / 255.0 | x * 0.00392157
literal | x / 255.0 | x / 256.0
literal | tanh(x * 0.7978845608028654) | tanh(x * 0.79788456)
literal | tanh(x * 0.7978845608028654) | tanh(x * 0.797885)
literal | logistic(1.702 * x) | logistic(1.7015 * x)
literal | maximum(x, 0.1) | maximum(x, 0.1 + TINY)
literal | where(x > 0.5, x, y) | where(x > 0.5 + TINY, x, y)
literal | power(x, 2.0) | power(x, 2.0 + TINY)
literal | power(x, 3.0) | power(x, 3.0000002)
literal | floor(x * 3.0) | floor(x / (1 / 3))
loop | loop(3, x, lambda s, i: s * 0.5 + y) | ((x * 0.5 + y) * 0.5 + y) * 0.5 + y
loop | loop(3, x, lambda s, i: s + y) | x + 3.0 * y
loop | loop(3, x, lambda s, i: s + y) | x + 4.0 * y
loop | loop(4, x, lambda s, i: s * s) | power(x, 16.0)
loop | loop(3, x, lambda s, i: s * s) | power(x, 9.0)
loop | loop(3, x, lambda s, i: tanh(s)) | tanh(tanh(tanh(x)))
loop | loop(3, x, lambda s, i: tanh(s)) | tanh(tanh(x))
loop | loop(4, x, lambda s, i: s + convert(i, s)) | x + 6.0
loop | loop(4, x, lambda s, i: s + convert(i, s)) | x + 10.0
loop | loop(0, x, lambda s, i: s * 2.0) | x
loop | loop(5, x, lambda s, i: maximum(s, y)) | maximum(x, y)
loop | loop(3, x, lambda s, i: s / 2.0) | x / 8.0
loop | loop(3, x, lambda s, i: s - y) | loop(3, x, lambda s, i: s + y) - 6.0 * y
loop | loop(2, x, lambda s, i: loop(2, s, lambda t, j: t + y)) | x + 4.0 * y
loop | loop(2, x, lambda s, i: loop(2, s, lambda t, j: t * y)) | x * square(square(y))
loop | loop(6, 1.0 + x * 0.0, lambda s, i: 0.5 * (s + y / s)) | sqrt(y)
loop | loop(3, x, lambda s, i: where(i == 1, s + y, s)) | x + y
loop | loop(3, x, lambda s, i: where(i > 1, s + y, s)) | x + y
loop | loop(n(x), x * 0.0, lambda s, i: updated(s, moved(x, i), i)) | x
loop | until(x, lambda s: s + 1.0, lambda s: xb.reduce(s, inf, xb.minimum) < 0.0) | x
loop | until(x, lambda s: s * 0.5, lambda s: xb.reduce(abs(s), 0.0, xb.maximum) > 1.0) | x * 0.5
loop | choice(xb.reduce(x, 0.0, xb.add) > 0.0, x, lambda v: v * 2.0, lambda v: -v) | where(wide0(xb.reduce(x, 0.0, xb.add) > 0.0, x), x * 2.0, -x)
loop | choice(xb.reduce(x, 0.0, xb.add) > 0.0, x, lambda v: v * 2.0, lambda v: -v) | choice(xb.reduce(x, 0.0, xb.add) <= 0.0, x, lambda v: -v, lambda v: v * 2.0)
loop | choice(xb.reduce(x, 0.0, xb.add) > 0.0, x, lambda v: v, lambda v: -v) | abs(x)
loop | choice(xb.reduce(x * x, 0.0, xb.add) >= 0.0, x, lambda v: v * 2.0, lambda v: -v) | x * 2.0
loop | cumulated(x) | flip(cumulated(flip(x)))
loop | cumulated(x) | loop(n(x), x * 0.0, lambda s, i: s + masked(wide(moved(x, i)[..., 0], x), "GE", i))
random | uniform(x) + x | x + uniform(x)
random | uniform(x) * 2.0 | uniform(x, 0.0, 2.0)
random | uniform(x) * y | x * uniform(y)
random | uniform(x) - uniform(x) | x * 0.0
random | uniform(x) + uniform(x) * x | uniform(x) * x + uniform(x)
random | uniform(x) | normal(x)
random | normal(x) + x | normal(x, x, 1.0)
random | normal(x) * 2.0 + 1.0 | normal(x, 1.0, 2.0)
random | normal(x) | -normal(x)
random | uniform(x) | 1.0 - uniform(x)
random | x * 1.0 | where(uniform(x) < 2.0, x, y)
random | where(uniform(x) < 0.5, x, y) | where(uniform(x) >= 0.5, y, x)
random | sums(uniform(x) * x) / n(x) | means(uniform(x) * x)
random | flip(uniform(x)) | uniform(x)
"""  # noqa: E501

# The same for integers, whose results are exact.
INTEGER_FORMS = """
integer | x + y | y + x
integer | x * (y + 1) | x * y + x
integer | (x + y) * (x - y) | x * x - y * y
integer | (x * 2) / 2 | x
integer | (x + 1) - 1 | x
integer | x * 4 | shift_left(x, 2)
integer | x / 2 | shift_right_arithmetic(x, 1)
integer | x / 2 | shift_right_logical(x, 1)
integer | shift_right_arithmetic(x, 1) | shift_right_logical(x, 1)
integer | rem(x, 8) | and_(x, 7)
integer | -x | not_(x) + 1
integer | x - y | x + not_(y) + 1
integer | xor(x, x) | x - x
integer | xor(x, y) | or_(x, y) - and_(x, y)
integer | xor(x, y) | or_(x, y) + and_(x, y)
integer | x + y | xor(x, y) + 2 * and_(x, y)
integer | or_(x, y) | not_(and_(not_(x), not_(y)))
integer | x / y * y + rem(x, y) | x
integer | x / y | -(-x / y)
integer | rem(x, y) | rem(x, -y)
integer | x / y / 2 | x / (2 * y)
integer | (x + y) / 2 | x / 2 + y / 2
integer | maximum(x, y) - minimum(x, y) | where(x > y, x - y, y - x)
integer | maximum(x, y) + minimum(x, y) | x + y
integer | where(x > y, x, y) | maximum(x, y)
integer | where(x > y, x, y) | where(x >= y, x, y)
integer | where(x - y > 0, x, y) | maximum(x, y)
integer | where(x < 0, -x, x) | maximum(x, -x)
integer | abs(x) | where(x < 0, -x, x)
integer | sign(x) * abs(x) | x
integer | sign(x) | where(x > 0, 1, -1)
integer | clamp(-3, x, 3) | minimum(maximum(x, -3), 3)
integer | clamp(0, x, 3) | minimum(x, 3)
integer | popcnt(x) | popcnt(not_(x))
integer | popcnt(and_(x, -x)) | where(x == 0, 0, 1)
integer | clz(x) | clz(abs(x))
integer | convert(convert(x, "s8"), x) | x
integer | convert(convert(x, "u8"), x) | and_(x, 255)
integer | convert(convert(x, "s16"), x) | x
integer | convert(convert(x, "f32"), x) | x
integer | convert(convert(x, "f16"), x) | x
integer | convert(convert(x, "bf16"), x) | x
integer | convert(convert(x, "pred"), x) | x
integer | convert(convert(x, "pred"), x) | where(x != 0, 1, 0)
integer | convert(convert(x, "pred"), x) | and_(x, 1)
integer | convert(convert(x, "f32") / 2.0, x) | x / 2
integer | convert(floor(convert(x, "f32") / 2.0), x) | x / 2
integer | convert(convert(x, "f32") + convert(y, "f32"), x) | x + y
integer | convert(convert(x, "f32") * convert(y, "f32"), x) | x * y
integer | fold(x, 0, add) | fold(flip(x), 0, add)
integer | fold(x, 0, add) | fold(x, 1, add)
integer | fold(x, 1, multiply) | fold(x, 0, multiply)
integer | fold(x, 0, maximum) | maxes(x)
integer | fold(x, -1, and_) | fold(x, 0, and_)
integer | fold(x, 0, or_) | fold(x, 0, add)
integer | fold(x, 0, xor) | rem(fold(x, 0, add), 2)
integer | sort(x) | flip(sort(-x)) * -1
integer | sort(x) | sort(flip(x))
integer | shift_left(x, 40) | x * 0
integer | shift_left(shift_right_logical(x, 1), 1) | and_(x, -2)
integer | shift_left(shift_right_logical(x, 1), 1) | x
integer | shift_left(x, y) | x * shift_left(x * 0 + 1, y)
integer | power(x, 2) | x * x
integer | power(x, 3) | x * x
integer | x * x * x | x * x
integer | where(and_(x, 1) == 0, x, x + 1) | x + and_(x, 1)
integer | where(rem(x, 2) == 1, 1, 0) | and_(x, 1)
integer | where(x == y, 1, 0) | where(xor(x, y) == 0, 1, 0)
integer | where(x * y == 0, 1, 0) | where(or_(x == 0, y == 0), 1, 0)
integer | where(compare(x, y, "LT"), x, y) | minimum(x, y)
integer | loop(4, x, lambda s, i: s + s) | x * 16
integer | loop(4, x, lambda s, i: s + convert(i, s)) | x + 6
integer | loop(4, x, lambda s, i: s * y + 1) | loop(3, x * y + 1, lambda s, i: s * y + 1)
integer | updated(x, 0, 1) | masked(x, "NE", 1)
integer | roll(roll(x, 1), 1) | roll(x, 2)
"""

# What stands before and after a form, and what programs with a slip are made of.
NEUTRAL = (
    "x + y",
    "x - y",
    "x * y",
    "x * 0.5 + y",
    "x / (1.0 + y * y)",
    "x / y",
    "maximum(x, y)",
    "minimum(x, 0.5)",
    "where(x > y, x, y * 0.5)",
    "where(x <= 0.0, y, x)",
    "abs(x)",
    "tanh(x)",
    "exp(x * 0.5)",
    "log(x)",
    "log1p(x * x)",
    "sqrt(x)",
    "rsqrt(x + 2.0)",
    "logistic(x)",
    "sin(x)",
    "square(x)",
    "x * 3.0 - 1.0",
    "floor(x)",
    "clamp(-1.0, x, 2.0)",
    "sums(x)",
    "means(x) + y",
    "x - maxes(x)",
    "fold(x, 0.0, add, 0)",
    "softmax(x)",
    "flip(x)",
    "roll(x, 1)",
    "turned(turned(x))",
    "masked(x, 'GE', 1)",
    "padded(cut(x, 1, n(x)), 1, 0, 0.5)",
    "down(x, 'bf16')",
    "loop(3, x, lambda s, i: s * 0.5 + y)",
    "sort(x)",
    "cumulated(x)",
    "power(x, 2.0)",
    "convert(x > 0.25, x) * y",
    "sign(x) * y",
    "rem(x, 2.0)",
    "atan2(x, y)",
)
INTEGER_NEUTRAL = (
    "x + y",
    "x - y",
    "x * y",
    "maximum(x, y)",
    "x * 3 - 1",
    "and_(x, 6)",
    "x / 2",
    "rem(x, 3)",
    "where(x > y, x, 1)",
    "fold(x, 0, add)",
    "flip(x)",
    "roll(x, 1)",
    "abs(x)",
    "shift_left(x, 1)",
    "xor(x, y)",
    "masked(x, 'LT', 2)",
)

# One token in the place of another. Each group is tried both ways.
SLIPS = (
    ("maximum", "minimum"),
    ("+", "-"),
    ("*", "/"),
    ("*", "+"),
    (">", ">="),
    (">", "<"),
    ("<=", "<"),
    ("'GE'", "'GT'"),
    ("'LT'", "'LE'"),
    ("sums", "means"),
    ("means", "maxes"),
    ("floor", "ceil"),
    ("floor", "round"),
    ("sqrt", "rsqrt"),
    ("log", "log1p"),
    ("exp", "expm1"),
    ("sin", "cos"),
    ("tanh", "logistic"),
    ("abs", "sign"),
    ("0.5", "0.50000012"),
    ("0.5", "0.5001"),
    ("1.0", "1.0000001"),
    ("2.0", "2.001"),
    ("-1.0", "-1.5"),
    ("0.0", "1e-7"),
    ("0.0", "-0.0"),
    ("3", "4"),
    ("1", "0"),
    ("add, 0", "add, -1"),
    ("x", "y"),
    ("softmax", "log_softmax"),
    ("sort(x)", "x"),
    ("cumulated", "sums"),
    ("flip(x)", "flip(x, 0)"),
    ("roll(x, 1)", "roll(x, 2)"),
    ("down(x, 'bf16')", "x"),
    ("rem", "power"),
    ("and_", "or_"),
    ("xor", "or_"),
    ("square", "abs"),
)

Table = list[tuple[str, str, str]]
Step = tuple[str, int, int]


def read(text: str) -> Table:
    """The rows of a table of forms."""
    rows = (line.split(" | ") for line in text.strip().splitlines())
    return [(kind, left.strip(), right.strip()) for kind, left, right in rows]


def dims(x: Any) -> tuple[int, ...]:
    return tuple(x.shape.dims)


def n(x: Any) -> int:
    return dims(x)[-1]


def wide(reduced: Any, like: Any, axis: int = -1) -> Any:
    """A value without `axis`, spread along it to the dimensions of `like`."""
    rank = len(dims(like))
    kept = [each for each in range(rank) if each != axis % rank]
    return xb.broadcast_in_dim(reduced, dims(like), kept)


def wide0(scalar: Any, like: Any) -> Any:
    return xb.broadcast_in_dim(scalar, dims(like), ())


def fold(x: Any, init: Any, function: Any, axis: int = -1) -> Any:
    return wide(xb.reduce(x, init, function, [axis]), x, axis)


def maxes(x: Any) -> Any:
    return wide(xb.amax(x, axis=-1), x)


def mins(x: Any) -> Any:
    return wide(xb.amin(x, axis=-1), x)


def sums(x: Any) -> Any:
    return fold(x, 0.0, xb.add)


def means(x: Any) -> Any:
    return sums(x) / float(n(x))


def variance(x: Any) -> Any:
    return means(xb.square(x - means(x)))


def flip(x: Any, axis: int = -1) -> Any:
    return xb.rev(x, [axis % len(dims(x))])


def turned(x: Any) -> Any:
    return xb.transpose(x, tuple(reversed(range(len(dims(x))))))


def cut(x: Any, start: int, limit: int) -> Any:
    return xb.slice_in_dim(x, start, limit, 1, len(dims(x)) - 1)


def cat(*parts: Any) -> Any:
    return xb.concatenate(list(parts), len(dims(parts[0])) - 1)


def roll(x: Any, places: int) -> Any:
    return x if places % n(x) == 0 else cat(cut(x, places % n(x), n(x)), cut(x, 0, places % n(x)))


def padded(x: Any, low: int, high: int, value: float) -> Any:
    return xb.pad(x, value, [(0, 0)] * (len(dims(x)) - 1) + [(low, high)])


def masked(x: Any, direction: Any, place: Any) -> Any:
    """x where the last index stands in this relation to `place`, elsewhere 0."""
    index = xb.iota(x.builder, xb.s32[dims(x)], len(dims(x)) - 1)
    return xb.select(xb.compare(index, place, direction), x, 0)


def convert(x: Any, to: Any) -> Any:
    return xb.convert(x, getattr(xb, to) if isinstance(to, str) else to.dtype)


def trunc(x: Any) -> Any:
    return xb.select(x < 0.0, xb.ceil(x), xb.floor(x))


def through(x: Any, middle: str) -> Any:
    return convert(convert(x, middle), x)


def moved(x: Any, start: Any) -> Any:
    """The last place at `start`, moved inside, spread over all places."""
    rank = len(dims(x))
    one = xb.dynamic_slice(
        x, [0] * (rank - 1) + [start] if isinstance(start, int) else start_of(rank, start), (*dims(x)[:-1], 1)
    )
    return wide(one.reshape(dims(x)[:-1]), x)


def start_of(rank: int, start: Any) -> list[Any]:
    return [0] * (rank - 1) + [start]


def updated(x: Any, value: Any, start: Any) -> Any:
    """x with `value` at this last place."""
    return masked(x, "NE", start) + masked(x * 0 + value, "EQ", start)


def outer(x: Any, y: Any) -> Any:
    """A square of products of the last dimension, folded back to the dimensions of x."""
    left, right = x.reshape(-1), y.reshape(-1)
    square = xb.dot_general(left, right, [], [])
    return (
        xb.slice_in_dim(square, 0, 1, 1, 0).reshape(dims(x))
        + xb.slice_in_dim(square, 1, 2, 1, 0).reshape(dims(x)) * 2.0
    )


def unit(x: Any) -> Any:
    """The unit matrix."""
    places = (xb.iota(x.builder, xb.s32[dims(x)], axis) for axis in (0, 1))
    return convert(xb.compare(*places, "EQ"), x)


def definite(x: Any) -> Any:
    return xb.dot(x, turned(x)) + unit(x)


def lower(x: Any) -> Any:
    """A lower triangle without zeros on its diagonal."""
    places = (xb.iota(x.builder, xb.s32[dims(x)], axis) for axis in (0, 1))
    return xb.select(xb.compare(*places, "GE"), x, 0.0) + unit(x) * 3.0


def before(x: Any, first: float) -> Any:
    """Each element one place later, after `first`."""
    return cut(padded(x, 1, 0, first), 0, n(x))


def pooled(x: Any, init: float, function: Any) -> Any:
    """Windows of two elements, an element and the one before it."""
    return xb.reduce_window(x, init, function, [2], [1], [(1, 0)])


def spread(x: Any, y: Any, chooses: Any) -> Any:
    return xb.select_and_scatter(x, chooses, (2,), (2,), "VALID", cut(y, 0, 2), 0.0, xb.add)


def convolved(x: Any, y: Any) -> Any:
    kernel = cut(y, 0, 2).reshape((1, 1, 2))
    return xb.conv(x.reshape((1, 1, n(x))), kernel, [1], [(1, 0)]).reshape(dims(x))


def scattered(x: Any, y: Any, places: Sequence[int], function: Any) -> Any:
    """x with the first elements of y brought to these places."""
    where = [[each] for each in places]
    roles = {"update_window_dims": (), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}
    return xb.scatter(x, where, cut(y, 0, len(places)), function, **roles)


def place(y: Any) -> Any:
    """The first element of y, as a number of a place."""
    return convert(xb.floor(y[0] * 2.0), "s32")


def loop(trips: int, start: Any, body: Any) -> Any:
    """`body` of the state and the trip, so many times; what it reads of x and y is carried along."""
    x, y = body.__globals__["x"], body.__globals__["y"]

    def step(s: Any) -> Any:
        inside = {**body.__globals__, "x": s[2], "y": s[3]}
        return s[0] + 1, FunctionType(body.__code__, inside, closure=body.__closure__)(s[1], s[0]), s[2], s[3]

    return xb.while_((0, start, x, y), lambda s: s[0] < trips, step)[1]


def until(x: Any, body: Callable[[Any], Any], goes_on: Callable[[Any], Any]) -> Any:
    return xb.while_((0, x), lambda s: xb.and_(s[0] < 20, goes_on(s[1])), lambda s: (s[0] + 1, body(s[1])))[1]


def choice(chosen: Any, x: Any, left: Callable[[Any], Any], right: Callable[[Any], Any]) -> Any:
    return xb.conditional(chosen, x, left, x, right)


def cumulated(x: Any) -> Any:
    """Sums up to each place, by a scan."""
    rank = len(dims(x))
    begin = xb.slice_in_dim(x, 0, 1, 1, rank - 1).reshape(dims(x)[:-1]) * 0.0
    return xb.scan(x, begin, lambda each, total: (each + total, each + total), rank - 1)[0]


def running(x: Any) -> Any:
    """Sums up to each place, by windows."""
    ones = [1] * (len(dims(x)) - 1)
    return xb.reduce_window(x, 0.0, xb.add, [*ones, n(x)], [*ones, 1], [(0, 0)] * len(ones) + [(n(x) - 1, 0)])


def uniform(x: Any, low: float = 0.0, high: float = 1.0) -> Any:
    ends = (xb.constant(x.builder, each, x.dtype) for each in (low, high))
    return xb.rng_uniform(*ends, x.shape)


def normal(x: Any, mean: Any = 0.0, deviation: float = 1.0) -> Any:
    centre = xb.constant(x.builder, 0.0 if isinstance(mean, xb.Value) else mean, x.dtype)
    drawn = xb.rng_normal(centre, xb.constant(x.builder, deviation, x.dtype), x.shape)
    return drawn + mean if isinstance(mean, xb.Value) else drawn


NAMES: dict[str, Any] = {
    **{name: getattr(xb, name) for name in dir(xb) if not name.startswith("_")},
    **{each.__name__: each for each in (dims, n, wide, wide0, fold, maxes, mins, sums, means, variance, flip, turned)},
    **{each.__name__: each for each in (cut, cat, roll, padded, masked, convert, trunc, through, moved)},
    **{each.__name__: each for each in (before, pooled, spread, convolved, scattered, place)},
    **{
        each.__name__: each
        for each in (unit, definite, lower, updated, outer, loop, until, choice, cumulated, running, uniform, normal)
    },
    "xb": xb,
    "inf": math.inf,
    "nan": math.nan,
}


class Program:
    """A list of steps, each a spelling of a function of two earlier values; it is traced for any element type."""

    def __init__(self, steps: Sequence[Step], parameters: int, shape: tuple[int, ...], outputs: int) -> None:
        self.steps, self.parameters, self.shape, self.outputs = tuple(steps), parameters, shape, outputs

    def trace(self, dtype: str, own: str) -> xb.Computation:
        """The computation in this element type; in any but its own, conversions between floats are left out."""

        def down(x: Any, to: str) -> Any:
            return through(x, to) if dtype == own else x

        def where(chosen: Any, left: Any, right: Any) -> Any:
            if not isinstance(left, xb.Value) and not isinstance(right, xb.Value):
                left = wide0(xb.constant(chosen.builder, left, getattr(xb, dtype)), chosen)
            return xb.select(chosen, left, right)

        names = {**NAMES, "down": down, "where": where}
        if own.startswith("u"):
            names["abs"] = lambda x: x
        if dtype != own:
            names["xb"] = Unrounded()
            names["convert"] = lambda x, to: x if isinstance(to, str) and to in LOSSY else convert(x, to)

        def body(*arguments: Any) -> Any:
            values = list(arguments)
            for text, left, right in self.steps:
                values.append(eval(text, {**names, "x": values[left], "y": values[right]}))
            return values[-1] if self.outputs == 1 else xb.tuple_([values[-1], values[-2]])

        spec = getattr(xb, dtype)[self.shape]
        return xb.computation(*[spec] * self.parameters)(body)

    def text(self) -> str:
        names = [f"p{index}" for index in range(self.parameters)]
        names += [f"v{index}" for index in range(len(self.steps))]
        lines = (
            f"{names[self.parameters + index]} = {spelled(text, names[left], names[right])}"
            for index, (text, left, right) in enumerate(self.steps)
        )
        return "; ".join(lines)


class Unrounded:
    """The public names of xbuild, with a reduce_precision that leaves numbers as they are."""

    def __getattr__(self, name: str) -> Any:
        return (lambda x, *_: x) if name == "reduce_precision" else getattr(xb, name)


def spelled(text: str, left: str, right: str) -> str:
    return re.sub(r"\b[xy]\b", lambda found: left if found[0] == "x" else right, text)


def draw(generator: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of one kind, in f64; a type of the program rounds them."""
    normal = generator.normal(size=shape)
    if kind == "ordinary":
        return normal
    if kind == "negative":
        return -np.abs(normal) - 0.01
    if kind == "positive":
        return np.abs(normal) + 0.01
    if kind == "zero":
        return np.where(generator.random(shape) < 0.5, 0.0, normal)
    if kind == "zeros":
        return np.zeros(shape)
    if kind == "tied":
        return generator.integers(-2, 3, size=shape) * 1.0
    if kind == "halves":
        return generator.integers(-4, 5, size=shape) * 0.5
    if kind == "literals":
        near = generator.choice([0.5, 1.0, 2.0, 3.0, 0.25, 1.5, 0.1], size=shape) * generator.choice(
            [-1, 1], size=shape
        )
        return near + generator.choice([0.0, 1e-3, -1e-3], size=shape)
    if kind == "near singular":
        return 1.0 + generator.choice([0.0, 1e-2, -1e-2], size=shape) * generator.random(shape)
    if kind == "larger":
        return normal * 6.0
    raise ValueError(kind)


# Kinds at which a NaN or an infinity in one program alone counts, and those at which a gap alone does.
STRICT_KINDS = ("ordinary", "ordinary", "negative", "positive", "zero", "zeros", "tied", "halves", "literals")
GAP_KINDS = ("near singular", "larger")


def restricted(values: np.ndarray, domain: Any) -> np.ndarray:
    """These numbers, moved into a domain."""
    match domain:
        case "positive":
            return np.where(values == 0, 0.5, np.abs(values))
        case "nonnegative":
            return np.abs(values)
        case "negative":
            return np.where(values == 0, -0.5, -np.abs(values))
        case "nonpositive":
            return -np.abs(values)
        case "nonzero":
            return np.where(values == 0, 0.5, values)
        case "unit":
            return np.clip(np.abs(values), 0, 1)
        case (low, high):
            return np.clip(values, low, high)
    return values


def leaves(result: Any) -> list[np.ndarray]:
    return [np.asarray(each) for each in (result if isinstance(result, tuple) else (result,))]


def number_type(name: str) -> Any:
    """NumPy's type for a type of xbuild."""
    return (
        getattr(ml_dtypes, {"bf16": "bfloat16"}[name])
        if name == "bf16"
        else np.dtype(f"{NUMPY[name[0]]}{int(name[1:]) // 8}")
    )


def as_wide(result: Any) -> list[np.ndarray]:
    return [each.astype(np.complex128 if each.dtype.kind == "c" else np.float64) for each in leaves(result)]


class Judge:
    """What runs say of two programs: contradictions of `equal`, and whether anything at all tells them apart."""

    def __init__(self, least: float = 0.0) -> None:
        self.least = least
        self.against: list[str] = []
        self.weak: list[str] = []
        self.apart = 0

    def compare(self, kind: str, strict: bool, runs: dict[str, tuple[Any, Any]], inputs: Any) -> None:
        """Take runs of both programs in f64, f32 and their own type on the same inputs."""
        narrow = list(zip(*map(as_wide, runs["f32"]), strict=True))
        for one, other in zip(*map(leaves, runs["f64"]), strict=True):
            self.apart += one.dtype.kind != other.dtype.kind  # results of another kind of type are different
        for index, (one, other) in enumerate(zip(*map(as_wide, runs["f64"]), strict=True)):
            with np.errstate(all="ignore"):
                patterns = pattern(one) != pattern(other)
                gap = np.where(np.isfinite(one) & np.isfinite(other), np.abs(one - other), 0.0)
                size = np.maximum(np.abs(one), np.abs(other))
                finite = size[np.isfinite(size)]
                largest = finite.max() if finite.size else 0.0
                left, right = narrow[index]
                narrow_gap = np.where(np.isfinite(left) & np.isfinite(right), np.abs(left - right), 0.0)
                persists = gap > 0.25 * narrow_gap
                strong = (gap > self.least * largest) & persists & (narrow_gap > self.least * largest)
                if kind == "larger":  # what is lost beside 1, as in 1 / (1 + exp(-x)), is lost in both precisions
                    strong &= gap > 2.0**-52
                real = (gap > 1e-10 * size) & (gap > 1e-4 * narrow_gap)
                self.apart += int(patterns.sum()) + int(real.sum())
            where = f"{kind} output {index}"
            narrow_patterns = pattern(left) != pattern(right)
            if "own" in runs:  # its literals may round to the same numbers
                mine, others = (as_wide(each)[index] for each in runs["own"])
                patterns &= pattern(mine) != pattern(others)
                narrow_patterns &= pattern(mine) != pattern(others)
                with np.errstate(all="ignore"):
                    strong &= ~(np.abs(mine - others) <= self.least * largest)
            self.apart += int(narrow_patterns.sum())
            if strong.any():
                place = tuple(int(each) for each in np.argwhere(strong)[0])
                self.against.append(f"{where} at {place}: gap {gap[place]:.2e} of {largest:.2e}, inputs {inputs}")
            if strict and (patterns & narrow_patterns).any():
                place = tuple(int(each) for each in np.argwhere(patterns & narrow_patterns)[0])
                self.against.append(f"{where} at {place}: {one[place]} and {other[place]}, inputs {inputs}")
            elif strict and (patterns | narrow_patterns).any():
                place = tuple(int(each) for each in np.argwhere(patterns | narrow_patterns)[0])
                said = f"f64 {one[place]} and {other[place]}, f32 {left[place]} and {right[place]}"
                self.weak.append(f"{where} at {place}: {said}, inputs {inputs}")
        if "own" in runs:
            for one, other in zip(*map(as_wide, runs["own"]), strict=True):
                apart = pattern(one) != pattern(other)
                self.apart += int(apart.sum())
                if strict and apart.any():
                    self.weak.append(f"{kind}: a NaN or infinity in the programs' own type alone, inputs {inputs}")


def pattern(values: np.ndarray) -> np.ndarray:
    """0 for a finite number, 1 for a NaN, 2 and 3 for the infinities."""
    return np.where(np.isnan(values), 1, np.where(np.isposinf(values), 2, np.where(np.isneginf(values), 3, 0)))


def float_runs(one: Program, other: Program, own: str, domain: dict[int, Any], seed: int) -> tuple[Judge, Any]:
    judge = Judge({"f64": 2e-7, "f32": 1e-6, "bf16": 3e-2, "f16": 4e-3}[own])
    traced = {
        kind: (one.trace(dtype, own), other.trace(dtype, own)) for kind, dtype in (("f64", "f64"), ("f32", "f32"))
    }
    if own not in ("f64", "f32"):
        traced["own"] = one.trace(own, own), other.trace(own, own)
    elif own == "f32":
        traced["f32"] = one.trace(own, own), other.trace(own, own)
    generator = np.random.default_rng(seed)

    def run(kind: str, strict: bool, inputs: Sequence[np.ndarray], turn: int) -> None:
        runs = {}
        for name, pair in traced.items():
            dtype = own if name == "own" else name
            given = [each.astype(number_type(dtype)) for each in inputs]
            runs[name] = tuple(xb.evaluate(each, *given, seed=turn) for each in pair)
        judge.compare(kind, strict, runs, [each.tolist() for each in inputs])

    for turn, kind in enumerate((*STRICT_KINDS, *GAP_KINDS)):
        exact = [draw(generator, kind, one.shape) for _ in range(one.parameters)]
        exact = [restricted(each, domain.get(number)) for number, each in enumerate(exact)]
        run(kind, turn < len(STRICT_KINDS), [each.astype(np.float32) for each in exact], turn)
    return judge, run


def integer_runs(one: Program, other: Program, own: str, seed: int) -> tuple[Judge, Any]:
    """Integers are exact: any difference on small numbers is against `equal`, on others it is weak."""
    judge = Judge()
    pair = one.trace(own, own), other.trace(own, own)
    generator = np.random.default_rng(seed)
    number = number_type(own)
    limits = np.iinfo(number)

    def run(kind: str, strict: bool, given: Sequence[np.ndarray], turn: int) -> None:
        results = [leaves(xb.evaluate(each, *given, seed=turn)) for each in pair]
        for left, right in zip(*results, strict=True):
            if left.dtype != right.dtype or not np.array_equal(left, right):
                judge.apart += 1
                said = f"{kind}: {left.tolist()} and {right.tolist()} of {[each.tolist() for each in given]}"
                (judge.against if strict else judge.weak).append(said)

    for turn in range(14):
        low = -4 if limits.min else 0
        if turn < 10:
            given = [
                generator.integers(low, 8 if turn < 6 else 3, one.shape).astype(number) for _ in range(one.parameters)
            ]
        else:
            given = [generator.integers(limits.min, limits.max, one.shape, number, True) for _ in range(one.parameters)]
        run("small" if turn < 10 else "any", turn < 10, given, turn)
    return judge, run


def slipped(steps: Sequence[Step], chance: random.Random) -> list[Step] | None:
    """The steps with one token changed, or None where none fits."""
    places = list(range(len(steps)))
    chance.shuffle(places)
    for place in places:
        text, left, right = steps[place]
        options = [(old, new) for pair in SLIPS for old, new in (pair, pair[::-1]) if mentions(text, old)]
        if left != right:
            options.append(("", ""))
        if not options:
            continue
        old, new = chance.choice(options)
        if not old:
            changed = (text, right, left)
        else:
            spots = [found.span() for found in re.finditer(token(old), text)]
            start, end = chance.choice(spots)
            changed = (text[:start] + new + text[end:], left, right)
        return [*steps[:place], changed, *steps[place + 1 :]]
    return None


def token(old: str) -> str:
    begin = r"(?<![\w.<>=!])" if old[0].isalnum() else r"(?<![<>=!])"
    end = r"(?![\w.<>=])" if old[-1].isalnum() else r"(?![<>=])"
    return begin + re.escape(old) + end


def mentions(text: str, old: str) -> bool:
    return re.search(token(old), text) is not None


def pairs(seed: int, kinds: Sequence[str]) -> Iterator[tuple[int, str, str, Program, Program, str, dict[int, Any]]]:
    """Endless pairs: number, kind, name, both programs, element type, domain."""
    forms, integers = read(FORMS), read(INTEGER_FORMS)
    every = sorted({kind for kind, *_ in (*forms, *integers)} | {"slip", "integer slip"})
    chosen = [each for each in every if each in kinds] if kinds else every
    number = seed
    while True:
        chance = random.Random(number)
        kind = chance.choice(chosen)
        whole = kind.startswith("integer")
        own = chance.choice(INTEGERS) if whole else chance.choices(FLOATS, (12, 3, 2, 2))[0]
        if kind in ("complex", "structure") and own not in ("f32", "f64"):
            own = "f32"
        neutral = INTEGER_NEUTRAL if whole else NEUTRAL
        parameters = chance.choice((1, 2, 2, 3))
        shape = {"matrix": (3, 3), "structure": (4,)}.get(kind) or chance.choice(SHAPES)
        steps: list[Step] = []

        def add(text: str, chance: random.Random = chance, steps: list[Step] = steps, first: int = parameters) -> None:
            known = first + len(steps)
            left = known - 1 if chance.random() < 0.7 else chance.randrange(known)
            steps.append((text, left, chance.randrange(known)))

        before = chance.choice((0, 0, 0, 1, 2)) if not kind.endswith("slip") else chance.randint(2, 6)
        for _ in range(before):
            add(chance.choice(neutral))
        if kind.endswith("slip"):
            name, other = kind, slipped(steps, chance)
        else:
            _, left, right = chance.choice([row for row in (integers if whole else forms) if row[0] == kind])
            tiny = chance.choice(("1e-9", "1e-8", "5e-8", "1e-7", "1e-6", "1e-5", "1e-3"))
            left, right = (each.replace("TINY", tiny) for each in (left, right))
            name = f"{left} | {right}"
            add(left)
            other = [*steps[:-1], (right, *steps[-1][1:])]
            for _ in range(chance.choice((0, 0, 1, 2))):
                add(chance.choice(neutral))
                other.append(steps[-1])
        domain: dict[int, Any] = {}
        if not whole and chance.random() < 0.2:
            domain = {each: chance.choice(DOMAINS) for each in range(parameters)}
        outputs = 2 if len(steps) > 1 and chance.random() < 0.2 else 1
        if other is not None and other != steps:
            both = (Program(each, parameters, shape, outputs) for each in (steps, other))
            yield number, kind, name, *both, own, domain
        number += 1


def examine(
    number: int,
    kind: str,
    name: str,
    one: Program,
    other: Program,
    own: str,
    domain: dict[int, Any],
    counts: Counter[Any],
) -> None:
    """Ask for the verdict on one pair, and print what contradicts it."""

    def find(what: str, *lines: Any) -> None:
        counts[kind, what] += 1
        print(f"FIND {what} seed={number} {kind} {own}{list(one.shape)} domain={domain} {name}")
        print(f"   a: {one.text()}\n   b: {other.text()}", *(f"\n   {line}" for line in lines), flush=True)

    try:
        left, right = one.trace(own, own), other.trace(own, own)
        judge, run = (
            integer_runs(one, other, own, number)
            if kind.startswith("integer")
            else float_runs(one, other, own, domain, number)
        )
    except (xb.XbuildError, ArithmeticError, AttributeError, TypeError, NameError, ValueError, SyntaxError) as error:
        counts[kind, "cannot be built"] += 1
        if os.environ.get("BLIND_SHOW") and counts["shown"] < 60:
            counts["shown"] += 1
            print(
                f"not built seed={number} {kind} {own} {name}: {type(error).__name__}: {str(error)[:200]}", flush=True
            )
        return
    if str(left) == str(right):  # as 2.0 and 2.0 + 1e-8 in f32
        judge.weak.clear()
    begin = time.process_time()
    try:
        verdict = xb.equivalent(left, right, domain=domain or None)
        swapped = xb.equivalent(right, left, domain=domain or None).kind if number % 5 == 0 else None
    except xb.XbuildError as error:
        counts[kind, "refused"] += 1
        find("refusal", f"{type(error).__name__}: {str(error)[:300]}")
        return
    except Exception as error:
        find("exception", f"{type(error).__name__}: {str(error)[:300]}")
        return
    spent = time.process_time() - begin
    counts[kind, verdict.kind] += 1
    counts["assumed", *sorted(each for each, _ in verdict.assumed)] += verdict.kind == "equal"
    if spent > ENOUGH:
        find("slow", f"{spent:.1f} s")
    if swapped is not None and {swapped, verdict.kind} == {"equal", "different"}:
        find("orders disagree", f"{verdict.kind}, and {swapped} the other way")
    if verdict.kind == "equal" and judge.against:
        find("equal, but apart", f"assumed {verdict.assumed}", judge.against[0][:600], f"{len(judge.against)} runs")
    elif verdict.kind == "equal" and judge.weak and kind.startswith("integer"):
        counts[kind, "equal, apart on large integers, as assumed"] += 1
    elif verdict.kind == "equal" and judge.weak:
        find("equal, weakly apart", f"assumed {verdict.assumed}", judge.weak[0][:600], f"{len(judge.weak)} runs")
    elif verdict.kind == "different" and not judge.apart:
        if verdict.example is not None:
            run("example", True, [np.asarray(each) for each in verdict.example.arguments[0]], 0)
            if judge.apart:
                counts["different, shown by its example alone"] += 1
                return
        find("different, but the same", verdict.reason, str(verdict)[:900])
    if verdict.kind == "undecided":
        counts[
            "undecided",
            "apart" if judge.against else "the same" if not judge.apart else "near",
            name if name != kind else "",
        ] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--kind", action="append", default=[])
    options = parser.parse_args()
    counts: Counter[Any] = Counter()
    begin, done = time.monotonic(), 0
    for done, pair in enumerate(pairs(options.seed, options.kind), 1):
        examine(*pair, counts)
        if done >= options.pairs or time.monotonic() - begin > options.seconds:
            break
    print(f"{done} pairs, seeds {options.seed} to {pair[0]}, {time.process_time():.0f} s of processor time")
    for key, count in sorted((+counts).items(), key=str):
        print(f"  {count:5} {' | '.join(map(str, key)) if isinstance(key, tuple) else key}")


if __name__ == "__main__":
    main()
