# %% [markdown]
# # XLA programs from Python
#
# Build a program op by op, see errors where you make them, run it on several devices, draw it, and step through it.

# %%
import numpy as np

import xbuild as xb

# %% [markdown]
# ## Build a program
#
# Each call records an op and computes nothing. The shape of the op is known before any value exists.


# %%
@xb.computation(xb.f32[4], xb.f32[4])
def share(x, w):
    scaled = xb.multiply(x, w)
    total = xb.all_reduce(scaled, xb.add)
    return total / 2.0


module = xb.Module("share", share, num_replicas=2)
print(module)

# %% [markdown]
# ## Errors are raised at the call
#
# The message names both extents that differ, both operands, and your line.

# %%
try:
    xb.computation(xb.f32[2, 3], xb.f32[4, 5])(lambda a, b: xb.dot(a, b))
except xb.XbuildError as error:
    print(error)

# %% [markdown]
# ## Hangs are refused before the run
#
# One branch waits in an all-reduce that the other branch never reaches.


# %%
@xb.computation(xb.f32[4])
def lonely(x):
    first = xb.eq(xb.replica_id(x.builder), np.uint32(0))
    return xb.conditional(first, x, lambda v: xb.all_reduce(v, xb.add), x, lambda v: v * 2.0)


verdict = xb.check(xb.Module("lonely", lonely, num_replicas=2))
print(verdict)

# %% [markdown]
# ## Run the program on two devices

# %%
inputs = [[np.arange(4, dtype=np.float32), np.full(4, 1.0 + device, np.float32)] for device in range(2)]
results = xb.execute(module, inputs)
print(results[0])

# %% [markdown]
# ## Draw the program

# %%
xb.viz(share)

# %% [markdown]
# ## Step through the run
#
# On the page of a run, time goes from left to right, and a bar is a collective. Click an element of the result of
# `all-reduce`: the page highlights all elements from which it was computed, on both devices.

# %%
xb.trace(module, inputs, origins=True)

# %% [markdown]
# The page of a stuck program, here the one that xbuild refused above, shows which device waits for which, and why.

# %%
xb.trace(xb.Module("lonely", lonely, num_replicas=2), [[np.ones(4, np.float32)]] * 2, check=False)
