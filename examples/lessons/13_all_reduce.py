# %% [markdown]
# # 13. AllReduce: everyone in the group gets the sum
#
# `all_reduce` is the old CrossReplicaSum with two more options: which function combines the values, and which replicas
# belong together. `replica_groups` is a list of groups. Each replica combines only with its own group.

# %%
import xbuild as xb
from xbuild.learning import ask, show


def summed(groups, count):
    program = xb.computation(xb.s32[()])(lambda x: xb.all_reduce(x, xb.add, groups))
    return xb.Module("summed", program, num_replicas=count)


parities = summed([(0, 2, 4, 6), (1, 3, 5, 7)], 8)
ask("Replicas 0 to 7 hold 1 to 8; the groups are {0,2,4,6} and {1,3,5,7}. What do the eight have afterwards?",
    ..., parities, *range(1, 9))  # fmt: skip

# %% [markdown] rule
# 16, 20, 16, 20, ...: replicas 0, 2, 4, 6 hold 1+3+5+7 = 16, the others 2+4+6+8 = 20. Two sums at once, and no
# replica waits for the other group.

# %%
everyone = summed([], 4)
ask("Four replicas hold 1, 2, 3, 4, and replica_groups is empty: {}. What do they have?", ..., everyone, 1, 2, 3, 4)

# %% [markdown] rule
# 10 each: no groups means one group of all replicas.
#
# ## May a replica be left out?

# %%
LEFT_OUT = """HloModule left_out, replica_count=4
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY main { x = f32[] parameter(0)
  ROOT sum = f32[] all-reduce(x), replica_groups={GROUPS}, to_apply=add }"""
ask("Four replicas, replica_groups={{0,1}}. Is it accepted?", ..., LEFT_OUT.replace("GROUPS", "{0,1}"),
    choices=["accepted", "refused"])  # fmt: skip
ask("Four replicas, replica_groups={{0,1},{2},{3}}. Is it accepted?", ..., LEFT_OUT.replace("GROUPS", "{0,1},{2},{3}"),
    choices=["accepted", "refused"])  # fmt: skip

# %% [markdown] rule
# Refused, then accepted: every replica runs the instruction, so each must be in a group, if only by itself. A group of
# one gets its own value back.


# %%
def maximum_then_sum(x):
    largest = xb.all_reduce(x, xb.maximum, [(0, 1, 2)])
    return xb.all_reduce(largest, xb.add, [(0, 1, 2)])


twice = xb.Module("twice", xb.computation(xb.s32[()])(maximum_then_sum), num_replicas=3)
ask("Three replicas hold 5, 9, 1: first all_reduce by maximum, then by add. What do they have?", ..., twice, 5, 9, 1)
show(xb.trace(twice, [[5], [9], [1]], origins=True))

# %% [markdown] rule
# 9 each after the first, 27 each after the second. After an all-reduce all members hold the same value; summing it
# again multiplies it by the number of replicas. This is how a gradient ends up four times too large.
#
# **Rule.** Each group sums separately, every replica is in exactly one group, and no groups means all.
#
# Now write one: `xbuild puzzle 12`.
