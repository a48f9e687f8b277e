# %% [markdown]
# # 5. Indices that are out of bounds
#
# Indices are data, and data cannot raise an error on an accelerator. So each op defines what happens if an index is out
# of bounds. Some ops *move* the window until it fits; others *drop* the update. Negative indices do not count from the
# end.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import ask

ten = np.arange(10, dtype=np.int32)


@xb.computation(xb.s32[10], xb.s32[4])
def read(x, at):
    return xb.gather(
        x, at, offset_dims=[], collapsed_slice_dims=[0], start_index_map=[0], slice_sizes=[1], index_vector_dim=1
    )


ask("Gather reads the numbers 0 to 9 at [0, 9, 12, -3]. What is the result?", ..., read, ten, [0, 9, 12, -3])

# %% [markdown] rule
# The result is 0, 9, 9, 0. Gather moves each index to the nearest index that fits: 12 becomes 9, and -3 becomes 0.


# %%
@xb.computation(xb.s32[10], xb.s32[4])
def added(x, at):
    return xb.scatter(
        x, at, [100, 100, 100, 100], xb.add,
        update_window_dims=[], inserted_window_dims=[0], scatter_dims_to_operand_dims=[0], index_vector_dim=1,
    )  # fmt: skip


ask(
    "Scatter adds 100 to ten zeros at [0, 9, 12, -3]. What are the ten numbers?",
    ..., added, np.zeros(10, np.int32), [0, 9, 12, -3],
)  # fmt: skip

# %% [markdown] rule
# Only elements 0 and 9 change. Scatter *drops* an update whose window does not fit, so index 12 adds nothing to element
# 9.
#
# ## A slice whose start index is data


# %%
@xb.computation(xb.s32[10], xb.s32[()])
def window(x, start):
    return xb.dynamic_slice(x, [start], [4])


ask("A dynamic_slice of size 4 reads the numbers 0 to 9, starting at 8. What is the result?", ..., window, ten, 8)

# %% [markdown] rule
# The result is 6, 7, 8, 9. A window of size 4 can start no later than index 6, so the entire window moves there. The
# first element of the result is *not* element 8.


# %%
@xb.computation(xb.s32[10], xb.s32[()])
def written(x, start):
    return xb.dynamic_update_slice(x, xb.constant(x.builder, np.int32([-1, -1, -1, -1])), [start])


ask("dynamic_update_slice writes -1 four times, starting at 8. At which index is the first -1?",
    ..., written, ten, 8, of=lambda out: int(np.argmax(out == -1)))  # fmt: skip

# %% [markdown] rule
# The first -1 is at index 6: the window moves, just as in dynamic_slice. Elements 6 and 7 are overwritten although the
# start index was 8. A loop that writes blocks past the end of a buffer therefore corrupts the last good block of that
# buffer without an error; `xbuild run --strict` reports such a write.
#
# **Rule.** Gather, dynamic_slice and dynamic_update_slice move the window. Scatter drops the update. No index wraps
# around.
