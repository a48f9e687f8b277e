# %% [markdown]
# # 12. Replicas: one program on many devices
#
# A program with `num_replicas=4` runs on four devices. All devices run the same program, but each has its own arguments
# and results. No device controls the others. A replica sends data to other replicas only if an instruction says so.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import about_xbuild, ask, show


def on_replicas(function, count=4):
    return xb.Module("program", xb.computation(xb.s32[()])(function), num_replicas=count)


doubled = on_replicas(lambda x: x * 2)
ask(
    "Four replicas get 1, 2, 3, 4, and the program is x * 2. What are the four results? (one number for each replica)",
    ...,
    doubled,
    1,
    2,
    3,
    4,
)

# %% [markdown] rule
# The results are 2, 4, 6, 8: each of the four replicas returns one result.

# %%
who = on_replicas(lambda x: xb.convert(xb.replica_id(x.builder), xb.s32) * 10 + x)
ask("The program is replica_id * 10 + x, and every x is 5. What are the results? (one number for each replica)",
    ..., who, 5, 5, 5, 5)  # fmt: skip

# %% [markdown] rule
# The results are 5, 15, 25, 35, because `replica_id` returns a different number on each replica: 0, 1, 2, 3. If a
# program does not communicate, does not read an infeed and does not draw random numbers, replicas differ only through
# `replica_id` and their arguments.


# %%
def chosen_by_replica(x):
    is_first = xb.eq(xb.replica_id(x.builder), np.uint32(0))
    return xb.select(is_first, x + 100, x)


ask(
    "The program is select(replica_id == 0, x + 100, x), and x is 1, 2, 3, 4. What are the results? "
    "(one number for each replica)",
    ..., on_replicas(chosen_by_replica), 1, 2, 3, 4,
)  # fmt: skip

# %% [markdown] rule
# The results are 101, 2, 3, 4. All four replicas *compute* x + 100, but the select discards this sum on three of them.
# Every replica runs the same program.
#
# ## The first collective
#
# All replicas execute `cross_replica_sum` together, and each receives the sum of all their values.

# %%
summed = on_replicas(xb.cross_replica_sum)
ask("What does cross_replica_sum of 1, 2, 3, 4 return? (one number for each replica)",
    ..., summed, 1, 2, 3, 4)  # fmt: skip
run = xb.trace(summed, [[value] for value in np.int32([1, 2, 3, 4])], origins=True)
show(run)
ask("At how many instructions of the recorded run does a replica wait for others?", ..., lambda: 1,
    claim=about_xbuild("The step page shows this instruction as a bar across the four lanes"))  # fmt: skip

# %% [markdown] rule
# Each replica holds 10. The sum is the only instruction at which replicas wait for each other: no replica can have the
# sum before the last one has contributed its value.
#
# **Rule.** Read a replicated program as if you were one replica. At each line, ask which value you hold and which
# replicas you wait for.
