# %% [markdown]
# # 7. Reduce: its initial value and its order
#
# `reduce` folds a dimension away by a function of two scalars, starting from an *init*. Two common beliefs are wrong:
# that init is only used if there is nothing else, and that elements are taken from left to right.

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
# 16, here: init takes part once. It is meant to be the neutral number: 0 for add, 1 for multiply, -inf for maximum.
#
# (A compiler may split the fold into pieces and start each with init. That would count 10 twice; with 0 it makes no
# difference.)


# %%
@xb.computation(xb.f32[2, 0])
def nothing(x):
    return xb.reduce(x, -np.inf, xb.maximum, [1])


ask("f32[2,0] has two rows of no elements. Its rows are reduced by maximum, with init -inf. What comes out?",
    ..., nothing, np.zeros((2, 0), np.float32))  # fmt: skip

# %% [markdown] rule
# -inf, -inf: without elements, only init is left.
#
# ## The order
#
# bf16 has 8 significant bits: 256 + 1 is 257, which is not a bf16 and rounds to 256. So a running sum of ones stops at
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
# The loop gives 256, `reduce` gives 512. The specification leaves the order and the inner precision to the
# implementation, so neither number is guaranteed; XLA:CPU gives 512 as well.
#
# **Rule.** Use a neutral number as init. Use functions that may be applied in any order, and expect the last digits of
# a sum of floats to differ between machines.
