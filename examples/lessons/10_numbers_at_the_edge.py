# %% [markdown]
# # 10. Numbers at the edge
#
# No op can raise an error, so each returns *some* number even where arithmetic defines none. Guess which; neither C nor
# NumPy is a safe guide.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import ask, chosen

LEAST = np.iinfo(np.int32).min


def of_two(op, dtype=xb.s32):
    return xb.computation(dtype[2], dtype[2])(op)


divided = of_two(xb.ops.divide)
ask("s32 division: 7 / 0 and -7 / 2?", ..., divided, [7, -7], [0, 2],
    claim=chosen("-1 for a division by zero", divided, [7, -7], [0, 2]))  # fmt: skip

# %% [markdown] rule
# -1 and -3. Division rounds toward zero (Python's `//` gives -4), and division by zero sets all bits, which is -1.

# %%
remains = of_two(xb.ops.remainder)
ask("The remainders: 7 rem 0 and -7 rem 2?", ..., remains, [7, -7], [0, 2],
    claim=chosen("the dividend for a remainder by zero", remains, [7, -7], [0, 2]))  # fmt: skip

# %% [markdown] rule
# 7 and -1. The remainder has the sign of the dividend; for a divisor of zero it is the dividend.

# %%
ask("The least s32 is -2147483648. Divided by -1, and by 1?", ..., divided, [LEAST, LEAST], [-1, 1],
    claim=chosen("the dividend if the quotient does not fit s32", divided, [LEAST, LEAST], [-1, 1]))  # fmt: skip

# %% [markdown] rule
# -2147483648 both times: 2147483648 does not fit s32.

# %%
ask("Shifts: 1 << 32, and -8 >> 40 (arithmetic)?", ...,
    xb.computation(xb.s32[()], xb.s32[()])(lambda x, y: xb.tuple_([
        xb.shift_left(x, 32), xb.shift_right_arithmetic(y, 40)])), 1, -8)  # fmt: skip

# %% [markdown] rule
# 0 and -1: all bits are shifted out, and zeros or copies of the sign come in. In C this is undefined, and on many
# processors 1 << 32 is 1.

# %%
to_int = xb.computation(xb.f32[3])(lambda x: xb.convert(x, xb.s32))
ask("f32 to s32: 3e9, -2.7 and NaN?", ..., to_int, [3e9, -2.7, np.nan],
    claim=chosen("the nearest s32, and 0 for NaN", to_int, [3e9, -2.7, np.nan]))  # fmt: skip

# %% [markdown] rule
# 2147483647, -2 and 0: clamped to the range, truncated toward zero, and NaN becomes 0.

# %%
ask("maximum(NaN, 1) and maximum(-inf, 1) in f32?", ..., of_two(xb.ops.maximum, xb.f32), [np.nan, -np.inf], [1, 1])
clamp = xb.computation(xb.s32[()])(lambda x: xb.clamp(5, x, 1))
ask("clamp(min=5, x=3, max=1): min is above max. What comes out?", ..., clamp, 3)

# %% [markdown] rule
# NaN and 1: a NaN is never lost. The clamp gives 1: it is minimum(maximum(min, x), max), so max wins.

# %%
ordered = xb.computation(xb.f32[4])(lambda x: xb.sort(x))
ask("Sorted: [2, NaN, -inf, 1]?", ..., ordered, [2, np.nan, -np.inf, 1])

# %% [markdown] rule
# -inf, 1, 2, NaN: without a comparator, NaN is sorted last.
#
# **Rule.** Integers wrap, conversions clamp, NaN spreads, and nothing raises. `xbuild run --strict` reports where such
# numbers first appear.
