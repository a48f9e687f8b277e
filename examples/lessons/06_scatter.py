# %% [markdown]
# # 6. Scatter with a repeated index
#
# Scatter combines each update with an element of the operand, using a function of two scalars. Several updates may
# address the same element.

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
ask("Scatter adds the updates 5, 7, 1 to [0, 0, 0] at indices [1, 1, 2]. What is the result?",
    ..., total, zeros, [1, 1, 2])  # fmt: skip

# %% [markdown] rule
# The result is 0, 12, 1. Both updates of element 1 count. Their sum is 12 in either order, so the order does not
# matter.
#
# ## Overwriting
#
# The function may also ignore the old value, as `lambda old, new: new` does.

# %%
last = scatter_by(lambda old, new: new, [5, 7, 1])
once = [0, 1, 2]
ask("The updates overwrite indices [0, 1, 2], each once. What is the result?", ..., last, zeros, once)
ask(
    "The updates overwrite indices [1, 1, 2]. Which number is element 1 in xbuild's result?",
    ..., last, zeros, [1, 1, 2], of=lambda out: out[1],
    claim=chosen("the order of the indices, so the last update stays", last, zeros, [1, 1, 2]),
)  # fmt: skip

# %% [markdown] rule
# Element 1 is 7 here, because xbuild applies the updates in the order of the indices. The specification promises no
# order: on a different machine, or in a different version, the element may be 5. A program whose result depends on this
# order is wrong, whatever it returned when you tried it.

# %%
maximum = scatter_by(xb.maximum, [5, 7, 1])


def same_either_way(program):
    other = scatter_by(xb.maximum, [7, 5, 1])
    return np.array_equal(*(xb.evaluate(each, zeros, [1, 1, 2]) for each in (program, other)))


ask(
    "Scatter combines the updates 5, 7, 1 with zeros at [1, 1, 2], using `maximum`. What is the result?",
    ...,
    maximum,
    zeros,
    [1, 1, 2],
)
ask("Is the result the same if the updates 5 and 7 are swapped? (yes or no)", ..., same_either_way, maximum,
    claim=on_xla(scatter_by(xb.maximum, [7, 5, 1]), zeros, [1, 1, 2]))  # fmt: skip
show(total)

# %% [markdown] rule
# The result is 0, 7, 1, and swapping the updates does not change it: the order does not matter for a maximum.
#
# **Rule.** If an index may repeat, use a function for which the order does not matter: add, multiply, maximum or
# minimum. If each index occurs only once, any function is safe; set `unique_indices=True` to promise the
# compiler that no index repeats.
#
# Now solve `xbuild puzzle 9`, a histogram.
