# %% [markdown]
# # 15. CollectivePermute: who sends to whom
#
# `collective_permute` takes (source, target) pairs, and each target receives the value of its source. Rings, shifts and
# halo exchanges are built from this op.

# %%
import xbuild as xb
from xbuild.learning import ask, show


def permuted(pairs, count):
    program = xb.computation(xb.s32[()])(lambda x: xb.collective_permute(x, pairs))
    return xb.Module("permuted", program, num_replicas=count)


ask(
    "Two replicas hold 5 and 6; the only pair is (0, 1). What do they hold afterwards?",
    ...,
    permuted([(0, 1)], 2),
    5,
    6,
)

# %% [markdown] rule
# The replicas hold 0 and 5. Replica 1 receives the 5. Replica 0 does *not* keep its 5: no replica sends to it, so it
# gets zeros.

# %%
ring = permuted([(0, 1), (1, 2), (2, 3), (3, 0)], 4)
ask("Four replicas hold 10, 11, 12, 13; the pairs (0,1), (1,2), (2,3), (3,0) form a ring. What do they hold "
    "afterwards?",
    ..., ring, 10, 11, 12, 13)  # fmt: skip
show(xb.trace(ring, [[10], [11], [12], [13]], origins=True))

# %% [markdown] rule
# The replicas hold 13, 10, 11, 12: each replica has the value of its predecessor.
#
# ## Which pairs are allowed?

# %%
TEXT = """HloModule permuted, replica_count=3
ENTRY main { x = f32[] parameter(0)
  ROOT y = f32[] collective-permute(x), source_target_pairs={PAIRS} }"""
ask("In the pairs (0,2) and (1,2), two replicas send to replica 2. Is the program accepted?",
    ..., TEXT.replace("PAIRS", "{0,2},{1,2}"), choices=["accepted", "refused"])  # fmt: skip
ask("In the pairs (0,1) and (0,2), replica 0 sends to two replicas. Is the program accepted?",
    ..., TEXT.replace("PAIRS", "{0,1},{0,2}"), choices=["accepted", "refused"])  # fmt: skip
ask("In the only pair, (1,1), replica 1 sends to itself. Is the program accepted?", ..., TEXT.replace("PAIRS", "{1,1}"),
    choices=["accepted", "refused"])  # fmt: skip

# %% [markdown] rule
# The first two programs are refused and the third is accepted. A replica can be the source of at most one pair and the
# target of at most one pair. A replica may be both, even in the same pair.
#
# ## A sum over a ring


# %%
def ring_sum(x):
    total, passed = x, x
    for _ in range(3):
        passed = xb.collective_permute(passed, [(0, 1), (1, 2), (2, 3), (3, 0)])
        total = total + passed
    return total


rounds = xb.Module("ring_sum", xb.computation(xb.s32[()])(ring_sum), num_replicas=4)
ask("Four replicas pass 1, 2, 3, 4 around the ring three times and add what they receive. What do they hold at the "
    "end?",
    ..., rounds, 1, 2, 3, 4, )  # fmt: skip

# %% [markdown] rule
# Each replica holds 10: after three steps, every number has reached every replica.
#
# **Rule.** A target receives the value of its source, and all other replicas get zeros. A replica occurs at most once
# as a source and at most once as a target.
#
# Now solve `xbuild puzzle 13`, `xbuild puzzle 15` and `xbuild puzzle 16`.
