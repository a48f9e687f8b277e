# %% [markdown]
# # 1. What a line of a program does
#
# In NumPy, the line `c = a + b` computes numbers. In XLA, the same line only records an instruction; no numbers exist
# yet. The instruction already has a *shape*: an element type and dimensions, such as `f32[2,3]`.
#
# Each lesson asks a question before it shows the answer. Guess first: a wrong guess teaches more than a right one.

# %%
import xbuild as xb
from xbuild.learning import about_xbuild, ask, on_xla, show


@xb.computation(xb.f32[3], xb.f32[3])
def program(a, b):
    return xb.multiply(xb.add(a, b), a)


print(program)

# %% [markdown]
# Each line of this text shows an instruction with its name, shape, op and operands. `ROOT` marks the result.

# %%
ask("How many numbers have been added so far?", ..., lambda: 0, claim=about_xbuild("Building computes nothing"))

# %% [markdown] rule
# No numbers have been added: `xb.add(a, b)` returned a handle to an instruction. The program runs when you pass it to
# `xb.evaluate`.

# %%
ask(
    "The program runs with a = [1, 2, 3] and b = [10, 10, 10]. What is the result?",
    ...,
    program,
    [1, 2, 3],
    [10, 10, 10],
)
show(program)

# %% [markdown] rule
# The elements of the result are `(1 + 10) * 1 = 11`, `(2 + 10) * 2 = 24` and `(3 + 10) * 3 = 39`.
#
# ## Shapes come before values
#
# The shape of a result follows from the shapes of its operands, so xbuild finds shape errors while it builds the
# program.


# %%
@xb.computation(xb.f32[2, 5], xb.f32[5, 7])
def product(a, b):
    return xb.dot(a, b)


ask(
    "What is the shape of the product of f32[2,5] and f32[5,7]? (written as f32[...])",
    ..., lambda: str(product.root.shape),
    claim=on_xla(product, [[1.0] * 5] * 2, [[1.0] * 7] * 5),
)  # fmt: skip

# %% [markdown] rule
# The product has the shape `f32[2,7]`: the two dimensions of extent 5 are contracted. No array was needed to compute
# this shape.


# %%
TEXT = """HloModule wrong
ENTRY main { a = f32[2,5] parameter(0)
  b = f32[4,7] parameter(1)
  ROOT c = f32[2,7] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""


def build_wrong():
    try:
        xb.computation(xb.f32[2, 5], xb.f32[4, 7])(xb.dot)
    except xb.XbuildError as error:
        print(error)
        return "while it is built"
    return "while it runs"


ask(
    "The product of f32[2,5] and f32[4,7] does not exist. When does xbuild find the error?",
    ..., build_wrong, choices=["while it is built", "while it runs"], claim=on_xla(TEXT),
)  # fmt: skip

# %% [markdown] rule
# The message names the operands, the line and the two extents that differ, 5 and 4. Nothing had to run.
#
# **Rule.** Each line of the program adds an instruction whose shape is known immediately. The value of the instruction
# is computed later, when the program runs.
