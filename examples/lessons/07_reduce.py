# %% [markdown]
# # 7. Reduce: what it begins with, and in which order
#
# `reduce` folds a dimension away by a function of two scalars. It is given an *init*. Two beliefs go wrong here: that
# init is only used when there is nothing else, and that elements are taken from left to right.

# %%
import ml_dtypes
import numpy as np

import xbuild as xb
from xbuild.learning import ask, chosen, show


@xb.computation(xb.f32[3])
def from_ten(x):
    return xb.reduce(x, 10.0, xb.add, [0])


ask("[1, 2, 3] is reduced by add, with init 10. What comes out?", ..., from_ten, [1, 2, 3],
    claim=chosen("to let init take part once", from_ten, [1, 2, 3]))  # fmt: skip

# %% [markdown] rule
# 16, here: init takes part once. It is meant to be the number that changes nothing: 0 for add, 1 for multiply, -inf
# for maximum.
#
# (A compiler may cut the fold into pieces and begin each with init. With 10 that would count it twice; with 0 nobody
# can tell.)


# %%
@xb.computation(xb.f32[2, 0])
def nothing(x):
    return xb.reduce(x, -np.inf, xb.maximum, [1])


ask("f32[2,0] has two rows of no elements. Its rows are reduced by maximum, with init -inf. What comes out?",
    ..., nothing, np.zeros((2, 0), np.float32))  # fmt: skip

# %% [markdown] rule
# -inf, -inf: of no elements, what is left is init.
#
# ## The order
#
# bf16 has 8 bits for the digits: 256 + 1 is 257, which is no bf16, and becomes 256. So a running sum of ones stops at
# 256.

# %%
ones = np.ones(512, ml_dtypes.bfloat16)


@xb.computation(xb.bf16[512])
def one_by_one(x):
    def step(state):
        i, total, x = state
        return i + 1, total + xb.reshape(xb.dynamic_slice(x, [i], [1]), []), x

    zero = xb.constant(x.builder, np.zeros((), ml_dtypes.bfloat16))
    return xb.while_((0, zero, x), lambda state: state[0] < 512, step)[1]


@xb.computation(xb.bf16[512])
def at_once(x):
    return xb.reduce(x, 0.0, xb.add, [0])


ask("A loop adds 512 ones in bf16, one after the other. What is the sum?", ..., one_by_one, ones)
ask("`reduce` adds the same 512 ones in bf16. What is the sum, here?", ..., at_once, ones,
    claim=chosen("a sum in wider numbers, rounded once at the end", at_once, ones))  # fmt: skip
show(at_once)

# %% [markdown] rule
# The loop gives 256, `reduce` gives 512. The documents leave the order and the precision inside to the
# implementation, so neither number is promised; XLA:CPU gives 512 as well.
#
# **Rule.** Give init a neutral number. Use functions that may be applied in any order, and expect the last digits of
# a sum of floats to differ from machine to machine.
