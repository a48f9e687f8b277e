# %% [markdown]
# # Deadlocks
#
# A run on 16,000 devices hangs without an error or a message. Why?

# %% [markdown] notes
# 4 min. Describe a hang of your own: how long it took until someone noticed, and until someone knew the cause. A hang
# is not bad luck: devices wait for each other, or for a device that never arrives, and the program shows where.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import ask, chosen, hangs_on_xla, show

KINDS = ["ok", "it hangs"]


def verdict(module, **options):
    return "ok" if xb.check(module, **options).kind == "ok" else "it hangs"


def on_two(function):
    return xb.Module("program", xb.computation(xb.s32[()])(function), num_replicas=2)


def total(x, channel=None):
    return xb.all_reduce(x, xb.add, [(0, 1)], channel_id=channel)


def by_replica(x, first, second):
    is_first = xb.eq(xb.replica_id(x.builder), np.uint32(0))
    return xb.conditional(is_first, x, first, x, second)


# %% [markdown]
# ## A sum that some devices never reach

# %% [markdown] notes
# 9 min. Let two students act the program out: one gets up and waits for the other, who took the other branch and went
# home. Then read the report aloud, from the first line down. The report names where each device waits, which device
# never arrives, which branch decides this, and the fix. On XLA:CPU the same program hangs, then aborts Python without
# naming a replica or an op.

# %%
lonely = on_two(lambda x: by_replica(x, total, lambda v: v))
ask(
    "Only replica 0 reaches the sum. What happens?",
    ...,
    verdict,
    lonely,
    choices=KINDS,
    claim=hangs_on_xla(lonely, 1, 2),
)
show(xb.check(lonely))
moved = on_two(lambda x: total(by_replica(x, lambda v: v, lambda v: v * 0)))
ask("Now the sum follows the conditional, and replica 1 contributes zero. The arguments are 5 and 6. What are the "
    "results?",
    ..., moved, 5, 6)  # fmt: skip

# %% [markdown] rule
# The program hangs. After the fix, both replicas hold 5.
#
# ## Two sums in different orders

# %% [markdown] notes
# 8 min. Draw two lanes, and the four waits as arrows: the cycle is visible at once. The fix is one order for all
# devices. Ask where different orders come from in real code: iteration over sets, threads, two schedules of one
# program.

# %%
crossed = on_two(lambda x: by_replica(x, lambda v: total(total(v, 1), 2), lambda v: total(total(v, 2), 1)))
ask("Replica 0 sums on channel 1, then on channel 2; replica 1 sums in the opposite order. What happens?",
    ..., verdict, crossed, choices=KINDS, claim=hangs_on_xla(crossed, 1, 2))  # fmt: skip
show(xb.check(crossed))

# %% [markdown] rule
# The program hangs.
#
# ## Send and recv

# %% [markdown] notes
# 12 min. Start without the word token: two students call each other at the same time, and both lines are busy. Then
# explain a buffer as an answering machine. Why should a program not need a buffer? It works only until a message is
# larger than the buffer. Finally, split recv into post and wait: post early, wait late.


# %%
def exchange(is_posted_first):
    def program(x):
        both, token = [(0, 1), (1, 0)], xb.after_all(builder=x.builder)
        posted = xb.recv(token, x.shape, channel_id=1, source_target_pairs=both) if is_posted_first else None
        sent = xb.send_done(xb.send(x, token, channel_id=1, source_target_pairs=both), channel_id=1)
        if not is_posted_first:
            posted = xb.recv(sent, x.shape, channel_id=1, source_target_pairs=both)
        return xb.recv_done(posted, channel_id=1)[0]

    return on_two(program)


rude, polite = exchange(False), exchange(True)
WAITS = chosen("that a send waits for its recv, unless send_buffers says otherwise")
ask("Both replicas send, then receive, without a buffer. What happens?", ..., verdict, rude, choices=KINDS, claim=WAITS)
ask("What happens with a buffer for one message?",
    ..., lambda: verdict(rude, send_buffers=1), choices=KINDS, claim=WAITS)  # fmt: skip
ask("Both replicas post the recv, send, and then wait, without a buffer. What happens?",
    ..., verdict, polite, choices=KINDS, claim=WAITS)  # fmt: skip
show(xb.check(rude))

# %% [markdown] rule
# The first program hangs. It runs with a buffer, and the last program runs without one.
#
# ## Exercise

# %% [markdown] notes
# 12 min. The students solve `xbuild puzzle 19` in pairs: they remove one of five edges. Have them read the report
# instead of trying all five. Fast pairs go on with `xbuild puzzle 20`, a textbook pipeline schedule that hangs without
# buffers. Close with the rule: all devices reach the same collectives, the same number of times and in the same order.


# %%
def loop(x):
    """Sum in each of replica_id + 1 trips."""
    trips = xb.convert(xb.replica_id(x.builder), xb.s32) + 1
    return xb.while_((trips, x), lambda s: s[0] > 0, lambda s: (s[0] - 1, total(s[1])))[1]


unequal = on_two(loop)
ask("Replica 0 sums in 1 trip of a loop, and replica 1 in 2 trips. What happens?",
    ..., verdict, unequal, choices=KINDS, claim=hangs_on_xla(unequal, 1, 2))  # fmt: skip

# %% [markdown] rule
# The program hangs: replica 1 waits for a second sum that replica 0 never reaches. `xbuild learn 17` continues from
# here.
