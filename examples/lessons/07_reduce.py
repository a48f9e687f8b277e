# %% [markdown]
# # 7. Reduce: its init value and its order
#
# `reduce` combines all elements along a dimension with a function of two scalars, starting from a value called *init*.
# Two common beliefs are wrong: that init matters only if there are no elements, and that elements are combined from
# left to right.

# %%
import ml_dtypes
import numpy as np

import xbuild as xb
from xbuild.learning import ask, chosen, show


@xb.computation(xb.f32[3])
def from_ten(x):
    return xb.reduce(x, 10.0, xb.add, [0])


ask("`reduce` adds [1, 2, 3] with init 10. What is the result in xbuild?", ..., from_ten, [1, 2, 3],
    claim=chosen("to add init once", from_ten, [1, 2, 3]))  # fmt: skip

# %% [markdown] rule
# The result is 16 here: xbuild adds init once. Init should be the neutral value of the function: 0 for add, 1 for
# multiply, -inf for maximum.
#
# A compiler may split the elements into several parts and start each part with init. Such a compiler would count 10
# several times; an init of 0 would not change the sum.


# %%
@xb.computation(xb.f32[2, 0])
def nothing(x):
    return xb.reduce(x, -np.inf, xb.maximum, [1])


ask("f32[2,0] has two rows without elements. `reduce` takes the maximum of each row, with init -inf. What is the "
    "result?",
    ..., nothing, np.zeros((2, 0), np.float32))  # fmt: skip

# %% [markdown] rule
# Both results are -inf: without elements, only init remains.
#
# ## The order
#
# A bf16 has 8 significant bits. The sum 256 + 1 = 257 is not a bf16 and rounds to 256, so a running sum of ones stops
# at 256.

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


ask("A loop adds 512 ones in bf16, one after another. What is the sum?", ..., one_by_one, ones)
ask("`reduce` adds the same 512 ones in bf16. What is the sum in xbuild?", ..., at_once, ones,
    claim=chosen("a sum in a wider type, rounded once at the end", at_once, ones))  # fmt: skip
show(at_once)

# %% [markdown] rule
# The loop returns 256 and `reduce` returns 512. The specification leaves the order and the intermediate precision to
# the implementation, so neither number is guaranteed. XLA:CPU returns 512 too.
#
# **Rule.** Use a neutral value as init, and a function that may be applied in any order. Expect the last digits of a
# sum of floats to differ between machines.
