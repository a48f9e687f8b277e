# %% [markdown]
# # 11. While and conditional are values
#
# A loop in XLA is one instruction with a result, like `add`. It carries a *state* from trip to trip, whose shape never
# changes. A conditional is one instruction as well; its branches have results of the same shape.

# %%
import xbuild as xb
from xbuild.learning import ask, show


@xb.computation(xb.s32[()])
def fibonacci(n):
    init = (n, 0, 1)
    return xb.while_(init, lambda s: s[0] > 0, lambda s: (s[0] - 1, s[2], s[1] + s[2]))[1]


ask(
    "The state is (n, a, b) and starts as (7, 0, 1). While n > 0, a trip makes it (n-1, b, a+b). What is a at the end?",
    ..., fibonacci, 7,
)  # fmt: skip
ask("And with n = 0?", ..., fibonacci, 0)

# %% [markdown] rule
# 13: a goes 0, 1, 1, 2, 3, 5, 8, 13. With n = 0 the body never runs, and the result is the initial state: 0.
#
# ## The state keeps its shape

# %%
GROWING = """HloModule growing
condition { v = f32[2] parameter(0)
  ROOT yes = pred[] constant(false) }
body { x = f32[2] parameter(0)
  ROOT twice = f32[4] concatenate(x, x), dimensions={0} }
ENTRY main { p = f32[2] parameter(0)
  ROOT loop = f32[2] while(p), condition=condition, body=body }"""
ask(
    "The body turns f32[2] into f32[4] by a concatenation. Is the loop accepted?",
    ...,
    GROWING,
    choices=["accepted", "refused"],
)

# %% [markdown] rule
# Refused: memory for the state is allocated once. Use a buffer of the maximum size and a counter instead of a growing
# list.
#
# ## Branches


# %%
@xb.computation(xb.pred[()], xb.s32[()])
def halved_or_not(is_even, x):
    return xb.conditional(is_even, x, lambda v: xb.divide(v, 2), x, lambda v: v * 3 + 1)


ask("If the predicate is true x/2, else 3x+1. x is 7, it is false. What comes out?", ..., halved_or_not, False, 7)


@xb.computation(xb.s32[()], xb.s32[()])
def by_number(index, x):
    return xb.conditional(index, [x, x, x], [lambda v: v, lambda v: v * 10, lambda v: v * 100])


ask("Three branches give x, 10x and 100x. x is 4, the branch index is 7. What comes out?", ..., by_number, 7, 4)
ask("And with the branch index -1?", ..., by_number, -1, 4)
show(halved_or_not)

# %% [markdown] rule
# 22, 400 and 400: an index out of range, even a negative one, selects the last branch.
#
# **Rule.** Both are functions from values to values. Only the state survives a trip, and only one branch runs.
#
# Now write one: `xbuild puzzle 11`, the greatest common divisor.
