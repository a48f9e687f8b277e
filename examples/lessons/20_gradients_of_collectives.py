# %% [markdown]
# # 20. Gradients of collectives
#
# The derivative of a sum of numbers is simple: what comes back at the result goes to every addend. Across devices the
# same holds, if one asks *whose* loss is meant. For a plain program the loss is the sum of what all devices give.

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
ask("y = cross_replica_sum(x). At the results come back 1 on replica 0 and 10 on replica 1. What does x get on each? "
    "(one number for each of the two)",
    ..., total, (0, 1), (0, 10), of=first)  # fmt: skip

# %% [markdown] rule
# 11 and 11. Each x went into *both* results, so that it gets both cotangents: the transpose of a sum over replicas is
# a sum over replicas.

# %%
shifted = back(lambda x: xb.collective_permute(x, [(0, 1)]))
ask("y = collective_permute(x, [(0, 1)]); 7 comes back on replica 0, 10 on replica 1. What does x get on each? "
    "(one number for each of the two)",
    ..., shifted, (0, 7), (0, 10), of=first)  # fmt: skip

# %% [markdown] rule
# 10 and 0: the pairs turned round. The x of replica 0 went to replica 1, so what comes back there goes to it. The 7
# belongs to the zeros that replica 0 got, which come from nobody.

# %%
gather = xb.vjp(xb.Module("gather", xb.computation(xb.f32[1])(lambda x: xb.all_gather(x, 0, 2)), num_replicas=2))
ask("y = all_gather of one number each; [1, 2] comes back on replica 0, [10, 20] on replica 1. What does x get? "
    "(one number for each of the two)",
    ..., gather, ([0], [1, 2]), ([0], [10, 20]), of=first)  # fmt: skip
show(gather)

# %% [markdown] rule
# 1 + 10 = 11 and 2 + 20 = 22: a reduce-scatter. And the transpose of a reduce-scatter is an all-gather.
#
# ## Data parallel training
#
# Each replica has its own x and the same w. Its loss is w * x. The gradient that all need is the sum over the
# replicas, or the mean.

# %%
pair = xb.computation(xb.f32[()], xb.f32[()])
local = xb.grad(xb.Module("local", pair(lambda w, x: w * x), num_replicas=2), 0)
ask("w is 5 on both, x is 3 and 4. Without communication, what is the gradient of w * x by w on each? "
    "(one number for each of the two)",
    ..., local, (5, 3), (5, 4))  # fmt: skip
summed = xb.Module("step", pair(lambda w, x: xb.cross_replica_sum(x) / 2.0), num_replicas=2)
ask("The mean of these gradients, by cross_replica_sum and a division by 2. What has each replica? "
    "(one number for each of the two)",
    ..., summed, (5, 3), (5, 4))  # fmt: skip

# %% [markdown] rule
# 3 and 4; then 3.5 on both. Without the sum each replica would step by a gradient of its own, and the copies of w
# would drift apart, with no error at all.
#
# **Rule.** Transposes: sum to sum, permute to the pairs turned round, all-gather to reduce-scatter and back. Sum a
# gradient once, and not after it has been summed (lesson 13).
