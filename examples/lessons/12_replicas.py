# %% [markdown]
# # 12. Replicas: one program, many lives
#
# A program with `num_replicas=4` runs on four devices. Each has its own arguments and its own results, and runs the
# same text. There is no master, and nothing is sent to other replicas unless an instruction says so.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import about_xbuild, ask, show


def on_replicas(function, count=4):
    return xb.Module("program", xb.computation(xb.s32[()])(function), num_replicas=count)


doubled = on_replicas(lambda x: x * 2)
ask(
    "Four replicas get 1, 2, 3, 4, and the program is x * 2. What are the results? (one number for each of the four)",
    ...,
    doubled,
    1,
    2,
    3,
    4,
)

# %% [markdown] rule
# 2, 4, 6, 8: four results, since one program runs four times.

# %%
who = on_replicas(lambda x: xb.convert(xb.replica_id(x.builder), xb.s32) * 10 + x)
ask("The program is replica_id * 10 + x, and every x is 5. What do the four have? (one number for each of the four)",
    ..., who, 5, 5, 5, 5)  # fmt: skip

# %% [markdown] rule
# 5, 15, 25, 35. `replica_id` is the only op that gives each replica a different number: 0, 1, 2, 3. All differences
# between replicas come from it or from their arguments.


# %%
def chosen_by_replica(x):
    is_first = xb.eq(xb.replica_id(x.builder), np.uint32(0))
    return xb.select(is_first, x + 100, x)


ask(
    "The program is select(replica_id == 0, x + 100, x), and x is 1, 2, 3, 4. What do the four have? "
    "(one number for each of the four)",
    ..., on_replicas(chosen_by_replica), 1, 2, 3, 4,
)  # fmt: skip

# %% [markdown] rule
# 101, 2, 3, 4. All four *compute* x + 100; the select discards it on three. The text is the same for all.
#
# ## The first collective
#
# `cross_replica_sum` is an instruction that all replicas run together: each gets the sum of all their values.

# %%
summed = on_replicas(xb.cross_replica_sum)
ask("cross_replica_sum of 1, 2, 3, 4. What do the four have? (one number for each of the four)",
    ..., summed, 1, 2, 3, 4)  # fmt: skip
run = xb.trace(summed, [[value] for value in np.int32([1, 2, 3, 4])], origins=True)
show(run)
ask("In the recorded run, at how many instructions does a replica wait for others?", ..., lambda: 1,
    claim=about_xbuild("The step page shows it as a bar across the four lanes"))  # fmt: skip

# %% [markdown] rule
# 10 on each of them. It is the only instruction at which they wait for each other: none can have the sum before the
# last one has contributed.
#
# **Rule.** Read a replicated program as one replica and ask at each line: what do I hold, and whom do I wait for?
