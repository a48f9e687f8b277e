# %% [markdown]
# # 3. DotGeneral: the order of the dimensions
#
# One op computes every matrix product, batched product and attention score. You name two kinds of dimensions:
# *contracted* dimensions are summed over and disappear; *batch* dimensions of the two operands are paired. All other
# dimensions are free.

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
    "lhs is f32[2,5,3] and rhs is f32[3,5,4]. Dimension 2 of lhs and dimension 0 of rhs (the 3s) are contracted. "
    "Dimension 1 of both (the 5s) is a batch dimension. What are the dimensions of the result, in order?",
    ..., product, lhs, rhs, of=np.shape,
)  # fmt: skip

# %% [markdown] rule
# The result is f32[5,2,4]: the batch dimension (5), then the free dimension of lhs (2), then the free dimension of rhs
# (4). The batch dimension comes first although it was in the middle of both operands.
#
# ## The same product as an einsum

# %%
spelled = ["ebc,cbd->bed", "ebc,cbd->ebd", "ebc,cbd->edb"]


def which():
    result = xb.evaluate(product, lhs, rhs)
    return next(each for each in spelled if np.array_equal(np.einsum(each, lhs, rhs), result))


same = on_xla(product, lhs, rhs)
ask("Which einsum computes this product?", ..., which, choices=spelled, claim=same)

# %% [markdown] rule
# The product is `ebc,cbd->bed`. The letter `b` is in both operands and in the result, so it is a batch dimension. The
# letter `c` is in both operands but not in the result, so it is contracted.
#
# ## A product without contracted or batch dimensions


# %%
@xb.computation(xb.f32[2], xb.f32[3])
def outer(x, y):
    return xb.dot_general(x, y)


ask(
    "The product of x = [1, 2] and y = [10, 20, 30] has no contracted and no batch dimensions. What is the result?",
    ...,
    outer,
    [1, 2],
    [10, 20, 30],
)

# %% [markdown] rule
# All dimensions are free, so the result is f32[2,3]: each element of x times each element of y. Its rows are 10, 20, 30
# and 20, 40, 60.
#
# **Rule.** The result has the batch dimensions first, then the free dimensions of lhs, then the free dimensions of rhs.
# Contracted dimensions disappear.
#
# Now solve `xbuild puzzle 7`: compute attention scores with one op.
