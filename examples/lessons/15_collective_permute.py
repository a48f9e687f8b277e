# %% [markdown]
# # 15. CollectivePermute: who receives nothing gets zeros
#
# `collective_permute` takes pairs (source, target). Each target gets the value of its source. Rings, shifts and halo
# exchanges are built from it.

# %%
import xbuild as xb
from xbuild.learning import ask, show


def permuted(pairs, count):
    program = xb.computation(xb.s32[()])(lambda x: xb.collective_permute(x, pairs))
    return xb.Module("permuted", program, num_replicas=count)


ask(
    "Two replicas hold 5 and 6; the only pair is (0, 1). What do they have afterwards?",
    ...,
    permuted([(0, 1)], 2),
    5,
    6,
)

# %% [markdown] rule
# 0 and 5. Replica 1 gets the 5. No replica sends to replica 0, and it does *not* keep its 5: it gets zeros.

# %%
ring = permuted([(0, 1), (1, 2), (2, 3), (3, 0)], 4)
ask("A ring of four, (0,1) (1,2) (2,3) (3,0), of 10, 11, 12, 13. What do they have?", ..., ring, 10, 11, 12, 13)
show(xb.trace(ring, [[10], [11], [12], [13]], origins=True))

# %% [markdown] rule
# 13, 10, 11, 12: each has the value of its predecessor.
#
# ## Which pairs are allowed?

# %%
TEXT = """HloModule permuted, replica_count=3
ENTRY main { x = f32[] parameter(0)
  ROOT y = f32[] collective-permute(x), source_target_pairs={PAIRS} }"""
ask("Pairs (0,2) and (1,2): two send to replica 2. Accepted?", ..., TEXT.replace("PAIRS", "{0,2},{1,2}"),
    choices=["accepted", "refused"])  # fmt: skip
ask("Pairs (0,1) and (0,2): replica 0 sends to two. Accepted?", ..., TEXT.replace("PAIRS", "{0,1},{0,2}"),
    choices=["accepted", "refused"])  # fmt: skip
ask("Pair (1,1) alone: replica 1 sends to itself. Accepted?", ..., TEXT.replace("PAIRS", "{1,1}"),
    choices=["accepted", "refused"])  # fmt: skip

# %% [markdown] rule
# Refused, refused, accepted. Each replica is at most once a source and at most once a target, and may be both, even for
# itself.
#
# ## A sum by a ring


# %%
def ring_sum(x):
    total, passed = x, x
    for _ in range(3):
        passed = xb.collective_permute(passed, [(0, 1), (1, 2), (2, 3), (3, 0)])
        total = total + passed
    return total


rounds = xb.Module("ring_sum", xb.computation(xb.s32[()])(ring_sum), num_replicas=4)
ask(
    "1, 2, 3, 4 are passed around the ring three times, and added each time. What do the four have?",
    ...,
    rounds,
    1,
    2,
    3,
    4,
)

# %% [markdown] rule
# 10 each: after three steps every number has reached every replica.
#
# **Rule.** A target gets its source's value, all others get zeros. Each is at most one source and one target.
#
# Now write: `xbuild puzzle 13`, 15 and 16.
