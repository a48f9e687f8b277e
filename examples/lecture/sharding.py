# %% [markdown]
# # Sharding
#
# An array is too large for one device. How it is sharded decides what must be sent.

# %% [markdown] notes
# 4 min. Use one product C = A B for the entire lecture, with numbers that the room can check mentally: A = [[1,
# 2], [3, 4]], B = [[1, 10], [2, 20]], C = [[5, 50], [11, 110]]. Write it in a corner of the board and leave it there.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import about_xbuild, ask, on_xla, show

A, B = np.float32([[1, 2], [3, 4]]), np.float32([[1, 10], [2, 20]])


def on_two(a, b, function):
    return xb.Module("product", xb.computation(xb.f32[a], xb.f32[b])(function), num_replicas=2)


# %% [markdown]
# ## Case 1: rows of A

# %% [markdown] notes
# 6 min. Tear a sheet with A on it between its rows. Each half and all of B: can each compute? Yes, without any
# communication.

# %%
rows = on_two([1, 2], [2, 2], xb.dot)
ask("Device 1 has row [3, 4] of A, and all of B. What does it compute?", ..., rows, (A[:1], B), (A[1:], B),
    of=lambda out: out[1])  # fmt: skip

# %% [markdown] rule
# [[11, 110]], row 1 of C. Data parallelism is this case: A is the batch.
#
# ## Case 2: columns of A, rows of B

# %% [markdown] notes
# 10 min. Tear between the columns. Let the room compute both products and see that the shapes are those of C but the
# numbers are not. The word is "unreduced": each has a partial sum. Then: does everyone need C, or each only a part?

# %%
local = on_two([2, 1], [1, 2], xb.dot)
cut = (A[:, :1], B[:1]), (A[:, 1:], B[1:])
ask("Device 0 has column [1, 3] of A and row [1, 10] of B. What does it compute?", ..., local, *cut,
    of=lambda out: out[0])  # fmt: skip
reduced = on_two([2, 1], [1, 2], lambda a, b: xb.cross_replica_sum(xb.dot(a, b)))
ask("And after a sum over the devices?", ..., reduced, *cut, of=lambda out: out[0])
show(reduced)

# %% [markdown] rule
# [[1, 10], [3, 30]], which is not a part of C; after the sum, C.
#
# ## Case 3: one sharded, one replicated

# %% [markdown] notes
# 6 min. B is replicated, A is sharded along the contracted dimension. The gather is unavoidable. Ask what else could be
# gathered, and which is smaller.

# %%
gathered = on_two([2, 1], [2, 2], lambda a, b: xb.dot(xb.all_gather(a, 1, 2), b))
ask("A is gathered, then multiplied. How many bytes go over a link?", ..., lambda: xb.cost(gathered).link_bytes,
    claim=about_xbuild("Counted for an all-gather of 16 bytes on 2 devices: 16 * 1/2"))  # fmt: skip

# %% [markdown] rule
# 8: half of A, which is 16 bytes.
#
# ## The same with a mesh

# %% [markdown] notes
# 9 min. Now without ids and groups: name the axis, annotate the sharding of each array, and let the types show whether
# the result is the same everywhere. Show that leaving out the psum is *refused*, with the reason, instead of giving
# wrong numbers. This is what `jax.shard_map` does with `check_vma`.

# %%
mesh = xb.Mesh(i=2)
specs = (xb.P(None, "i"), xb.P("i"))
product = xb.shard_map(lambda a, b: xb.mesh.psum(xb.dot(a, b), "i"), mesh, specs, xb.P()).program(
    xb.f32[2, 2], xb.f32[2, 2]
)
ask("psum of the local products. What is the result?", ..., product.run, A, B, claim=on_xla(product.module, *cut))


def without_sum():
    try:
        xb.shard_map(xb.dot, mesh, specs, xb.P()).program(xb.f32[2, 2], xb.f32[2, 2])
    except xb.XbuildError as error:
        print(error)
        return "no"
    return "yes"


ask("May the local products leave as one replicated value, without the psum?", ..., without_sum, choices=["yes", "no"],
    claim=about_xbuild("The type of the product is varying along i"))  # fmt: skip

# %% [markdown] rule
# C; and no: `out_spec_not_replicated`.
#
# ## Exercise

# %% [markdown] notes
# 10 min. `xbuild puzzle 17`: rows to columns with at most 12 bytes on a link. Whoever gathers the entire matrix sends
# 48, and the puzzle says so. Then compare with all-to-all. At home: `xbuild learn 18` and `xbuild learn 19`.

# %%
scattered = on_two([2, 1], [1, 2], lambda a, b: xb.reduce_scatter(xb.dot(a, b), xb.add, 0, 2))
ask("Case 2 again, with reduce_scatter: what does device 1 have?", ..., scattered, *cut, of=lambda out: out[1])
show(scattered)

# %% [markdown] rule
# [[11, 110]]: row 1 of C, for half the bytes of the all-reduce.
