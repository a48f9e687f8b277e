# %% [markdown]
# # 21. Annotate, propagate, partition: where the collectives come from
#
# Nobody writes the collectives of a large model by hand. One writes the program for *one* device, says of a few
# values how they are cut, and a partitioner does the rest. Here it is done in three steps that can be looked at.

# %%
import xbuild as xb
from xbuild.learning import about_xbuild, ask, show

MESH = xb.Mesh(data=2, model=2)
PARTITIONED = about_xbuild(
    "So the partitioner of xbuild decides; the result is that of one device, which XLA gives, too"
)


@xb.computation(xb.f32[4, 3], xb.f32[3, 8], xb.f32[8, 2])
def layer(x, w1, w2):
    return xb.dot(xb.maximum(xb.dot(x, w1), 0.0), w2)


def cut(**specs):
    """The layer with how some of its parameters are cut over the mesh."""
    names = {name: parameter.name for name, parameter in zip(("x", "w1", "w2"), layer.parameters, strict=True)}
    shardings = {names[name]: xb.shard.by_spec(MESH, spec) for name, spec in specs.items()}
    return xb.shard.annotated(xb.Module("layer", layer), shardings)


by_model = cut(x=xb.P("data"), w1=xb.P(None, "model"), w2=xb.P("model"))

# %% [markdown]
# The rows of x lie on the axis `data`; the columns of w1 and the rows of w2 on `model`.

# %%
part = xb.shard.partition(by_model)
ask("x is f32[4,3], cut along its rows over `data` (2 devices). Which shape has a device's part? "
    "(its extents, as [5, 7])",
    ..., lambda: list(part.module.entry.parameters[0].shape.dims), claim=PARTITIONED)  # fmt: skip
ask("x @ w1 is f32[4,8]. Its rows come from x, its columns from w1. Which shape has a device's part? "
    "(its extents, as [5, 7])",
    ..., lambda: list(part.module.entry["dot.4"].shape.dims), claim=PARTITIONED)  # fmt: skip

# %% [markdown] rule
# [2, 3] and [2, 4]: nobody said how x @ w1 is cut. That *propagates*: the rows of a product are cut as the rows of its
# left side, the columns as the columns of its right side.
#
# ## What is sent

# %%
ask("The first product contracts a dimension that is not cut. How many collectives does it need? And the second, "
    "whose contracted dimension is cut over `model` on both sides?",
    ..., lambda: [0, len(part.communications)], claim=PARTITIONED)  # fmt: skip
show(part.module)

# %% [markdown] rule
# 0 and 1: lesson 18 again. After the second product each device holds a part of a sum, and an all-reduce over `model`
# joins it. `part.communications` says so for every collective that was put in.

# %%
X, W1, W2 = [[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]], [[1] * 8, [2] * 8, [-1] * 8], [[1, 0]] * 8
ask("The rows of x @ w1 are eight times 1, 2, 3 and -1. Each row of w2 is 1, 0. The sum of the result, on one device?",
    ..., layer, X, W1, W2, of=lambda out: out.sum())  # fmt: skip
ask("And of the partitioned program on four devices?", ..., lambda: part.run(X, W1, W2).sum(), claim=PARTITIONED)

# %% [markdown] rule
# 8 * (1 + 2 + 3) = 48: the maximum with 0 leaves out the last row. It is the same number twice: a partition may change
# what is sent and when, and never what is computed.

# %%
by_rows = xb.shard.partition(cut(x=xb.P(("data", "model"))))
ask("Only x is cut, along its rows, over all four devices; w1 and w2 are whole. How many collectives?",
    ..., lambda: len(by_rows.communications), claim=PARTITIONED)  # fmt: skip

# %% [markdown] rule
# None: each device computes its own row with all of the weights. That is data parallelism; nothing is sent until the
# *gradients* of the weights are wanted, which are sums over the rows.
#
# **Rule.** Annotate few values. What is not said follows from what is; each collective has one of the causes of
# lesson 18, and can be asked for it: `xbuild shard TARGET`.
