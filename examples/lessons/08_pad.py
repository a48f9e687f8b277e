# %% [markdown]
# # 8. Pad can also take away
#
# `pad` is told three numbers for each dimension: `low` at the front, `high` at the end, `interior` between each two
# elements. Low and high may be negative.

# %%
import xbuild as xb
from xbuild.learning import ask, show


def padded(low, high, interior):
    return xb.computation(xb.s32[3])(lambda x: xb.pad(x, 0, [(low, high, interior)]))


ask("[1, 2, 3] is padded with zeros: low 1, high 2, interior 0. What comes out?", ..., padded(1, 2, 0), [1, 2, 3])

# %% [markdown] rule
# 0, 1, 2, 3, 0, 0.

# %%
ask("low 0, high 0, interior 1. What comes out?", ..., padded(0, 0, 1), [1, 2, 3])

# %% [markdown] rule
# 1, 0, 2, 0, 3: one zero between each two elements, none at the ends. Of n elements become n + (n - 1) * interior.

# %%
ask("low -1, high 2, interior 1. What comes out?", ..., padded(-1, 2, 1), [1, 2, 3])

# %% [markdown] rule
# 0, 2, 0, 3, 0, 0. Interior comes first: 1 0 2 0 3. Then low -1 crops the 1, and high 2 adds two zeros. If low came
# first, the 2 would be the first element.

# %%
ask("low -2, high -2, interior 1. What comes out?", ..., padded(-2, -2, 1), [1, 2, 3])
show(padded(-1, 2, 1))

# %% [markdown] rule
# Of 1 0 2 0 3 two are cropped at each end: the 2 is left.
#
# **Rule.** Interior first, then low and high; negative ones crop. Pad is therefore the reverse of a slice with a
# stride, which is why it stands in the gradient of every slice.
#
# Now write one: `xbuild puzzle 10`, two vectors interleaved.
