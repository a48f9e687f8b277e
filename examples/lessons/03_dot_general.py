# %% [markdown]
# # 3. DotGeneral: batch first, then what is left of lhs, then of rhs
#
# Every matrix product, batched product and attention score is one op. It has two kinds of named dimensions:
# *contracted* ones are summed over and disappear, *batch* ones are paired up. All others are free.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import ask, on_xla

rng = np.random.default_rng(0)


def whole_numbers(*shape):
    return rng.integers(-3, 4, shape).astype(np.float32)


@xb.computation(xb.f32[2, 5, 3], xb.f32[3, 5, 4])
def product(lhs, rhs):
    return xb.dot_general(lhs, rhs, [2], [0], lhs_batch_dims=[1], rhs_batch_dims=[1])


lhs, rhs = whole_numbers(2, 5, 3), whole_numbers(3, 5, 4)
ask(
    "lhs is f32[2,5,3], rhs is f32[3,5,4]. Dimension 2 of lhs and 0 of rhs are contracted (the 3s), "
    "dimension 1 of both is batch (the 5s). What are the dimensions of the result, in order?",
    ..., product, lhs, rhs, of=np.shape,
)  # fmt: skip

# %% [markdown] rule
# Batch first (5), then the free dimensions of lhs (2), then those of rhs (4). The order in the operands does not
# matter: the 5 was in the middle.
#
# ## The same as einsum

# %%
spelled = ["ebc,cbd->bed", "ebc,cbd->ebd", "ebc,cbd->edb"]


def which():
    result = xb.evaluate(product, lhs, rhs)
    return next(each for each in spelled if np.array_equal(np.einsum(each, lhs, rhs), result))


same = on_xla(product, lhs, rhs)
ask("Which einsum is this product?", ..., which, choices=spelled, claim=same)

# %% [markdown] rule
# `ebc,cbd->bed`: `b` is in both operands and in the result, so it is a batch dimension. `c` is in both but not in the
# result, so it is contracted.
#
# ## No dimension named


# %%
@xb.computation(xb.f32[2], xb.f32[3])
def outer(x, y):
    return xb.dot_general(x, y)


ask(
    "Nothing is contracted and nothing is batch: x = [1, 2], y = [10, 20, 30]. What is the result?",
    ...,
    outer,
    [1, 2],
    [10, 20, 30],
)

# %% [markdown] rule
# All dimensions are free, so the result is f32[2,3], each element of x times each of y: 10, 20, 30, then 20, 40, 60.
#
# **Rule.** Result dimensions: batch, free in lhs, free in rhs. Contracted dimensions are gone.
#
# Now compute attention scores with one op: `xbuild puzzle 7`.
