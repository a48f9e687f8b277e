# %% [markdown]
# # 11. While and conditional are values
#
# A loop in XLA is one instruction with a result, like `add`. The loop passes a *state* from trip to trip, and the shape
# of the state never changes. A conditional is one instruction too; all of its branches return the same shape.

# %%
import xbuild as xb
from xbuild.learning import ask, show


@xb.computation(xb.s32[()])
def fibonacci(n):
    init = (n, 0, 1)
    return xb.while_(init, lambda s: s[0] > 0, lambda s: (s[0] - 1, s[2], s[1] + s[2]))[1]


ask(
    "The state (n, a, b) starts as (7, 0, 1). While n > 0, a trip changes it to (n-1, b, a+b). What is a at the end?",
    ..., fibonacci, 7,
)  # fmt: skip
ask("What is a at the end if n = 0?", ..., fibonacci, 0)

# %% [markdown] rule
# The result is 13: a takes the values 0, 1, 1, 2, 3, 5, 8, 13. With n = 0 the body never runs, so the result is the
# initial value of a, 0.
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
    "The body concatenates x with itself, so f32[2] becomes f32[4]. Is the loop accepted?",
    ...,
    GROWING,
    choices=["accepted", "refused"],
)

# %% [markdown] rule
# The loop is refused: XLA allocates the memory for the state only once. Instead of a growing list, use a buffer of the
# maximum size and a counter.
#
# ## Branches


# %%
@xb.computation(xb.pred[()], xb.s32[()])
def halved_or_not(is_even, x):
    return xb.conditional(is_even, x, lambda v: xb.divide(v, 2), x, lambda v: v * 3 + 1)


ask("The branches return x/2 (true) and 3x+1 (false). x is 7 and the predicate is false. What is the result?",
    ..., halved_or_not, False, 7)  # fmt: skip


@xb.computation(xb.s32[()], xb.s32[()])
def by_number(index, x):
    return xb.conditional(index, [x, x, x], [lambda v: v, lambda v: v * 10, lambda v: v * 100])


ask("Three branches return x, 10x and 100x. x is 4 and the branch index is 7. What is the result?",
    ..., by_number, 7, 4)  # fmt: skip
ask("What is the result if the branch index is -1?", ..., by_number, -1, 4)
show(halved_or_not)

# %% [markdown] rule
# The results are 22, 400 and 400: an index out of range, even a negative one, selects the last branch.
#
# **Rule.** Loops and conditionals are functions from values to values. Only the state survives a trip, and only one
# branch runs.
#
# Now solve `xbuild puzzle 11`, the greatest common divisor.
