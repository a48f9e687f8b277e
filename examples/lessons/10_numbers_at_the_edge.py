# %% [markdown]
# # 10. Numbers at the edge
#
# No op can raise an error, so each op returns *some* number even where arithmetic defines no result. Guess these
# numbers; neither C nor NumPy is a safe guide.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import ask, chosen

LEAST = np.iinfo(np.int32).min


def of_two(op, dtype=xb.s32):
    return xb.computation(dtype[2], dtype[2])(op)


divided = of_two(xb.ops.divide)
ask("What are 7 / 0 and -7 / 2 in s32?", ..., divided, [7, -7], [0, 2],
    claim=chosen("-1 for a division by zero", divided, [7, -7], [0, 2]))  # fmt: skip

# %% [markdown] rule
# The results are -1 and -3. Division rounds toward zero, whereas Python's `//` gives -4. Division by zero returns -1,
# in which all bits are set.

# %%
remains = of_two(xb.ops.remainder)
ask("What are the remainders 7 rem 0 and -7 rem 2?", ..., remains, [7, -7], [0, 2],
    claim=chosen("the dividend for a remainder by zero", remains, [7, -7], [0, 2]))  # fmt: skip

# %% [markdown] rule
# The remainders are 7 and -1. A remainder has the sign of the dividend; if the divisor is zero, the remainder is the
# dividend.

# %%
ask("The smallest s32 is -2147483648. What is it divided by -1, and divided by 1?",
    ..., divided, [LEAST, LEAST], [-1, 1],
    claim=chosen("the dividend if the quotient does not fit in s32", divided, [LEAST, LEAST], [-1, 1]))  # fmt: skip

# %% [markdown] rule
# Both results are -2147483648, because 2147483648 does not fit in s32.

# %%
ask("What are the shifts 1 << 32 and -8 >> 40 (arithmetic) in s32?", ...,
    xb.computation(xb.s32[()], xb.s32[()])(lambda x, y: xb.tuple_([
        xb.shift_left(x, 32), xb.shift_right_arithmetic(y, 40)])), 1, -8)  # fmt: skip

# %% [markdown] rule
# The results are 0 and -1: all bits are shifted out, and zeros or copies of the sign bit replace them. In C these
# shifts are undefined, and on many processors 1 << 32 is 1.

# %%
to_int = xb.computation(xb.f32[3])(lambda x: xb.convert(x, xb.s32))
ask("What do 3e9, -2.7 and NaN in f32 become in s32?", ..., to_int, [3e9, -2.7, np.nan],
    claim=chosen("the nearest s32, and 0 for NaN", to_int, [3e9, -2.7, np.nan]))  # fmt: skip

# %% [markdown] rule
# The results are 2147483647, -2 and 0: a conversion clamps to the range of s32, truncates toward zero, and maps NaN to
# 0.

# %%
ask("What are maximum(NaN, 1) and maximum(-inf, 1) in f32?",
    ..., of_two(xb.ops.maximum, xb.f32), [np.nan, -np.inf], [1, 1])  # fmt: skip
clamp = xb.computation(xb.s32[()])(lambda x: xb.clamp(5, x, 1))
ask("In clamp(min=5, x=3, max=1), min is larger than max. What is the result?", ..., clamp, 3)

# %% [markdown] rule
# The maxima are NaN and 1: `maximum` always passes a NaN on. The clamp returns 1: it computes minimum(maximum(min, x),
# max), so max wins.

# %%
ordered = xb.computation(xb.f32[4])(lambda x: xb.sort(x))
ask("What is [2, NaN, -inf, 1] after sorting?", ..., ordered, [2, np.nan, -np.inf, 1])

# %% [markdown] rule
# The sorted values are -inf, 1, 2, NaN: without a comparator, NaN comes last.
#
# **Rule.** Integers wrap, conversions clamp, NaN spreads, and no op raises an error. `xbuild run --strict` reports
# where such numbers first appear.
