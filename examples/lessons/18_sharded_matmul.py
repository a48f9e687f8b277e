# %% [markdown]
# # 18. A sharded matrix product: where the communication comes from
#
# Two devices compute C = A B. The shardings of A and B, and the sharding that you want for C, determine what must be
# sent. Here A = [[1, 2], [3, 4]] and B = [[1, 10], [2, 20]], so C = [[5, 50], [11, 110]].

# %%
import xbuild as xb
from xbuild.learning import about_xbuild, ask, show

C = [[5, 50], [11, 110]]


def on_two(a, b):
    """A program on a shard of A and a shard of B, for two replicas."""
    return lambda function: xb.Module("product", xb.computation(xb.f32[a], xb.f32[b])(function), num_replicas=2)


# Each device has one row of A; B is replicated.
rows = on_two([1, 2], [2, 2])(xb.dot)
whole_b = [[1, 10], [2, 20]]
ask("Device 0 has row [1, 2] of A, device 1 has row [3, 4], and both have all of B. They multiply without "
    "communication. What does device 0 hold?",
    ..., rows, ([[1, 2]], whole_b), ([[3, 4]], whole_b), of=lambda out: out[0])  # fmt: skip

# %% [markdown] rule
# Device 0 holds [[5, 50]], row 0 of C. **Case 1**: the contracted dimension is not sharded, so the devices send
# nothing, and C is sharded like A.
#
# ## Both operands sharded along the contracted dimension
#
# Device 0 holds column [1, 3] of A and row [1, 10] of B; device 1 holds column [2, 4] and row [2, 20].

# %%
first, second = ([[1], [3]], [[1, 10]]), ([[2], [4]], [[2, 20]])
partial = on_two([2, 1], [1, 2])(xb.dot)
ask("Each device multiplies its own parts. What does device 0 hold?",
    ..., partial, first, second, of=lambda out: out[0])  # fmt: skip

# %% [markdown] rule
# Device 0 holds [[1, 10], [3, 30]], which has the full shape of C but not its values. Each device holds a *partial
# sum*.

# %%
reduced = on_two([2, 1], [1, 2])(lambda a, b: xb.cross_replica_sum(xb.dot(a, b)))
scattered = on_two([2, 1], [1, 2])(lambda a, b: xb.reduce_scatter(xb.dot(a, b), xb.add, 0, 2))
ask("An all-reduce follows the product. What does device 1 hold?", ..., reduced, first, second, of=lambda out: out[1])
ask("A reduce-scatter along the rows follows instead. What does device 1 hold?",
    ..., scattered, first, second, of=lambda out: out[1])  # fmt: skip
COUNTED = about_xbuild(
    "Counted for a ring of 2 devices and b = 16 bytes: 2 b/2 for the all-reduce, b/2 for the reduce-scatter"
)
ask("How many bytes do the all-reduce and the reduce-scatter send?", ...,
    lambda: [xb.cost(reduced).link_bytes, xb.cost(scattered).link_bytes], claim=COUNTED)  # fmt: skip
show(scattered)

# %% [markdown] rule
# After the all-reduce, device 1 holds all of C; after the reduce-scatter, it holds row 1 of C, [[11, 110]]. The
# collectives send 16 and 8 bytes. **Case 2**: both operands are sharded along the contracted dimension, so the local
# products are partial sums. Use an all-reduce if every device needs all of C, and a reduce-scatter if each device needs
# only a part.
#
# ## One operand sharded along the contracted dimension, the other replicated

# %%
gathered = on_two([2, 1], [2, 2])(lambda a, b: xb.dot(xb.all_gather(a, 1, 2), b))
ask("Each device has a column of A and all of B. The devices gather A, then multiply. What does device 0 hold?",
    ..., gathered, ([[1], [3]], whole_b), ([[2], [4]], whole_b), of=lambda out: out[0])  # fmt: skip

# %% [markdown] rule
# Device 0 holds all of C. **Case 3**: only one operand is sharded along the contracted dimension. The devices can
# gather that operand, as here: the gather sends 8 bytes, and both devices compute the entire product. Alternatively,
# each device slices its own part of the replicated operand without any communication, and case 2 follows: an all-reduce
# sends 16 bytes, and a reduce-scatter sends 8.
#
# **Case 4**: the rows of A and the columns of B are sharded along the *same* axis of devices. Without communication,
# each device can compute only the block of C for its own rows and columns, so one operand is usually gathered first.
#
# **Rule.** Look at the contracted dimension. If no operand is sharded along this dimension, the product sends nothing,
# unless both operands are sharded along the same axis of devices. If both operands are sharded along it, sum over the
# devices afterwards. If only one operand is sharded along it, gather this operand, or slice the other operand and sum
# afterwards. Then look at the sharding that you want for C: it may need an all-gather, or allow a reduce-scatter.
