"""A JAX training script on four CPU devices; `xbuild guard examples/train.py --log-norm` stops it before it hangs.

The script needs JAX. `python -m examples.train` trains a small model for three steps. With `--log-norm`, the first
device also logs the norm of the gradient, in a sum that the other devices never reach.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np

try:
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec
except ModuleNotFoundError:
    raise SystemExit("this example needs jax, which is not installed: pip install 'xbuild-hlo[xla]'") from None


def step(weights: Any, batch: Any, *, is_logged: bool) -> Any:
    """One step of gradient descent on each device: the new weights, the loss, and the norm if the script logs it."""
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(batch @ w) ** 2))(weights)
    gradient = jax.lax.pmean(gradient, "data")
    norm = 0.0
    if is_logged:
        is_first = jax.lax.axis_index("data") == 0
        norm = jax.lax.cond(is_first, lambda: jax.lax.psum(jnp.sum(gradient**2), "data"), lambda: 0.0)
    return weights - 0.1 * gradient, jax.lax.pmean(loss, "data"), norm


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small model on four CPU devices.")
    parser.add_argument("--log-norm", action="store_true", help="Log the norm of the gradient on the first device.")
    is_logged = parser.parse_args().log_norm
    jax.config.update("jax_num_cpu_devices", 4)
    mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    replicated, split = PartitionSpec(), PartitionSpec("data")
    on_mesh = jax.shard_map(
        partial(step, is_logged=is_logged),
        mesh=mesh,
        in_specs=(replicated, split),
        out_specs=(replicated, replicated, replicated),
        check_vma=False,
    )
    train = jax.jit(on_mesh)
    random = np.random.default_rng(0)
    weights = random.normal(size=(8, 4)).astype(np.float32)
    batch = random.normal(size=(16, 8)).astype(np.float32)
    for number in range(3):
        weights, loss, norm = train(weights, batch)
        print(f"step {number}: loss {float(loss):.4f}" + (f", norm {float(norm):.4f}" if is_logged else ""))


if __name__ == "__main__":
    main()
