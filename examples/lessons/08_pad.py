# %% [markdown]
# # 8. Pad: low, high and interior
#
# `pad` takes three numbers for each dimension: `low` for the front, `high` for the end, and `interior` for the gaps
# between neighbouring elements. Low and high may be negative.

# %%
import xbuild as xb
from xbuild.learning import ask, show


def padded(low, high, interior):
    return xb.computation(xb.s32[3])(lambda x: xb.pad(x, 0, [(low, high, interior)]))


ask("[1, 2, 3] is padded with zeros: low 1, high 2, interior 0. What is the result?", ..., padded(1, 2, 0), [1, 2, 3])

# %% [markdown] rule
# The result is 0, 1, 2, 3, 0, 0.

# %%
ask("The padding is low 0, high 0, interior 1. What is the result?", ..., padded(0, 0, 1), [1, 2, 3])

# %% [markdown] rule
# The result is 1, 0, 2, 0, 3: one zero between neighbours, and no zeros at the ends. With this padding, n elements
# become `n + (n - 1) * interior` elements.

# %%
ask("The padding is low -1, high 2, interior 1. What is the result?", ..., padded(-1, 2, 1), [1, 2, 3])

# %% [markdown] rule
# The result is 0, 2, 0, 3, 0, 0. Interior padding is applied first and gives 1, 0, 2, 0, 3. Then low -1 crops the 1,
# and high 2 adds two zeros. If low were applied first, 2 would be the first element.

# %%
ask("The padding is low -2, high -2, interior 1. What is the result?", ..., padded(-2, -2, 1), [1, 2, 3])
show(padded(-1, 2, 1))

# %% [markdown] rule
# Two elements of 1, 0, 2, 0, 3 are cropped at each end, which leaves only the 2.
#
# **Rule.** Interior padding is applied first, then low and high; negative numbers crop. Pad is therefore the
# counterpart of a strided slice, and the gradient of every slice is a pad.
#
# Now solve `xbuild puzzle 10`: interleave two vectors.
