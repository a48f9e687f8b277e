"""A step with JAX's shard_map, checked before it runs: only the first of four devices reaches a psum."""

from __future__ import annotations

from typing import Any

import xbuild as xb
from examples.extras import wanted

with wanted("xla"):
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, PartitionSpec

jax.config.update("jax_num_cpu_devices", 4)


def step(weights: Any, batch: Any) -> Any:
    """One step of gradient descent; the first device logs the norm of the gradient."""
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(batch @ w) ** 2))(weights)
    gradient = jax.lax.pmean(gradient, "data")
    is_first = jax.lax.axis_index("data") == 0
    norm = jax.lax.cond(is_first, lambda: jax.lax.psum(jnp.sum(gradient**2), "data"), lambda: 0.0)
    return weights - 0.1 * gradient, norm


def program() -> xb.Module:
    """The program that XLA compiles for four devices."""
    mesh = Mesh(jax.devices(), ("data",))
    whole, parts = PartitionSpec(), PartitionSpec("data")
    on_mesh = jax.shard_map(step, mesh=mesh, in_specs=(whole, parts), out_specs=(whole, whole), check_vma=False)
    return xb.from_jax(jax.jit(on_mesh), xb.f32[8, 4], xb.f32[16, 8])


if __name__ == "__main__":
    print(xb.check(program()))
