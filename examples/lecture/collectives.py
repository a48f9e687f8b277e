# %% [markdown]
# # Collectives
#
# Many devices run one program. What do they send to each other, and what does the communication cost?

# %% [markdown] notes
# 4 min. Ask who has written MPI or used `pmap`. Most people have two wrong models in mind: a master that hands out
# work, and devices that stay in step automatically. Write both on the board, and cross them out at the end.
#
# Before the lecture, install `xbuild-hlo` with pip, and hand out the notebook. The lecture needs no accelerator.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import about_xbuild, ask, show


def on(count, function, shape=xb.s32[()]):
    return xb.Module("program", xb.computation(shape)(function), num_replicas=count)


# %% [markdown]
# ## One program on four replicas

# %% [markdown] notes
# 5 min. Let four students be replicas, and give each a card with a number. Read the program aloud. Each student
# executes it with their own card, and nobody gives orders. Then ask the question, and run the program.

# %%
ask("Four replicas run x * 2 on 1, 2, 3, 4. How many results does the run return?", ..., lambda: 4,
    claim=about_xbuild("execute returns one result for each device"))  # fmt: skip
who = on(4, lambda x: xb.convert(xb.replica_id(x.builder), xb.s32) * 10 + x)
ask("The program is replica_id * 10 + x, and every x is 5. What are the results?", ..., who, 5, 5, 5, 5)

# %% [markdown] rule
# The run returns four results. They are 5, 15, 25, 35: without communication, an infeed or random numbers, only
# `replica_id` and the arguments make replicas differ.
#
# ## All-reduce

# %% [markdown] notes
# 8 min. Ask the four students to add their cards without a master. Let them discover the ring, in which each passes a
# number to the right. Count the steps: after 3, every number has reached every student. Then show the same in the
# program. Draw the groups as two circles.

# %%
summed = on(4, xb.cross_replica_sum)
ask("What does cross_replica_sum of 1, 2, 3, 4 return on each replica?", ..., summed, 1, 2, 3, 4)
pairs = on(4, lambda x: xb.all_reduce(x, xb.add, [(0, 2), (1, 3)]))
ask("What does all_reduce with the groups {0,2} and {1,3} return?", ..., pairs, 1, 2, 3, 4)
show(pairs)

# %% [markdown] rule
# The sum is 10 on each replica. With two groups, the results are 4, 6, 4, 6. A replica waits only for its own group.
#
# ## Collectives on parts: all-gather, reduce-scatter, all-to-all

# %% [markdown] notes
# 10 min. Draw three pictures on the board, with two replicas that hold [1, 2] and [3, 4]. Ask the question of each
# picture before you show the answer. Insist on the order within the group: let someone predict {1,0} wrongly.

# %%
two = xb.s32[2]
gather = on(2, lambda x: xb.all_gather(x, 0, 2, [(1, 0)]), two)
ask("What does replica 0 hold after an all_gather of [1, 2] and [3, 4] with group {1,0}?", ..., gather, [1, 2], [3, 4],
    of=lambda out: out[0])  # fmt: skip
scatter = on(2, lambda x: xb.reduce_scatter(x, xb.add, 0, 2), two)
ask("What does each replica hold after a reduce_scatter of [1, 2] and [3, 4]?", ..., scatter, [1, 2], [3, 4])
exchange = on(2, lambda x: xb.all_to_all(x, 0, 0, 2, [(0, 1)]), two)
ask("What does each replica hold after an all_to_all of [1, 2] and [3, 4]?", ..., exchange, [1, 2], [3, 4])

# %% [markdown] rule
# After the all_gather, replica 0 holds 3, 4, 1, 2. After the reduce_scatter, the replicas hold 4 and 6. After the
# all_to_all, they hold [1, 3] and [2, 4], a transpose.
#
# ## What the collectives cost

# %% [markdown] notes
# 8 min. Derive 2 b (n-1)/n for the ring on the board: a ring all-reduce is a reduce-scatter followed by an all-gather,
# and each sends b (n-1)/n. Then let `xb.cost` count the bytes. This is the one formula to take home.

# %%
whole = on(4, lambda x: xb.all_reduce(x, xb.add), xb.s32[8])
parts = on(4, lambda x: xb.all_gather(xb.reduce_scatter(x, xb.add, 0, 4), 0, 4), xb.s32[8])
ask("How many bytes does an all_reduce of 32 bytes on 4 replicas send over a link?", ...,
    lambda: xb.cost(whole).link_bytes,
    claim=about_xbuild("Counted for a ring: 2 * 32 * 3/4"))  # fmt: skip
ask("How many bytes do a reduce_scatter and an all_gather send together?", ..., lambda: xb.cost(parts).link_bytes,
    claim=about_xbuild("Counted for a ring: 32 * 3/4 for each"))  # fmt: skip
show(parts)

# %% [markdown] rule
# Both send 48 bytes: an all-reduce is a reduce-scatter followed by an all-gather.
#
# ## Exercise

# %% [markdown] notes
# 10 min. The students solve `xbuild puzzle 12` (groups) in pairs; fast pairs go on with `xbuild puzzle 13` (an
# all-gather by permutes). Walk around and help. At the end, cross out the two wrong models on the board.

# %%
ring = on(4, lambda x: xb.collective_permute(x, [(0, 1), (1, 2), (2, 3), (3, 0)]))
ask("As a first step toward puzzle 13, four replicas pass 10, 11, 12, 13 on in a ring. What do they hold?", ..., ring,
    *np.int32([10, 11, 12, 13]))  # fmt: skip

# %% [markdown] rule
# The replicas hold 13, 10, 11, 12.
