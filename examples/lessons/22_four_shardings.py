# %% [markdown]
# # 22. The cost of one layer under four shardings
#
# The layer in this lesson computes two products on four devices, for 64 examples of 16 numbers. The weights are 16 by
# 32 and 32 by 16. The sharding changes the result only by rounding, but it determines what the devices send and what
# each device must store.

# %%
import xbuild as xb
from xbuild.learning import about_xbuild, ask

MESH = xb.Mesh(data=2, model=2)
COUNTED = about_xbuild("Counted by xb.cost, for rings")


@xb.computation(xb.f32[64, 16], xb.f32[16, 32], xb.f32[32, 16])
def layer(x, w1, w2):
    return xb.dot(xb.maximum(xb.dot(x, w1), 0.0), w2)


def cost(x=None, w1=None, w2=None, out=None):
    """The cost of the layer for one device, with these shardings of its parameters and result."""
    values = [*layer.parameters, layer.root]
    specs = {value.name: spec for value, spec in zip(values, (x, w1, w2, out), strict=True) if spec is not None}
    module = xb.shard.annotated(xb.Module("layer", layer), {n: xb.shard.by_spec(MESH, s) for n, s in specs.items()})
    return xb.cost(xb.shard.partition(module).module)


whole = xb.P(None, None)
ROWS, EVERY = xb.P("data", None), xb.P(("data", "model"), None)
data = cost(x=EVERY, w1=whole, w2=whole, out=EVERY)
model = cost(x=whole, w1=xb.P(None, ("data", "model")), w2=EVERY, out=whole)
both = cost(x=ROWS, w1=xb.P(None, "model"), w2=xb.P("model", None), out=ROWS)
kept = cost(x=EVERY, w1=EVERY, w2=EVERY, out=EVERY)

# %% [markdown]
# **Sharding 1, data**: the examples are sharded over all four devices, and the weights are replicated.

# %%
ask("The examples are sharded over four devices, and the weights are replicated. How many bytes does a device send?",
    ..., lambda: data.link_bytes, claim=COUNTED)  # fmt: skip
ask("A single device does 131,072 FLOPs for the two products (2 * 64 * 16 * 32 for each). How many does each of the "
    "four do?",
    ..., lambda: sum(row.work.flops for row in data.rows if row.op == "dot"), claim=COUNTED)  # fmt: skip

# %% [markdown] rule
# Each device sends 0 bytes and does 32,768 FLOPs: a quarter of the work, and no communication in the forward pass.
#
# **Sharding 2, model**: the 32 columns of w1 and the 32 rows of w2 are split four ways, and the examples are
# replicated.

# %%
ask("The result f32[64,16] of 4,096 bytes is now a sum over all four devices. On a ring, each device sends a quarter "
    "of it to its neighbour in each of 6 steps: 3 to add the parts, and 3 to pass the sums around. How many bytes does "
    "a device send?",
    ..., lambda: model.link_bytes, claim=COUNTED)  # fmt: skip

# %% [markdown] rule
# Each device sends 6 * 1,024 = 6,144 bytes. It stores only a quarter of the weights, at the price of an all-reduce of
# the activations.
#
# **Sharding 3, both**: the examples are sharded along `data`, and the weights along `model`.

# %%
ask("A device has 32 examples and half of the weights. Two devices sum f32[32,16], which has 2,048 bytes. Each sends "
    "half of it in each of 2 steps: 1 to add the parts, and 1 to pass the sums on. How many bytes does a device send?",
    ..., lambda: both.link_bytes, claim=COUNTED)  # fmt: skip

# %% [markdown] rule
# Each device sends 2 * 1,024 = 2,048 bytes, a third as many as in sharding 2: it has fewer examples, and the ring is
# shorter.
#
# **Sharding 4, stored in shards**: the examples are sharded as in sharding 1. The weights are sharded too, and each
# weight is gathered before its use.

# %%
ask("w1 and w2 have 2,048 bytes each, and a device stores 512 bytes of each. In each of 3 steps, it passes on its own "
    "shard or the shard that arrived last. How many bytes does it send for both weights?",
    ..., lambda: kept.link_bytes, claim=COUNTED)  # fmt: skip

# %% [markdown] rule
# Each device sends 2 * 3 * 512 = 3,072 bytes: more than in sharding 3, and less than in sharding 2. This number does
# not grow with the number of examples, whereas the corresponding numbers for shardings 2 and 3 do: with 128 examples,
# each device sends 4,096 bytes in sharding 3. Between steps, each device stores only a quarter of the weights.
#
# **Rule.** Shard the examples first. Shard the weights when they do not fit on a device: shardings 2 and 3 send
# activations, and sharding 4 sends weights. Compare the bytes that each sharding sends.
