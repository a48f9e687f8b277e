# %% [markdown]
# # 4. Gather, one number at a time
#
# Gather reads *windows* out of an operand. Four attributes say how:
#
# - `slice_sizes`: the size of each window, one number for each dimension of the operand.
# - `start_index_map`: the dimension of the operand that each number of an index vector refers to.
# - `collapsed_slice_dims`: dimensions of the window, of size 1, that are dropped from the result.
# - `offset_dims`: where the other dimensions of the window go in the result.
#
# The operand in this lesson is a table of 3 rows whose element `[i, j]` is `10 i + j`:
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
    """A program that gathers from the table by s32 indices of this shape."""

    @xb.computation(xb.s32[3, 4], xb.s32[indices])
    def program(x, starts):
        return xb.gather(
            x, starts, index_vector_dim=1, offset_dims=offset_dims, collapsed_slice_dims=collapsed,
            start_index_map=index_map, slice_sizes=sizes,
        )  # fmt: skip

    return program


rows = gather([2], offset_dims=[1], collapsed=[0], index_map=[0], sizes=[1, 4])
ask("Windows of size [1, 4] start at rows [2, 0]. What comes out?", ..., rows, table, [2, 0])

# %% [markdown] rule
# Index 2 refers to dimension 0 (`start_index_map=[0]`), so the window is row 2: 20, 21, 22, 23. Then row 0. This is
# NumPy's `take`.


# %%
points = gather([3, 2], offset_dims=[], collapsed=[0, 1], index_map=[0, 1], sizes=[1, 1])
ask(
    "Windows of size [1, 1] start at [0, 0], [1, 1] and [2, 2]. What comes out?",
    ...,
    points,
    table,
    [[0, 0], [1, 1], [2, 2]],
)

# %% [markdown] rule
# Three single elements: the diagonal 0, 11, 22. Both dimensions of the window are collapsed, so the result has rank 1.
#
# With `start_index_map=[1, 0]` the first number of each index vector is the *column*:


# %%
swapped = gather([1, 2], offset_dims=[], collapsed=[0, 1], index_map=[1, 0], sizes=[1, 1])
ask("start_index_map=[1, 0], one window of size [1, 1] at [2, 1]. Which element?", ..., swapped, table, [[2, 1]])

# %% [markdown] rule
# 2 refers to dimension 1, and 1 to dimension 0: row 1, column 2, the element 12.


# %%
windows = gather([2, 2], offset_dims=[1, 2], collapsed=[], index_map=[0, 1], sizes=[2, 2])
ask("Two windows of size [2, 2], none collapsed, offset_dims=[1, 2]. What are the dimensions of the result?",
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
# [2, 2, 2]: dimension 0 numbers the windows, dimensions 1 and 2 are the window's. The second holds 12, 13, 22, 23.
#
# **Rule.** An index vector says where a window begins and `slice_sizes` how large it is; collapsed dimensions
# disappear; offset_dims places the rest.
#
# Now write one: `xbuild puzzle 2`, a transpose using only gather.
