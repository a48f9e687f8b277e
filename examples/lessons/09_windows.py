# %% [markdown]
# # 9. Windows: reduce_window, convolution, select_and_scatter
#
# Three ops slide a window over an operand. `reduce_window` combines the elements of each window with a function, a
# convolution multiplies each window by a kernel and adds the products, and `select_and_scatter` is the backward pass of
# pooling.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import ask, show


@xb.computation(xb.f32[6])
def sums(x):
    return xb.reduce_window(x, 0.0, xb.add, [3], window_strides=[2])


ask("Windows of size 3 move by 2 over [0, 1, 2, 3, 4, 5] and are summed. What is the result?", ..., sums, np.arange(6))

# %% [markdown] rule
# The result is 3, 9: the windows give 0 + 1 + 2 = 3 and 2 + 3 + 4 = 9. A third window would start at 4 and extend past
# the end, so it does not exist.
#
# ## Does a convolution flip its kernel?
#
# In mathematics, a convolution flips its kernel. Here the input is [1, 2, 3, 4, 5] and the kernel is [1, 0, -1]; the
# first window is 1, 2, 3.


# %%
@xb.computation(xb.f32[1, 1, 5], xb.f32[1, 1, 3])
def slid(x, kernel):
    return xb.conv(x, kernel, [1], "VALID")


ask("What does `conv` return for [1, 2, 3, 4, 5] and the kernel [1, 0, -1]?",
    ..., slid, [[[1, 2, 3, 4, 5]]], [[[1, 0, -1]]])  # fmt: skip

# %% [markdown] rule
# The result is -2, -2, -2: the first window gives `1 * 1 + 2 * 0 + 3 * (-1) = -2`. With a flipped kernel, the result
# would be 2, 2, 2. XLA and deep learning use the word convolution for a correlation; `window_reversal` flips the
# kernel.
#
# ## The gradient of a maximum
#
# Max pooling keeps the largest element of each window. In the backward pass, the gradient of each window goes to the
# element that the window kept. If two windows kept the same element, their gradients are added.


# %%
@xb.computation(xb.f32[5], xb.f32[2])
def back(x, gradient):
    return xb.select_and_scatter(x, xb.ge, [3], [2], "VALID", gradient, 0.0, xb.add)


ask(
    "Windows of size 3 move by 2 over x = [1, 9, 2, 4, 3]; the gradients of the two maxima are 10 and 1. "
    "Which gradient does each element get?",
    ..., back, [1, 9, 2, 4, 3], [10, 1],
)  # fmt: skip
ask("Which gradient does each element get if x = [1, 2, 9, 4, 3]?", ..., back, [1, 2, 9, 4, 3], [10, 1])
show(back)

# %% [markdown] rule
# The first result is 0, 10, 0, 1, 0: the windows are 1, 9, 2 and 2, 4, 3. The second result is 0, 0, 11, 0, 0: the 9 is
# the maximum of both windows and receives both gradients.
#
# **Rule.** A window that does not fit is dropped, unless padding makes room for it. The kernel is not flipped. If
# several windows keep the same element, their gradients are added.
#
# Now solve `xbuild puzzle 5`, a running sum, and `xbuild puzzle 8`, a moving sum by convolution.
