# %% [markdown]
# # Deadlocks
#
# A run on 16,000 devices hangs. No error, no message. Why?

# %% [markdown] notes
# 4 min. Tell of a hang that you had yourself: how long until someone noticed, how long until the cause was known. A
# hang is not bad luck: it is a set of devices that wait for each other, and the program shows it.

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
# 9 min. Two students act it out: one stands up and waits for the other, who took the other branch and went home. Then
# read the report aloud, from the first line down. It names who waits where, who never arrives, what decided it, and
# the repair. On XLA:CPU the same program hangs, then kills Python without naming anything.

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
ask("The sum is moved out; replica 1 contributes zero. The arguments are 5 and 6. The results?", ..., moved, 5, 6)

# %% [markdown] rule
# It hangs; fixed, both have 5.
#
# ## Two sums in two orders

# %% [markdown] notes
# 8 min. Draw two lanes and the four waits as arrows; the cycle is visible at once. The fix is one order for all. Ask
# where different orders come from in real code: iteration over sets and dicts, threads, two schedules of one program.

# %%
crossed = on_two(lambda x: by_replica(x, lambda v: total(total(v, 1), 2), lambda v: total(total(v, 2), 1)))
ask("Replica 0: channel 1, then 2. Replica 1: channel 2, then 1. What happens?", ..., verdict, crossed, choices=KINDS,
    claim=hangs_on_xla(crossed, 1, 2))  # fmt: skip
show(xb.check(crossed))

# %% [markdown] rule
# It hangs.
#
# ## Send and recv

# %% [markdown] notes
# 12 min. First without the word token: both call each other at the same time, and both lines are busy. Then buffers:
# an answering machine. Why is a program that needs a buffer a bad program? It runs until a message is larger than the
# buffer. Then split recv into post and wait: post early, wait late.


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
ask("Both send, then receive; no buffer. What happens?", ..., verdict, rude, choices=KINDS, claim=WAITS)
ask("With a buffer for one message?", ..., lambda: verdict(rude, send_buffers=1), choices=KINDS, claim=WAITS)
ask("Both post the recv, send, and then wait; no buffer?", ..., verdict, polite, choices=KINDS, claim=WAITS)
show(xb.check(rude))

# %% [markdown] rule
# It hangs; ok; ok.
#
# ## Exercise

# %% [markdown] notes
# 12 min. In pairs, `xbuild puzzle 19`: five edges, one to remove. Have them read the report instead of trying all
# five. For the quick: `xbuild puzzle 20`, a textbook pipeline schedule that hangs without buffers. Close with the rule:
# the same collectives, equally often, in the same order.


# %%
def loop(x):
    """A sum in each trip, and replica_id + 1 trips."""
    trips = xb.convert(xb.replica_id(x.builder), xb.s32) + 1
    return xb.while_((trips, x), lambda s: s[0] > 0, lambda s: (s[0] - 1, total(s[1])))[1]


unequal = on_two(loop)
ask("One more pattern: replica 0 sums in 1 trip of a loop, replica 1 in 2 trips. What happens?", ..., verdict, unequal,
    choices=KINDS, claim=hangs_on_xla(unequal, 1, 2))  # fmt: skip

# %% [markdown] rule
# It hangs: replica 1 waits for a second sum that replica 0 never reaches. `xbuild learn 17` continues from here.
