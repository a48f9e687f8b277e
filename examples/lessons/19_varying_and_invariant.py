# %% [markdown]
# # 19. Varying and invariant: what the type says about other devices
#
# On a mesh with an axis `i`, a value is either *varying* or *invariant* along `i`. A varying value, `f32[4]{V:i}`, may
# differ between devices; an invariant value, `f32[4]`, is equal on all devices. The type of a value, like its shape, is
# known while the program is built.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import about_xbuild, ask, on_jax, on_xla, show

mesh, cut, whole = xb.Mesh(i=2), xb.P("i"), xb.P()


def program(function, out):
    return xb.shard_map(function, mesh, (cut,), out).program(xb.f32[4])


def gather(x):
    return xb.mesh.all_gather(x, "i", tiled=True)


def gather_invariant(x):
    return xb.mesh.all_gather_invariant(x, "i", tiled=True)


x = np.float32([1, 2, 3, 4])
summed = program(lambda part: xb.mesh.psum(xb.reduce(part, 0.0, xb.add), "i"), whole)
ask("x = [1, 2, 3, 4] is sharded over two devices. Each sums its part, and psum over i follows. What is the result?",
    ..., summed.run, x, claim=on_xla(summed.module, [1, 2], [3, 4]))  # fmt: skip

# %% [markdown] rule
# The result is 10. The parts [1, 2] and [3, 4] are varying, and so are their sums 3 and 7. After `psum`, both devices
# hold 10, which is invariant, so the function may return it as one replicated value: `out_specs=P()`.


# %%
def verdict(function):
    try:
        return f"accepted, {len(program(function, whole).run(x))} numbers"
    except xb.XbuildError as error:
        return f"refused: {error.kind}"


ANSWERS = ["accepted, 4 numbers", "refused: out_spec_not_replicated"]
ask("After all_gather, both devices hold all of x. May the function return it as one replicated value?",
    ..., verdict, gather, choices=ANSWERS, claim=on_jax())  # fmt: skip
ask("May the function return the result of all_gather_invariant as one replicated value?",
    ..., verdict, gather_invariant, choices=ANSWERS, claim=on_jax())  # fmt: skip

# %% [markdown] rule
# `all_gather` is refused: its result is *typed* as varying, although both devices hold the same value.
# `all_gather_invariant` is accepted. Both ops send the same number of bytes and differ only in the type of the result.
# In current JAX, `all_gather_invariant(x, axis)` is spelled `lax.all_gather(x, axis, to="invarying")`, and `pvary(x,
# axis)` is spelled `lax.pcast(x, axis, to="varying")`.
#
# ## Why both ops exist: the backward pass

# %%
weights = np.float32([1, 10, 100, 1000])
either = {
    "all_gather": program(lambda x: xb.mesh.psum(xb.reduce(gather(x) * weights, 0.0, xb.add), "i"), whole),
    "all_gather_invariant": program(lambda x: xb.reduce(gather_invariant(x) * weights, 0.0, xb.add), whole),
}
back = {name: xb.grad(each) for name, each in either.items()}


def collectives(name):
    return len(xb.cost(back[name].module).collectives)


slim, own = back["all_gather_invariant"], ([1, 2], [3, 4])
ask("A loss uses all_gather. How many collectives does its gradient have?", ..., collectives, "all_gather",
    claim=about_xbuild("A reduce-scatter sums the cotangents, which may differ between the two devices"))  # fmt: skip
ask("A loss uses all_gather_invariant. How many collectives does its gradient have?",
    ..., collectives, "all_gather_invariant",
    claim=about_xbuild("Each device slices its part out of the cotangent, which all devices hold"))  # fmt: skip
ask("The second loss is the sum of x * [1, 10, 100, 1000]. What is its gradient, joined from both devices?",
    ..., slim.run, x, claim=on_xla(slim.module, *own))  # fmt: skip
show(slim.module)

# %% [markdown] rule
# The gradient of the loss with all_gather has one collective. The gradient of the loss with all_gather_invariant has
# none, and its value is [1, 10, 100, 1000]. An invariant result has an invariant cotangent: all devices already hold
# it, so each device slices out its own part.
#
# **Rule.** Varying values may differ between devices; invariant values are equal on all devices. The transpose of an op
# whose result is *invariant* needs no communication.
