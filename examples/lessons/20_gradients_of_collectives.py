# %% [markdown]
# # 20. Gradients of collectives
#
# The derivative of a sum is simple: the cotangent of the result goes to every addend. The same rule holds across
# devices, once it is clear *whose* loss is differentiated. For a program without a mesh, the loss is the sum of the
# results of all devices. JAX computes the same gradients inside `shard_map` with `check_vma=False`.

# %%
import xbuild as xb
from xbuild.learning import ask, show


def on_two(function):
    return xb.Module("program", xb.computation(xb.f32[()])(function), num_replicas=2)


def back(function):
    """The program from (x, cotangent of the result) to the cotangent of x."""
    return xb.vjp(on_two(function))


def first(results):
    return [result[0] for result in results]


total = back(xb.cross_replica_sum)
ask("y = cross_replica_sum(x). The cotangents of y are 1 on replica 0 and 10 on replica 1. What are those of x? "
    "(one number for each replica)",
    ..., total, (0, 1), (0, 10), of=first)  # fmt: skip

# %% [markdown] rule
# Each x gets 11. Each x contributed to *both* results, so it gets both cotangents: the transpose of a sum over replicas
# is a sum over replicas.

# %%
shifted = back(lambda x: xb.collective_permute(x, [(0, 1)]))
ask("y = collective_permute(x, [(0, 1)]). The cotangents of y are 7 on replica 0 and 10 on replica 1. What are those "
    "of x? (one number for each replica)",
    ..., shifted, (0, 7), (0, 10), of=first)  # fmt: skip

# %% [markdown] rule
# The cotangents of x are 10 and 0, because the transpose reverses the pairs. The x of replica 0 went to replica 1, so
# the cotangent on replica 1 returns to replica 0. The cotangent 7 belongs to the zeros on replica 0, which no replica
# sent.

# %%
gather = xb.vjp(xb.Module("gather", xb.computation(xb.f32[1])(lambda x: xb.all_gather(x, 0, 2)), num_replicas=2))
ask("y = all_gather(x), and x is one number on each replica. The cotangents of y are [1, 2] on replica 0 and "
    "[10, 20] on replica 1. What are those of x? (one number for each replica)",
    ..., gather, ([0], [1, 2]), ([0], [10, 20]), of=first)  # fmt: skip
show(gather)

# %% [markdown] rule
# The cotangents of x are 1 + 10 = 11 and 2 + 20 = 22: the transpose of an all-gather is a reduce-scatter. The transpose
# of a reduce-scatter is an all-gather.
#
# ## Data-parallel training
#
# Each replica has its own x and the same w, and its loss is w * x. The gradient that every replica needs is the sum, or
# the mean, of the gradients of all replicas.

# %%
pair = xb.computation(xb.f32[()], xb.f32[()])
local = xb.grad(xb.Module("local", pair(lambda w, x: w * x), num_replicas=2), 0)
ask("On replicas 0 and 1, w is 5, and x is 3 and 4. Without communication, what is the gradient of w * x with "
    "respect to w? (one number for each replica)",
    ..., local, (5, 3), (5, 4))  # fmt: skip
summed = xb.Module("step", pair(lambda w, x: xb.cross_replica_sum(x) / 2.0), num_replicas=2)
ask("cross_replica_sum and a division by 2 compute the mean of these gradients. What does each replica hold? "
    "(one number for each replica)",
    ..., summed, (5, 3), (5, 4))  # fmt: skip

# %% [markdown] rule
# The local gradients are 3 and 4; their mean is 3.5 on both replicas. Without the sum, each replica would update w with
# its own gradient, and the copies of w would drift apart without any error.
#
# With types along a mesh (lesson 19, and `check_vma=True` in JAX), the type of w says that it is invariant. A gradient
# with respect to an invariant value is summed automatically: it is 7 on both replicas, and a second sum would be wrong.
#
# **Rule.** The transpose of a sum is a sum, the transpose of a permute has reversed pairs, and all-gather and
# reduce-scatter are each other's transposes. Sum a gradient once, and only once (lesson 13); know whether your
# framework does it for you.
