# %% [markdown]
# # 8. Pad can also crop
#
# `pad` takes three numbers for each dimension: `low` at the front, `high` at the end, `interior` between neighboring
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
# 1, 0, 2, 0, 3: one zero between neighbors, none at the ends. n elements become n + (n - 1) * interior.

# %%
ask("low -1, high 2, interior 1. What comes out?", ..., padded(-1, 2, 1), [1, 2, 3])

# %% [markdown] rule
# 0, 2, 0, 3, 0, 0. Interior is applied first: 1 0 2 0 3. Then low -1 crops the 1, and high 2 adds two zeros. If low
# were first, 2 would be the first element.

# %%
ask("low -2, high -2, interior 1. What comes out?", ..., padded(-2, -2, 1), [1, 2, 3])
show(padded(-1, 2, 1))

# %% [markdown] rule
# Two elements of 1 0 2 0 3 are cropped at each end, which leaves the 2.
#
# **Rule.** Interior first, then low and high; negative ones crop. So pad is the inverse of a strided slice, and appears
# in the gradient of every slice.
#
# Now write one: `xbuild puzzle 10`, two vectors interleaved.
