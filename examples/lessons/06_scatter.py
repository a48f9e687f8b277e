# %% [markdown]
# # 6. Scatter with a repeated index
#
# Scatter writes updates to places of an operand and combines each with the value that is there, by a function of two
# scalars. The same place may occur twice.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import ask, chosen, on_xla, show


def scatter_by(combine, updates):
    @xb.computation(xb.s32[3], xb.s32[len(updates)])
    def program(x, at):
        return xb.scatter(
            x, at, updates, combine,
            update_window_dims=[], inserted_window_dims=[0], scatter_dims_to_operand_dims=[0], index_vector_dim=1,
        )  # fmt: skip

    return program


zeros = np.zeros(3, np.int32)
total = scatter_by(xb.add, [5, 7, 1])
ask("Into [0, 0, 0] the updates 5, 7, 1 are added at places [1, 1, 2]. What comes out?", ..., total, zeros, [1, 1, 2])

# %% [markdown] rule
# 0, 12, 1. Both updates of place 1 count. Addition gives 12 in either order, so the order does not matter.
#
# ## Overwriting
#
# The function may also ignore the old value: `lambda old, new: new`.

# %%
last = scatter_by(lambda old, new: new, [5, 7, 1])
once = [0, 1, 2]
ask("Overwriting at places [0, 1, 2], each once. What comes out?", ..., last, zeros, once)
ask(
    "Overwriting at places [1, 1, 2]. Which number ends up at place 1, here?",
    ..., last, zeros, [1, 1, 2], of=lambda out: out[1],
    claim=chosen("the order of the indices, so that the last update stays", last, zeros, [1, 1, 2]),
)  # fmt: skip

# %% [markdown] rule
# 7 here, since the updates are applied in the order of the indices. The specification promises no order: on a different
# machine, or in a different version, it may be 5. A program whose result depends on this is wrong, whatever it returned
# when you tried it.

# %%
maximum = scatter_by(xb.maximum, [5, 7, 1])


def same_either_way(program):
    other = scatter_by(xb.maximum, [7, 5, 1])
    return np.array_equal(*(xb.evaluate(each, zeros, [1, 1, 2]) for each in (program, other)))


ask(
    "With `maximum` as the function, updates 5, 7, 1 at [1, 1, 2] of zeros: what comes out?",
    ...,
    maximum,
    zeros,
    [1, 1, 2],
)
ask("Is it the same with the updates 7 and 5 swapped? (yes or no)", ..., same_either_way, maximum,
    claim=on_xla(scatter_by(xb.maximum, [7, 5, 1]), zeros, [1, 1, 2]))  # fmt: skip
show(total)

# %% [markdown] rule
# 0, 7, 1, and yes: for a maximum the order does not matter.
#
# **Rule.** If an index may repeat, use a function for which the order does not matter: add, multiply, maximum, minimum.
# If each index occurs once, any function is safe, and `unique_indices=True` tells the compiler so.
#
# Now write one: `xbuild puzzle 9`, a histogram.
