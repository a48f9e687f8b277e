# %% [markdown]
# # 21. Annotate, propagate, partition: where the collectives come from
#
# In a large model, you do not write the collectives by hand. You write the program for *one* device and annotate a few
# values with shardings, and a partitioner does the rest. This lesson shows the work of the partitioner in three steps.

# %%
import xbuild as xb
from xbuild.learning import about_xbuild, ask, show

MESH = xb.Mesh(data=2, model=2)
PARTITIONED = about_xbuild(
    "xbuild's partitioner decides this; up to rounding, XLA computes the same result for the partitioned program as on "
    "one device"
)


@xb.computation(xb.f32[4, 3], xb.f32[3, 8], xb.f32[8, 2])
def layer(x, w1, w2):
    return xb.dot(xb.maximum(xb.dot(x, w1), 0.0), w2)


def annotate(**specs):
    """The layer with shardings of some of its parameters over the mesh."""
    names = {name: parameter.name for name, parameter in zip(("x", "w1", "w2"), layer.parameters, strict=True)}
    shardings = {names[name]: xb.shard.by_spec(MESH, spec) for name, spec in specs.items()}
    return xb.shard.annotated(xb.Module("layer", layer), shardings)


by_model = annotate(x=xb.P("data"), w1=xb.P(None, "model"), w2=xb.P("model"))

# %% [markdown]
# The rows of x are sharded along the axis `data`. The columns of w1 and the rows of w2 are sharded along `model`.

# %%
part = xb.shard.partition(by_model)
ask("x is f32[4,3], and its rows are sharded along `data` (2 devices). What is the shape of a device's shard? "
    "(its extents, as [5, 7])",
    ..., lambda: list(part.module.entry.parameters[0].shape.dims), claim=PARTITIONED)  # fmt: skip
ask("x @ w1 is f32[4,8]. Its rows come from x and its columns from w1. What is the shape of a device's shard? "
    "(its extents, as [5, 7])",
    ..., lambda: list(part.module.entry["dot.4"].shape.dims), claim=PARTITIONED)  # fmt: skip

# %% [markdown] rule
# The shards have the shapes [2, 3] and [2, 4]. The product x @ w1 has no annotation, but shardings *propagate*: the
# rows of a product are sharded like the rows of the left operand, and its columns like the columns of the right
# operand.
#
# ## Which collectives the partitioner inserts

# %%
ask("The first product contracts a dimension that is not sharded. The second contracts a dimension that is sharded "
    "along `model` in both operands. How many collectives does each product need? (one number for each product)",
    ..., lambda: [0, len(part.communications)], claim=PARTITIONED)  # fmt: skip
show(part.module)

# %% [markdown] rule
# The first product needs no collective and the second needs one, as in lesson 18. After the second product, each device
# holds a partial sum, and an all-reduce over `model` completes it. `part.communications` gives the reason for every
# inserted collective.

# %%
X, W1, W2 = [[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]], [[1] * 8, [2] * 8, [-1] * 8], [[1, 0]] * 8
ask("The rows of x @ w1 are eight 1s, eight 2s, eight 3s and eight -1s. Each row of w2 is 1, 0. On one device, what is "
    "the sum of all elements of the result?",
    ..., layer, X, W1, W2, of=lambda out: out.sum())  # fmt: skip
ask("What is the sum if the partitioned program runs on four devices?",
    ..., lambda: part.run(X, W1, W2).sum(), claim=PARTITIONED)  # fmt: skip

# %% [markdown] rule
# The sum is 8 * (1 + 2 + 3) = 48, because the maximum with 0 removes the last row. Both programs compute the same
# number. Partitioning decides what is sent and when. It may also change the order of a sum, and therefore the rounding
# of the result.

# %%
by_rows = xb.shard.partition(annotate(x=xb.P(("data", "model"))))
ask("Only the rows of x are sharded, over all four devices; w1 and w2 are replicated. How many collectives are needed?",
    ..., lambda: len(by_rows.communications), claim=PARTITIONED)  # fmt: skip

# %% [markdown] rule
# The program needs no collectives: each device computes its own row with all of the weights. This is data parallelism.
# Nothing is sent until you need the *gradients* of the weights, which are sums over the rows.
#
# **Rule.** Annotate a few values; the other shardings follow from them. The collectives of a product have the causes
# that lesson 18 lists, and `xbuild shard TARGET` names the cause of every collective.
