# %% [markdown]
# # Sharding
#
# An array is too large for one device. The shardings of the operands, and the sharding that you want for the result,
# determine what must be sent.

# %% [markdown] notes
# 4 min. Use one product C = A B for the entire lecture, with numbers that students can check in their heads: A = [[1,
# 2], [3, 4]], B = [[1, 10], [2, 20]], C = [[5, 50], [11, 110]]. Write the product in a corner of the board, and do not
# erase it.

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
# 6 min. Write A on a sheet of paper, and tear the sheet between the rows. Can two students compute, if each has one
# half and all of B? Yes, without any communication.

# %%
rows = on_two([1, 2], [2, 2], xb.dot)
ask("Device 1 has row [3, 4] of A, and all of B. What does it compute?", ..., rows, (A[:1], B), (A[1:], B),
    of=lambda out: out[1])  # fmt: skip

# %% [markdown] rule
# Device 1 computes [[11, 110]], row 1 of C. Data parallelism is this case: A is the batch.
#
# ## Case 2: columns of A, rows of B

# %% [markdown] notes
# 10 min. Tear the sheet between the columns. Let the students compute both products: they have the shape of C but not
# its values. The word is "unreduced": each product is a partial sum. Then ask: does every device need all of C, or only
# a part?

# %%
local = on_two([2, 1], [1, 2], xb.dot)
cut = (A[:, :1], B[:1]), (A[:, 1:], B[1:])
ask("Device 0 has column [1, 3] of A and row [1, 10] of B. What does it compute?", ..., local, *cut,
    of=lambda out: out[0])  # fmt: skip
reduced = on_two([2, 1], [1, 2], lambda a, b: xb.cross_replica_sum(xb.dot(a, b)))
ask("What does device 0 hold after a sum over the devices?", ..., reduced, *cut, of=lambda out: out[0])
show(reduced)

# %% [markdown] rule
# Device 0 computes [[1, 10], [3, 30]], which is not a part of C. After the sum, it holds C.
#
# ## Case 3: one operand sharded, one replicated

# %% [markdown] notes
# 6 min. B is replicated, and A is sharded along the contracted dimension. Gather A, or slice B, which sends nothing,
# and continue with case 2. Ask what each way sends: the gather sends half of A, and case 2 sends partial sums of C.

# %%
gathered = on_two([2, 1], [2, 2], lambda a, b: xb.dot(xb.all_gather(a, 1, 2), b))
ask("The devices gather A, then multiply. How many bytes go over a link?", ..., lambda: xb.cost(gathered).link_bytes,
    claim=about_xbuild("Counted for an all-gather of 16 bytes on 2 devices: 16 * 1/2"))  # fmt: skip

# %% [markdown] rule
# The gather sends 8 bytes, half of the 16 bytes of A.
#
# ## The same product on a mesh

# %% [markdown] notes
# 9 min. Now use no ids and groups: name the axis, annotate the sharding of each array, and let the types show whether
# the result is equal on all devices. Show that xbuild *refuses* a program without the psum and states the cause,
# instead of returning wrong numbers. `jax.shard_map` does the same with `check_vma`.

# %%
mesh = xb.Mesh(i=2)
specs = (xb.P(None, "i"), xb.P("i"))
product = xb.shard_map(lambda a, b: xb.mesh.psum(xb.dot(a, b), "i"), mesh, specs, xb.P()).program(
    xb.f32[2, 2], xb.f32[2, 2]
)
ask("What is the psum of the local products?", ..., product.run, A, B, claim=on_xla(product.module, *cut))


def without_sum():
    try:
        xb.shard_map(xb.dot, mesh, specs, xb.P()).program(xb.f32[2, 2], xb.f32[2, 2])
    except xb.XbuildError as error:
        print(error)
        return "no"
    return "yes"


ask("May the function return the local products as one replicated value, without the psum?",
    ..., without_sum, choices=["yes", "no"],
    claim=about_xbuild("The type of the product is varying along i"))  # fmt: skip

# %% [markdown] rule
# The psum is C. Without the psum, xbuild refuses the program: `out_spec_not_replicated`.
#
# ## Exercise

# %% [markdown] notes
# 10 min. The students solve `xbuild puzzle 17`: from rows to columns with at most 12 bytes on a link. A solution that
# gathers the entire matrix sends 48 bytes, and the puzzle says so. Then compare it with all-to-all. For home, recommend
# `xbuild learn 18` and `xbuild learn 19`.

# %%
scattered = on_two([2, 1], [1, 2], lambda a, b: xb.reduce_scatter(xb.dot(a, b), xb.add, 0, 2))
ask("In case 2, a reduce_scatter replaces the sum. What does device 1 hold?",
    ..., scattered, *cut, of=lambda out: out[1])  # fmt: skip
show(scattered)

# %% [markdown] rule
# Device 1 holds [[11, 110]], row 1 of C. The reduce-scatter sends half the bytes of the all-reduce.
