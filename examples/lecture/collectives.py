# %% [markdown]
# # Collectives
#
# One program, many devices. What do they say to each other, and what does it cost?

# %% [markdown] notes
# 4 min. Ask who has written MPI or used `pmap`. Most people have two wrong pictures in mind: a master that hands out
# work, and devices that stay in step automatically. Write both on the board; cross them out at the end.
#
# Before the lecture: `pip install xbuild-hlo`, and hand out the notebook. Nothing here needs an accelerator.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import about_xbuild, ask, show


def on(count, function, shape=xb.s32[()]):
    return xb.Module("program", xb.computation(shape)(function), num_replicas=count)


# %% [markdown]
# ## One text, four lives

# %% [markdown] notes
# 5 min. Let four students be replicas. Each gets a card with a number. Read the program aloud; each does what it
# says, with their own card. Nobody gives orders. Then ask the question, and run it.

# %%
ask("Every replica runs x * 2, on 1, 2, 3, 4. How many results are there?", ..., lambda: 4,
    claim=about_xbuild("execute gives one result for each device"))  # fmt: skip
who = on(4, lambda x: xb.convert(xb.replica_id(x.builder), xb.s32) * 10 + x)
ask("replica_id * 10 + x, where every x is 5. What do the four have?", ..., who, 5, 5, 5, 5)

# %% [markdown] rule
# Four; 5, 15, 25, 35. Only `replica_id` and the arguments differ.
#
# ## All-reduce

# %% [markdown] notes
# 8 min. The four add their cards: how, without a master? Let them find the ring on their own (each passes to the
# right). Count the steps: after 3, every number has reached everyone. Then the same in the program. Draw the groups as
# two circles.

# %%
summed = on(4, xb.cross_replica_sum)
ask("cross_replica_sum of 1, 2, 3, 4?", ..., summed, 1, 2, 3, 4)
pairs = on(4, lambda x: xb.all_reduce(x, xb.add, [(0, 2), (1, 3)]))
ask("With the groups {0,2} and {1,3}?", ..., pairs, 1, 2, 3, 4)
show(pairs)

# %% [markdown] rule
# 10 each; then 4, 6, 4, 6. A replica waits only for its own group.
#
# ## Parts: all-gather, reduce-scatter, all-to-all

# %% [markdown] notes
# 10 min. Three pictures on the board, with two replicas and [1, 2], [3, 4]. For each, first the question, then the
# answer. Insist on the order within the group: let someone predict {1,0} wrongly.

# %%
two = xb.s32[2]
gather = on(2, lambda x: xb.all_gather(x, 0, 2, [(1, 0)]), two)
ask("all_gather with group {1,0} of [1, 2] and [3, 4]. What has replica 0?", ..., gather, [1, 2], [3, 4],
    of=lambda out: out[0])  # fmt: skip
scatter = on(2, lambda x: xb.reduce_scatter(x, xb.add, 0, 2), two)
ask("reduce_scatter of [1, 2] and [3, 4]. What has each?", ..., scatter, [1, 2], [3, 4])
exchange = on(2, lambda x: xb.all_to_all(x, 0, 0, 2, [(0, 1)]), two)
ask("all_to_all of [1, 2] and [3, 4]. What has each?", ..., exchange, [1, 2], [3, 4])

# %% [markdown] rule
# 3, 4, 1, 2; then 4 and 6; then [1, 3] and [2, 4], a transpose.
#
# ## What it costs

# %% [markdown] notes
# 8 min. Derive 2 b (n-1)/n for the ring on the board: the two halves of the ring are a reduce-scatter and an
# all-gather, of b (n-1)/n each. Then let `xb.cost` count. It is the one formula to take home.

# %%
whole = on(4, lambda x: xb.all_reduce(x, xb.add), xb.s32[8])
parts = on(4, lambda x: xb.all_gather(xb.reduce_scatter(x, xb.add, 0, 4), 0, 4), xb.s32[8])
ask("all_reduce of 32 bytes on 4 replicas: how many bytes over a link?", ..., lambda: xb.cost(whole).link_bytes,
    claim=about_xbuild("Counted for the ring: 2 * 32 * 3/4"))  # fmt: skip
ask("Is reduce_scatter, then all_gather, dearer? How many bytes?", ..., lambda: xb.cost(parts).link_bytes,
    claim=about_xbuild("Counted for the ring: 32 * 3/4, twice"))  # fmt: skip
show(parts)

# %% [markdown] rule
# 48 and 48: an all-reduce is the two combined.
#
# ## Exercise

# %% [markdown] notes
# 10 min. In pairs, `xbuild puzzle 12` (groups) and, for the quick, `xbuild puzzle 13` (an all-gather by permutes). Go
# round. At the end cross out the two wrong pictures from the beginning.

# %%
ring = on(4, lambda x: xb.collective_permute(x, [(0, 1), (1, 2), (2, 3), (3, 0)]))
ask("A first step towards puzzle 13: a ring of four passes on 10, 11, 12, 13. What do they have?", ..., ring,
    *np.int32([10, 11, 12, 13]))  # fmt: skip

# %% [markdown] rule
# 13, 10, 11, 12.
