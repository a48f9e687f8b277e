# %% [markdown]
# # 13. AllReduce and its groups
#
# `all_reduce` generalizes the older CrossReplicaSum: you choose the function that combines the values, and the groups
# of replicas that combine them. `replica_groups` is a list of groups, and each replica combines its value only with the
# values of its own group.

# %%
import xbuild as xb
from xbuild.learning import ask, show


def summed(groups, count):
    program = xb.computation(xb.s32[()])(lambda x: xb.all_reduce(x, xb.add, groups))
    return xb.Module("summed", program, num_replicas=count)


parities = summed([(0, 2, 4, 6), (1, 3, 5, 7)], 8)
ask("Replicas 0 to 7 hold 1 to 8; the groups are {0,2,4,6} and {1,3,5,7}. What do the replicas hold afterwards?",
    ..., parities, *range(1, 9))  # fmt: skip

# %% [markdown] rule
# The results are 16, 20, 16, 20, ...: replicas 0, 2, 4 and 6 hold 1 + 3 + 5 + 7 = 16, and the other replicas hold
# 2 + 4 + 6 + 8 = 20. The two groups sum at the same time, and no replica waits for the other group.

# %%
everyone = summed([], 4)
ask("Four replicas hold 1, 2, 3, 4, and replica_groups={} is empty. What do they hold afterwards?",
    ..., everyone, 1, 2, 3, 4)  # fmt: skip

# %% [markdown] rule
# Each replica holds 10: an empty list of groups means one group of all replicas.
#
# ## May a replica be left out?

# %%
LEFT_OUT = """HloModule left_out, replica_count=4
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY main { x = f32[] parameter(0)
  ROOT sum = f32[] all-reduce(x), replica_groups={GROUPS}, to_apply=add }"""
ask("A program for four replicas has replica_groups={{0,1}}. Is it accepted?", ..., LEFT_OUT.replace("GROUPS", "{0,1}"),
    choices=["accepted", "refused"])  # fmt: skip
ask("A program for four replicas has replica_groups={{0,1},{2},{3}}. Is it accepted?",
    ..., LEFT_OUT.replace("GROUPS", "{0,1},{2},{3}"), choices=["accepted", "refused"])  # fmt: skip

# %% [markdown] rule
# The first program is refused and the second is accepted. Every replica runs the instruction, so each replica must
# belong to a group. A replica that is alone in its group gets its own value back.


# %%
def maximum_then_sum(x):
    largest = xb.all_reduce(x, xb.maximum, [(0, 1, 2)])
    return xb.all_reduce(largest, xb.add, [(0, 1, 2)])


twice = xb.Module("twice", xb.computation(xb.s32[()])(maximum_then_sum), num_replicas=3)
ask("Three replicas hold 5, 9, 1. They run an all_reduce with maximum, then one with add. What does each hold now?",
    ..., twice, 5, 9, 1)  # fmt: skip
show(xb.trace(twice, [[5], [9], [1]], origins=True))

# %% [markdown] rule
# Each replica holds 9 after the first all-reduce and 27 after the second. After an all-reduce, all replicas of a group
# hold the same value. Summing this value again multiplies it by the number of replicas in the group; this mistake makes
# a gradient on four replicas four times too large.
#
# **Rule.** Each group sums separately, every replica is in exactly one group, and an empty list means one group of all
# replicas.
#
# Now solve `xbuild puzzle 12`.
