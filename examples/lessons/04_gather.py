# %% [markdown]
# # 4. Gather, one number at a time
#
# Gather reads *windows* of an operand. Four attributes describe the windows:
#
# - `slice_sizes` gives the size of each window, one number for each dimension of the operand.
# - `start_index_map` names the dimension of the operand to which each number of an index vector refers.
# - `collapsed_slice_dims` lists the window dimensions of size 1 that are dropped from the result.
# - `offset_dims` lists the dimensions of the result that hold the remaining dimensions of the window.
#
# In this lesson, the operand is a table of three rows, and its element `[i, j]` is `10 * i + j`.
#
#      0  1  2  3
#     10 11 12 13
#     20 21 22 23

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import ask, show

table = [[10 * i + j for j in range(4)] for i in range(3)]


def gather(indices, offset_dims, collapsed, index_map, sizes):
    """A program that gathers from the table at s32 indices of this shape."""

    @xb.computation(xb.s32[3, 4], xb.s32[indices])
    def program(x, starts):
        return xb.gather(
            x, starts, index_vector_dim=1, offset_dims=offset_dims, collapsed_slice_dims=collapsed,
            start_index_map=index_map, slice_sizes=sizes,
        )  # fmt: skip

    return program


rows = gather([2], offset_dims=[1], collapsed=[0], index_map=[0], sizes=[1, 4])
ask("Windows of size [1, 4] start at rows [2, 0]. What is the result?", ..., rows, table, [2, 0])

# %% [markdown] rule
# The index 2 refers to dimension 0 (`start_index_map=[0]`), so the first window is row 2: 20, 21, 22, 23. The second
# window is row 0. NumPy's `take` does the same.


# %%
points = gather([3, 2], offset_dims=[], collapsed=[0, 1], index_map=[0, 1], sizes=[1, 1])
ask(
    "Windows of size [1, 1] start at [0, 0], [1, 1] and [2, 2]. What is the result?",
    ...,
    points,
    table,
    [[0, 0], [1, 1], [2, 2]],
)

# %% [markdown] rule
# The result has three elements, the diagonal 0, 11, 22. Both dimensions of the window are collapsed, so the result has
# rank 1.
#
# With `start_index_map=[1, 0]`, the first number of each index vector is the *column*.


# %%
swapped = gather([1, 2], offset_dims=[], collapsed=[0, 1], index_map=[1, 0], sizes=[1, 1])
ask("With start_index_map=[1, 0], one window of size [1, 1] starts at [2, 1]. Which element does it hold?",
    ..., swapped, table, [[2, 1]])  # fmt: skip

# %% [markdown] rule
# The index 2 refers to dimension 1 and the index 1 to dimension 0, so the window is row 1, column 2: the element 12.


# %%
windows = gather([2, 2], offset_dims=[1, 2], collapsed=[], index_map=[0, 1], sizes=[2, 2])
ask("Two windows of size [2, 2] have no collapsed dimensions, and offset_dims=[1, 2]. What are the dimensions of the "
    "result?",
    ..., windows, table, [[0, 0], [1, 2]], of=np.shape)  # fmt: skip
ask(
    "The second window starts at [1, 2]. Which four numbers does it hold?",
    ...,
    windows,
    table,
    [[0, 0], [1, 2]],
    of=lambda out: out[1],
)
show(windows)

# %% [markdown] rule
# The result has the dimensions [2, 2, 2]. Dimension 0 numbers the windows, and dimensions 1 and 2 are the dimensions of
# a window. The second window holds 12, 13, 22, 23.
#
# **Rule.** An index vector says where a window begins, and `slice_sizes` says how large it is. Collapsed dimensions
# disappear, and `offset_dims` places the remaining ones.
#
# Now solve `xbuild puzzle 2`, a transpose that uses only gather.
