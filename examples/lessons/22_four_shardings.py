# %% [markdown]
# # 22. The same layer under four shardings, by cost
#
# A layer of two products, for 64 examples of 16 numbers, with weights of 16 by 32 and 32 by 16, on four devices.
# Its sharding does not change the result. It changes what is sent, and what each device must store.

# %%
import xbuild as xb
from xbuild.learning import about_xbuild, ask

MESH = xb.Mesh(data=2, model=2)
COUNTED = about_xbuild("Counted by xb.cost, for rings")


@xb.computation(xb.f32[64, 16], xb.f32[16, 32], xb.f32[32, 16])
def layer(x, w1, w2):
    return xb.dot(xb.maximum(xb.dot(x, w1), 0.0), w2)


def cost(x=None, w1=None, w2=None, out=None):
    """What the layer costs a device, with these shardings of its parameters and result."""
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
# 1. **data**: the examples are sharded over all four devices, the weights are replicated.

# %%
ask("x is sharded in four, and the weights are replicated. How many bytes does a device send?",
    ..., lambda: data.link_bytes, claim=COUNTED)  # fmt: skip
ask("One device alone does 131,072 FLOPs for the two products (2 * 64 * 16 * 32 twice). How many does each do now?",
    ..., lambda: sum(row.work.flops for row in data.rows if row.op == "dot"), claim=COUNTED)  # fmt: skip

# %% [markdown] rule
# 0 bytes, and 32,768 FLOPs: a quarter of the work, and nothing to send in the forward pass.
#
# 2. **model**: the 32 columns of w1 and the 32 rows of w2 are split four ways; the examples are replicated.

# %%
ask("Now the result f32[64,16], 4,096 bytes, is a sum over all four devices. On a ring each sends a quarter of it to "
    "its neighbor in each step: 3 steps to add, 3 to pass the sums around. How many bytes does a device send?",
    ..., lambda: model.link_bytes, claim=COUNTED)  # fmt: skip

# %% [markdown] rule
# 6 * 1,024 = 6,144. Each device stores a quarter of the weights, at the price of an all-reduce of the activations.
#
# 3. **both**: examples over `data`, weights over `model`.

# %%
ask("A device has 32 examples, and half of the weights. The sum is of f32[32,16], 2,048 bytes, over two devices: a "
    "half in each step, 1 step to add, 1 to pass on. How many bytes does a device send?",
    ..., lambda: both.link_bytes, claim=COUNTED)  # fmt: skip

# %% [markdown] rule
# 2 * 1,024 = 2,048, a third of that. Fewer examples on each device, and shorter rings.
#
# 4. **stored in shards**: examples as in 1, and the weights are sharded as well; each is gathered before use.

# %%
ask("w1 and w2 have 2,048 bytes each. A device has 512 of each, and in 3 steps passes on what it has or got last. "
    "How many bytes does it send for both?", ..., lambda: kept.link_bytes, claim=COUNTED)  # fmt: skip

# %% [markdown] rule
# 2 * 3 * 512 = 3,072: more than 3, less than 2. These bytes do not grow with the number of examples; those of 2 and 3
# do: with 128 examples the sum in 3 sends 4,096. And between steps each device stores a quarter of the weights.
#
# **Rule.** Shard the examples first. Shard the weights when they do not fit: by columns and rows (2, 3) you send
# activations, in shards (4) you send weights. Compare their bytes.
