# %% [markdown]
# # 14. AllGather, ReduceScatter, AllToAll: the order in the group counts
#
# In three collectives each replica receives or contributes a *part*. The parts are numbered, and the number of a
# replica is its place in the group: in `{1,0}`, replica 1 is first.

# %%
import xbuild as xb
from xbuild.learning import about_xbuild, ask, show


def on_two(function):
    return xb.Module("program", xb.computation(xb.s32[2])(function), num_replicas=2)


gather, turned = (on_two(lambda x, g=group: xb.all_gather(x, 0, 2, [g])) for group in ((0, 1), (1, 0)))
ask("Replica 0 holds [1, 2], replica 1 holds [3, 4]; all_gather with group {0,1}. What has replica 0?",
    ..., gather, [1, 2], [3, 4], of=lambda out: out[0])  # fmt: skip
ask("The same with group {1,0}. What has replica 0?", ..., turned, [1, 2], [3, 4], of=lambda out: out[0])

# %% [markdown] rule
# 1, 2, 3, 4; then 3, 4, 1, 2, on both replicas. A group is a list, not a set.

# %%
scatter = on_two(lambda x: xb.reduce_scatter(x, xb.add, 0, 2, [(0, 1)]))
ask(
    "reduce_scatter by add, group {0,1}, of [1, 2] and [3, 4]. What have replicas 0 and 1?",
    ...,
    scatter,
    [1, 2],
    [3, 4],
)
back = on_two(lambda x: xb.reduce_scatter(x, xb.add, 0, 2, [(1, 0)]))
ask("The same with group {1,0}?", ..., back, [1, 2], [3, 4])

# %% [markdown] rule
# The sum is [4, 6]. The first of the group keeps the first part: 4 / 6 with {0,1}, and 6 / 4 with {1,0}.

# %%
exchange = on_two(lambda x: xb.all_to_all(x, 0, 0, 2, [(0, 1)]))
ask("all_to_all of [1, 2] and [3, 4]: part i of each goes to member i. What have replicas 0 and 1?",
    ..., exchange, [1, 2], [3, 4])  # fmt: skip

# %% [markdown] rule
# [1, 3] and [2, 4]: written one below the other, rows became columns. All-to-all is a transpose across devices.
#
# ## What they cost
#
# `xb.cost` counts the bytes that the busiest link carries. For n devices and b bytes, a ring all-reduce sends 2 b
# (n-1)/n.

# %%
eight = xb.computation(xb.s32[8])
whole = xb.Module("whole", eight(lambda x: xb.all_reduce(x, xb.add)), num_replicas=4)
halves = xb.Module("halves", eight(lambda x: xb.all_gather(xb.reduce_scatter(x, xb.add, 0, 4), 0, 4)), num_replicas=4)
ask("all_reduce of s32[8] (32 bytes) on 4 replicas. How many bytes?", ..., lambda: xb.cost(whole).link_bytes,
    claim=about_xbuild("Counted for the ring, as docs/cost.md has it"))  # fmt: skip
ask("reduce_scatter of s32[8], then all_gather of the parts. How many bytes in all?", ...,
    lambda: xb.cost(halves).link_bytes, claim=about_xbuild("Counted for the ring, 32 * 3/4 for each"))  # fmt: skip
ask("Replicas hold [1]*8, [2]*8, [3]*8, [4]*8. What does the second program give for the first element?",
    ..., halves, *[[n] * 8 for n in (1, 2, 3, 4)], of=lambda out: out[0][0])  # fmt: skip
show(halves)

# %% [markdown] rule
# 48 and 48 bytes, and the same sum: 10. An all-reduce *is* a reduce-scatter and an all-gather. Whoever needs only a
# part of the sum skips the second half and saves 24 bytes: that is what sharded optimizers do.
#
# **Rule.** Gather joins parts, reduce-scatter sums and keeps one part, all-to-all transposes; parts are numbered by
# their place in the group.
#
# Now write: `xbuild puzzle 14` and `xbuild puzzle 17`.
