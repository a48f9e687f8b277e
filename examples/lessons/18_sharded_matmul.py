# %% [markdown]
# # 18. A sharded matrix product: where the communication comes from
#
# C = A B on two devices. Only the shardings of A and B decide what must be sent. Here A = [[1, 2], [3, 4]] and
# B = [[1, 10], [2, 20]], so C = [[5, 50], [11, 110]].

# %%
import xbuild as xb
from xbuild.learning import about_xbuild, ask, show

C = [[5, 50], [11, 110]]


def on_two(a, b):
    """A program on a shard of A and a shard of B, for two replicas."""
    return lambda function: xb.Module("product", xb.computation(xb.f32[a], xb.f32[b])(function), num_replicas=2)


# Rows of A on each device, B replicated.
rows = on_two([1, 2], [2, 2])(xb.dot)
whole_b = [[1, 10], [2, 20]]
ask("Device 0 has row [1, 2] of A, device 1 row [3, 4], both have all of B. The product without communication: "
    "what has device 0?", ..., rows, ([[1, 2]], whole_b), ([[3, 4]], whole_b), of=lambda out: out[0])  # fmt: skip

# %% [markdown] rule
# [[5, 50]], row 0 of C. **Case 1**: the contracted dimension is not sharded: nothing is sent, and C is sharded like A.
#
# ## Both sharded along the contracted dimension
#
# Device 0 has column [1, 3] of A and row [1, 10] of B, device 1 column [2, 4] and row [2, 20].

# %%
first, second = ([[1], [3]], [[1, 10]]), ([[2], [4]], [[2, 20]])
partial = on_two([2, 1], [1, 2])(xb.dot)
ask("The local products. What has device 0?", ..., partial, first, second, of=lambda out: out[0])

# %% [markdown] rule
# [[1, 10], [3, 30]]: the full shape of C, but wrong numbers. Each device holds a *partial sum*.

# %%
reduced = on_two([2, 1], [1, 2])(lambda a, b: xb.cross_replica_sum(xb.dot(a, b)))
scattered = on_two([2, 1], [1, 2])(lambda a, b: xb.reduce_scatter(xb.dot(a, b), xb.add, 0, 2))
ask("An all-reduce after the product. What has device 1?", ..., reduced, first, second, of=lambda out: out[1])
ask("A reduce-scatter along the rows instead. What has device 1?", ..., scattered, first, second, of=lambda out: out[1])
COUNTED = about_xbuild(
    "Counted for a ring of 2 devices: 2 b/2 for the all-reduce, b/2 for the reduce-scatter, of b = 16 bytes"
)
ask("How many bytes do the all-reduce and the reduce-scatter send?", ...,
    lambda: [xb.cost(reduced).link_bytes, xb.cost(scattered).link_bytes], claim=COUNTED)  # fmt: skip
show(scattered)

# %% [markdown] rule
# All of C; row 1 of C, [[11, 110]]; 16 and 8 bytes. **Case 2**: both are sharded along the contracted dimension, so the
# products are partial sums. All-reduce if all need C, reduce-scatter if each needs only a part.
#
# ## One sharded along the contracted dimension, the other replicated

# %%
gathered = on_two([2, 1], [2, 2])(lambda a, b: xb.dot(xb.all_gather(a, 1, 2), b))
ask("Each device has a column of A and all of B. A is gathered first, then multiplied. What has device 0?",
    ..., gathered, ([[1], [3]], whole_b), ([[2], [4]], whole_b), of=lambda out: out[0])  # fmt: skip

# %% [markdown] rule
# All of C. **Case 3**: gather the operand that is sharded along the contracted dimension. 8 bytes here; the entire
# product is then computed twice.
#
# **Case 4**: rows of A and columns of B are on the *same* axis of devices. Then a device can only compute the block of
# C for its own pair, and one of the two must be gathered first.
#
# **Rule.** Look at the contracted dimension. Not sharded: nothing to send. Sharded in both: sum over the devices
# afterwards. Sharded in one: gather it first.
