# %% [markdown]
# # 14. AllGather, ReduceScatter and AllToAll
#
# In these three collectives, each replica receives or contributes a *part* of an array. The position of a replica in
# its group is the number of its part: in `{1,0}`, replica 1 has part 0.

# %%
import xbuild as xb
from xbuild.learning import about_xbuild, ask, show


def on_two(function):
    return xb.Module("program", xb.computation(xb.s32[2])(function), num_replicas=2)


gather, turned = (on_two(lambda x, g=group: xb.all_gather(x, 0, 2, [g])) for group in ((0, 1), (1, 0)))
ask("Replica 0 holds [1, 2] and replica 1 holds [3, 4]. What does replica 0 hold after an all_gather with group {0,1}?",
    ..., gather, [1, 2], [3, 4], of=lambda out: out[0])  # fmt: skip
ask("What does replica 0 hold if the group is {1,0}?", ..., turned, [1, 2], [3, 4], of=lambda out: out[0])

# %% [markdown] rule
# Both replicas hold 1, 2, 3, 4 with the group {0,1}, and 3, 4, 1, 2 with {1,0}. A group is a list, not a set.

# %%
scatter = on_two(lambda x: xb.reduce_scatter(x, xb.add, 0, 2, [(0, 1)]))
ask(
    "A reduce_scatter with add and the group {0,1} takes [1, 2] and [3, 4]. What do replicas 0 and 1 hold?",
    ...,
    scatter,
    [1, 2],
    [3, 4],
)
back = on_two(lambda x: xb.reduce_scatter(x, xb.add, 0, 2, [(1, 0)]))
ask("What do replicas 0 and 1 hold if the group is {1,0}?", ..., back, [1, 2], [3, 4])

# %% [markdown] rule
# The sum is [4, 6]. The first replica of the group keeps the first part: replicas 0 and 1 hold 4 and 6 with {0,1}, and
# 6 and 4 with {1,0}.

# %%
exchange = on_two(lambda x: xb.all_to_all(x, 0, 0, 2, [(0, 1)]))
ask("An all_to_all sends part i of [1, 2] and of [3, 4] to replica i. What do replicas 0 and 1 hold?",
    ..., exchange, [1, 2], [3, 4])  # fmt: skip

# %% [markdown] rule
# The replicas hold [1, 3] and [2, 4]. Write the two arrays one below the other, before and after: rows become columns,
# so an all-to-all is a transpose across devices.
#
# ## What these collectives cost
#
# `xb.cost` counts the bytes that the busiest link carries. In a ring all-reduce of b bytes over n devices, each
# device sends `2 * b * (n - 1) / n` bytes.

# %%
eight = xb.computation(xb.s32[8])
whole = xb.Module("whole", eight(lambda x: xb.all_reduce(x, xb.add)), num_replicas=4)
halves = xb.Module("halves", eight(lambda x: xb.all_gather(xb.reduce_scatter(x, xb.add, 0, 4), 0, 4)), num_replicas=4)
ask("How many bytes does an all_reduce of s32[8] (32 bytes) on 4 replicas send?",
    ..., lambda: xb.cost(whole).link_bytes,
    claim=about_xbuild("Counted for a ring, as docs/cost.md describes"))  # fmt: skip
ask("How many bytes do a reduce_scatter of s32[8] and an all_gather of the parts send in total?",
    ..., lambda: xb.cost(halves).link_bytes,
    claim=about_xbuild("Counted for a ring, 32 * 3/4 for each collective"))  # fmt: skip
ask("The replicas hold eight 1s, eight 2s, eight 3s and eight 4s. What is the first element of the second program's "
    "result?",
    ..., halves, *[[n] * 8 for n in (1, 2, 3, 4)], of=lambda out: out[0][0])  # fmt: skip
show(halves)

# %% [markdown] rule
# Both programs send 48 bytes and compute the same sum, 10. An all-reduce *is* a reduce-scatter followed by an
# all-gather. A replica that needs only a part of the sum skips the all-gather and saves 24 bytes; sharded optimizers do
# this.
#
# **Rule.** All-gather joins parts, reduce-scatter sums and keeps one part, and all-to-all transposes. The position of a
# replica in its group is the number of its part.
#
# Now solve `xbuild puzzle 14` and `xbuild puzzle 17`.
