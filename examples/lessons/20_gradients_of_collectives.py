# %% [markdown]
# # 20. Gradients of collectives
#
# The derivative of a sum is simple: the cotangent of the result goes to every addend. The same holds across devices,
# once it is clear *whose* loss is meant. For a plain program the loss is the sum of all devices' results.

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
ask("y = cross_replica_sum(x). The cotangents of y are 1 on replica 0 and 10 on replica 1. What does x get on each? "
    "(one number for each of the two)",
    ..., total, (0, 1), (0, 10), of=first)  # fmt: skip

# %% [markdown] rule
# 11 and 11. Each x contributed to *both* results, so it gets both cotangents: the transpose of a sum over replicas is a
# sum over replicas.

# %%
shifted = back(lambda x: xb.collective_permute(x, [(0, 1)]))
ask("y = collective_permute(x, [(0, 1)]); the cotangents are 7 on replica 0, 10 on replica 1. What does x get on each? "
    "(one number for each of the two)",
    ..., shifted, (0, 7), (0, 10), of=first)  # fmt: skip

# %% [markdown] rule
# 10 and 0: the pairs are reversed. The x of replica 0 went to replica 1, so the cotangent there goes back to it. The 7
# belongs to the zeros that replica 0 got, which come from no replica.

# %%
gather = xb.vjp(xb.Module("gather", xb.computation(xb.f32[1])(lambda x: xb.all_gather(x, 0, 2)), num_replicas=2))
ask("y = all_gather of one number each; its cotangents are [1, 2] on replica 0, [10, 20] on 1. What does x get? "
    "(one number for each of the two)",
    ..., gather, ([0], [1, 2]), ([0], [10, 20]), of=first)  # fmt: skip
show(gather)

# %% [markdown] rule
# 1 + 10 = 11 and 2 + 20 = 22: a reduce-scatter. And the transpose of a reduce-scatter is an all-gather.
#
# ## Data parallel training
#
# Each replica has its own x and the same w. Its loss is w * x. The gradient that every replica needs is the sum,
# or the mean, over the replicas.

# %%
pair = xb.computation(xb.f32[()], xb.f32[()])
local = xb.grad(xb.Module("local", pair(lambda w, x: w * x), num_replicas=2), 0)
ask("w is 5 on both, x is 3 and 4. Without communication, what is the gradient of w * x by w on each? "
    "(one number for each of the two)",
    ..., local, (5, 3), (5, 4))  # fmt: skip
summed = xb.Module("step", pair(lambda w, x: xb.cross_replica_sum(x) / 2.0), num_replicas=2)
ask("The mean of these gradients, by cross_replica_sum and a division by 2. What does each replica have? "
    "(one number for each of the two)",
    ..., summed, (5, 3), (5, 4))  # fmt: skip

# %% [markdown] rule
# 3 and 4; then 3.5 on both. Without the sum each replica would step by its own gradient, and the copies of w would
# drift apart without any error.
#
# **Rule.** Transposes: a sum becomes a sum, a permute reverses its pairs, all-gather and reduce-scatter become each
# other. Sum a gradient once, and never again (lesson 13).
