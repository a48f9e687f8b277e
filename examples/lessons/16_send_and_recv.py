# %% [markdown]
# # 16. Send and recv: tokens define the order
#
# The text of a program does not define an order. If two instructions do not depend on each other, either may run first.
# If the order matters, a *token* defines it: a value without content that the earlier one returns and the later one
# takes.
#
# A `send` starts when the other side has posted its `recv`, unless the machine has a buffer for it. `send_buffers` is
# their number; 0 is the strict case.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import about_xbuild, ask, chosen, on_stablehlo, show


def device(number, is_recv_first):
    """Send x on channel 1 + number, and receive on the other's channel, one after the other."""
    builder = xb.Builder(f"device_{number}")
    x = xb.parameter(builder, number=0, shape=xb.s32[()])
    token, mine, other = xb.after_all(builder=builder), 1 + number, 2 - number
    if is_recv_first:
        taken, token = xb.recv_done(xb.recv(token, xb.s32[()], channel_id=other), channel_id=other)
        xb.send_done(xb.send(x, token, channel_id=mine), channel_id=mine)
    else:
        token = xb.send_done(xb.send(x, token, channel_id=mine), channel_id=mine)
        taken, token = xb.recv_done(xb.recv(token, xb.s32[()], channel_id=other), channel_id=other)
    return xb.Module(f"device_{number}", builder.build(taken))


def exchange(first, second):
    return xb.ModuleGroup({0: device(0, first), 1: device(1, second)})


STRICT = chosen("that a send waits for its recv, where send_buffers does not say otherwise")
KINDS = ["ok", "deadlock"]
polite = exchange(False, True)
ask("Device 0 sends, then receives. Device 1 receives, then sends. They hold 7 and 8. What does each receive?",
    ..., polite, 7, 8, claim=on_stablehlo(polite, np.int32(7), np.int32(8)))  # fmt: skip

# %% [markdown] rule
# 8 and 7.

# %%
rude = exchange(False, False)
ask("Both send first, then receive. Without a buffer, what is the verdict?", ..., lambda: xb.check(rude).kind,
    choices=KINDS, claim=STRICT)  # fmt: skip
ask("Both send first, and each channel has a buffer for one message. The verdict?", ...,
    lambda: xb.check(rude, send_buffers=1).kind, choices=KINDS,
    claim=chosen("to let send_buffers say how many sends go on by themselves"))  # fmt: skip
show(xb.check(rude))

# %% [markdown] rule
# A deadlock without a buffer: each send waits for a recv that comes after the other's send. With one buffer it is ok:
# the send returns at once.

# %%
shy = exchange(True, True)
ask("Both receive first. Does a buffer for one message help? The verdict with send_buffers=1?", ...,
    lambda: xb.check(shy, send_buffers=1).kind, choices=KINDS,
    claim=about_xbuild("This is the verdict of xb.check"))  # fmt: skip

# %% [markdown] rule
# A deadlock with any number of buffers: no device has sent anything.
#
# ## Without the dependency


# %%
def untied(number):
    builder = xb.Builder(f"untied_{number}")
    x = xb.parameter(builder, number=0, shape=xb.s32[()])
    token, mine, other = xb.after_all(builder=builder), 1 + number, 2 - number
    posted = xb.recv(token, xb.s32[()], channel_id=other)
    xb.send_done(xb.send(x, token, channel_id=mine), channel_id=mine)
    return xb.Module(f"untied_{number}", builder.build(xb.recv_done(posted, channel_id=other)[0]))


free = xb.ModuleGroup({0: untied(0), 1: untied(1)})
ask("Both post the recv, then send, then wait for the recv. No buffer. The verdict?", ..., lambda: xb.check(free).kind,
    choices=KINDS, claim=STRICT)  # fmt: skip

# %% [markdown] rule
# The program is ok: the recv is split in two. `recv` posts and returns, `recv_done` waits. Post early, wait late.
#
# **Rule.** Without an operand or a token in between, instructions have no order. Post the recv before you send.
#
# Now write: `xbuild puzzle 18` to 20.
