# %% [markdown]
# # 9. Windows: reduce_window, convolution, select_and_scatter
#
# Three ops slide a window over an operand. The first folds each window by a function; the second multiplies it by a
# kernel and adds; the third is the backward pass of pooling.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import ask, show


@xb.computation(xb.f32[6])
def sums(x):
    return xb.reduce_window(x, 0.0, xb.add, [3], window_strides=[2])


ask("Windows of 3 move by 2 over [0, 1, 2, 3, 4, 5], and are summed. What comes out?", ..., sums, np.arange(6))

# %% [markdown] rule
# 0+1+2 = 3 and 2+3+4 = 9. A third window would begin at 4 and pass the end, so it does not exist.
#
# ## Does a convolution flip its kernel?
#
# In mathematics it does. The input is [1, 2, 3, 4, 5], the kernel [1, 0, -1]; its first window is 1, 2, 3.


# %%
@xb.computation(xb.f32[1, 1, 5], xb.f32[1, 1, 3])
def slid(x, kernel):
    return xb.conv(x, kernel, [1], "VALID")


ask("What comes out of [1, 2, 3, 4, 5] with the kernel [1, 0, -1]?", ..., slid, [[[1, 2, 3, 4, 5]]], [[[1, 0, -1]]])

# %% [markdown] rule
# -2, -2, -2: the first window gives 1*1 + 2*0 + 3*(-1) = -2. No flip; with a flip it would be 2, 2, 2. What XLA and
# deep learning call convolution is a correlation; `window_reversal` flips.
#
# ## The gradient of a maximum
#
# Max pooling keeps the largest element of each window. In the backward pass, the gradient of each window goes to the
# element that it kept; if two windows kept the same element, their gradients are added.


# %%
@xb.computation(xb.f32[5], xb.f32[2])
def back(x, gradient):
    return xb.select_and_scatter(x, xb.ge, [3], [2], "VALID", gradient, 0.0, xb.add)


ask(
    "x = [1, 9, 2, 4, 3], windows of 3 move by 2; the gradients of the two maxima are 10 and 1. "
    "Which gradient does each element get?",
    ..., back, [1, 9, 2, 4, 3], [10, 1],
)  # fmt: skip
ask("The same with x = [1, 2, 9, 4, 3].", ..., back, [1, 2, 9, 4, 3], [10, 1])
show(back)

# %% [markdown] rule
# First 0, 10, 0, 1, 0: the windows are 1 9 2 and 2 4 3. Then 0, 0, 11, 0, 0: the 9 is the maximum of both windows and
# gets both gradients.
#
# **Rule.** A window that does not fit is dropped, unless padding makes room. The kernel is not flipped. The gradient of
# a maximum adds up where windows overlap.
#
# Now write two: `xbuild puzzle 5`, a running sum, and `xbuild puzzle 8`, a moving sum by convolution.
