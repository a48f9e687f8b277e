# %% [markdown]
# # 17. Three deadlocks
#
# A hang is not bad luck: devices wait for each other, or for a device that never arrives. Three patterns cause most
# hangs. `xb.check` finds them before you run the program. On a real machine, a hang prints nothing for minutes, and
# then at best a timeout that does not name the cause.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import ask, hangs_on_xla, on_xla, show

KINDS = ["ok", "it hangs"]


def on_two(function):
    return xb.Module("program", xb.computation(xb.s32[()])(function), num_replicas=2)


def verdict(module):
    return "ok" if xb.check(module).kind == "ok" else "it hangs"


def is_first(x):
    return xb.eq(xb.replica_id(x.builder), np.uint32(0))


def total(x, channel=None):
    return xb.all_reduce(x, xb.add, [(0, 1)], channel_id=channel)


lonely = on_two(lambda x: xb.conditional(is_first(x), x, total, x, lambda v: v))
ask("(a) Replica 0 sums inside conditional(replica_id == 0); replica 1 takes the other branch. What is the verdict?",
    ..., verdict, lonely, choices=KINDS, claim=hangs_on_xla(lonely, 1, 2))  # fmt: skip

# %% [markdown] rule
# The program hangs: the sum needs both replicas, but replica 1 never reaches it. To fix the program, move the sum out
# of the conditional; a replica that has nothing to add contributes zeros.

# %%
show(xb.check(lonely))

# %% [markdown]
# ## Two sums in different orders


# %%
def ordered(first, second):
    def branch(x):
        return total(total(x, first), second)

    return branch


def places(module):
    """The channels at which the replicas wait when the run stops."""
    try:
        xb.execute(module, [[1], [2]], check=False)
    except xb.Stopped as stopped:
        stands = [state.standing.path[-1].instruction for state in stopped.report.devices]
        return "{} at channel 1, {} at channel 2".format(*sorted((0, 1), key=lambda n: stands[n].attributes.channel_id))
    return "nowhere, it ends"


crossed = on_two(lambda x: xb.conditional(is_first(x), x, ordered(1, 2), x, ordered(2, 1)))
ask("(b) Replica 0 sums on channel 1, then on channel 2; replica 1 sums in the opposite order. Where do they stop?",
    ..., places, crossed, claim=hangs_on_xla(crossed, 1, 2),
    choices=["nowhere, it ends", "1 at channel 1, 0 at channel 2", "0 at channel 1, 1 at channel 2"])  # fmt: skip

# %% [markdown] rule
# The program hangs: replica 0 waits at channel 1 and replica 1 at channel 2. All devices must reach their common
# collectives in the same order. A hang is what XLA:CPU does; other machines may do worse. NVIDIA's documentation of
# NCCL lists "hangs, crashes, or data corruption".
#
# ## Loops with different trip counts


# %%
def loop(trips):
    def program(x):
        count = trips(xb.convert(xb.replica_id(x.builder), xb.s32))
        return xb.while_((count, x), lambda s: s[0] > 0, lambda s: (s[0] - 1, total(s[1])))[1]

    return on_two(program)


unequal, equal = loop(lambda me: me + 1), loop(lambda me: me * 0 + 2)
ask("(c) A loop contains a sum, and both replicas make 2 trips. What is the verdict?", ...,
    verdict, equal, choices=KINDS, claim=on_xla(equal, 1, 2))  # fmt: skip
ask("The replicas start with 1 and 2. What do they hold at the end? (one number for each replica)", ..., equal, 1, 2)

# %% [markdown] rule
# The program finishes: a collective in a loop completes if all replicas make the same number of trips. Both replicas
# hold 3 after the first trip and 6 after the second.

# %%
ask("Now replica 0 makes 1 trip and replica 1 makes 2. What is the verdict?", ...,
    verdict, unequal, choices=KINDS, claim=hangs_on_xla(unequal, 1, 2))  # fmt: skip

# %% [markdown] rule
# The program hangs: in its second trip, replica 1 waits for replica 0, which has left the loop. The report calls this
# pattern `trip_count_mismatch`.
#
# **Rule.** All replicas of a group must reach the same collectives, the same number of times and in the same order.
# Look for a branch, an order or a trip count that depends on the replica. `xbuild explain deadlock` explains the terms
# of the report, and `xbuild play` turns deadlocks into a game.
