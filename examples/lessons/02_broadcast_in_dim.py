# %% [markdown]
# # 2. BroadcastInDim: where each dimension goes
#
# NumPy aligns shapes from the right and silently repeats the smaller array. XLA never aligns shapes for you.
# `broadcast_in_dim` takes a list that states, for each dimension of the operand, the matching dimension of the result.
# The operand is repeated along all other dimensions of the result.

# %%
import xbuild as xb
from xbuild.learning import ask, on_xla, show


@xb.computation(xb.s32[3])
def as_rows(x):
    return xb.broadcast_in_dim(x, [2, 3], broadcast_dimensions=[1])


ask("x = [1, 2, 3] becomes s32[2,3] with broadcast_dimensions=[1]. What are the 6 numbers?", ..., as_rows, [1, 2, 3])

# %% [markdown] rule
# Dimension 0 of `x` becomes dimension 1 of the result. Element `[i, j]` is `x[j]`, so each row is 1, 2, 3.


# %%
@xb.computation(xb.s32[2])
def as_columns(x):
    return xb.broadcast_in_dim(x, [2, 3], broadcast_dimensions=[0])


ask("x = [1, 2] becomes s32[2,3] with broadcast_dimensions=[0]. What are the 6 numbers?", ..., as_columns, [1, 2])

# %% [markdown] rule
# Element `[i, j]` is `x[i]`, so the first row is 1, 1, 1. NumPy would refuse to broadcast `x` to this shape; `x[:,
# None]` gives the same result.
#
# ## A dimension of size 1


# %%
@xb.computation(xb.s32[1, 3])
def stretched(x):
    return xb.broadcast_in_dim(x, [2, 3], broadcast_dimensions=[0, 1])


ask("x = [[1, 2, 3]] is s32[1,3] and becomes s32[2,3] with broadcast_dimensions=[0, 1]. What is the result?",
    ..., stretched, [[1, 2, 3]])  # fmt: skip

# %% [markdown] rule
# A dimension of extent 1 is also repeated. Any other extent must equal the extent of the matching dimension of the
# result.
#
# ## The operator `+`


# %%
TEXT = """HloModule wrong
ENTRY main { a = f32[2,3] parameter(0)
  b = f32[3] parameter(1)
  ROOT c = f32[2,3] add(a, b) }"""


def plus():
    try:
        xb.computation(xb.f32[2, 3], xb.f32[3])(lambda a, b: a + b)
    except xb.XbuildError as error:
        print(error)
        return "no"
    return "yes"


ask("Does xbuild accept f32[2,3] + f32[3] if you do not say where the dimension of the right operand goes?",
    ..., plus, choices=["yes", "no"], claim=on_xla(TEXT))  # fmt: skip
show(as_rows)

# %% [markdown] rule
# The operator `+` does not align shapes either. The message shows the fix: `broadcast_dimensions=[1]`.
#
# **Rule.** `broadcast_dimensions[d]` is the dimension of the result that matches dimension `d` of the operand. XLA
# never aligns dimensions for you.
#
# Now solve `xbuild puzzle 1`, the outer sum of two vectors.
