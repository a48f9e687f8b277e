# %% [markdown]
# # 16. Send and recv: tokens define the order
#
# The text of a program does not define an order: of two instructions that do not depend on each other, either may run
# first. If the order matters, a *token* defines it. A token is an empty value that the earlier instruction returns and
# the later instruction takes.
#
# A `send` completes only after the other device has posted its `recv`, unless the machine has a buffer for the message.
# `send_buffers` is the number of buffers for each channel; 0 is the strictest case.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import about_xbuild, ask, chosen, on_stablehlo, show


def device(number, is_recv_first):
    """Send x on channel 1 + number and receive on the other device's channel, one after another."""
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


STRICT = chosen("that a send waits for its recv unless send_buffers says otherwise")
KINDS = ["ok", "deadlock"]
polite = exchange(False, True)
ask("Device 0 sends, then receives. Device 1 receives, then sends. They hold 7 and 8. What does each device receive?",
    ..., polite, 7, 8, claim=on_stablehlo(polite, np.int32(7), np.int32(8)))  # fmt: skip

# %% [markdown] rule
# Device 0 receives 8, and device 1 receives 7.

# %%
rude = exchange(False, False)
ask("Both devices send first, then receive. What is the verdict without a buffer?", ..., lambda: xb.check(rude).kind,
    choices=KINDS, claim=STRICT)  # fmt: skip
ask("Both devices send first, and each channel has a buffer for one message. What is the verdict?", ...,
    lambda: xb.check(rude, send_buffers=1).kind, choices=KINDS,
    claim=chosen("that send_buffers is the number of sends that complete before their recv"))  # fmt: skip
show(xb.check(rude))

# %% [markdown] rule
# Without a buffer, the devices deadlock: each send waits for a recv that comes after the other device's send. With one
# buffer for each channel, the verdict is ok, because both sends return at once.

# %%
shy = exchange(True, True)
ask("Both devices receive first. What is the verdict with send_buffers=1?", ...,
    lambda: xb.check(shy, send_buffers=1).kind, choices=KINDS,
    claim=about_xbuild("This is the verdict of xb.check"))  # fmt: skip

# %% [markdown] rule
# The program deadlocks with any number of buffers, because no device has sent anything.
#
# ## Post the recv early


# %%
def untied(number):
    builder = xb.Builder(f"untied_{number}")
    x = xb.parameter(builder, number=0, shape=xb.s32[()])
    token, mine, other = xb.after_all(builder=builder), 1 + number, 2 - number
    posted = xb.recv(token, xb.s32[()], channel_id=other)
    xb.send_done(xb.send(x, token, channel_id=mine), channel_id=mine)
    return xb.Module(f"untied_{number}", builder.build(xb.recv_done(posted, channel_id=other)[0]))


free = xb.ModuleGroup({0: untied(0), 1: untied(1)})
ask("Both devices post the recv, then send, then wait for the recv. What is the verdict without a buffer?",
    ..., lambda: xb.check(free).kind, choices=KINDS, claim=STRICT)  # fmt: skip

# %% [markdown] rule
# The verdict is ok, because the recv has two parts: `recv` posts and returns at once, and `recv_done` waits. Post
# early, wait late.
#
# **Rule.** If neither an operand nor a token connects two instructions, they have no order. Post the recv before you
# send.
#
# Now solve `xbuild puzzle 18`, `xbuild puzzle 19` and `xbuild puzzle 20`.
