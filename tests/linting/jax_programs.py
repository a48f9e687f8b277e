"""Programs of JAX with a fault for `xb.lint`, each as lowered and as compiled; run as a child process, it prints rows.

A row has the name, the stage, the number of XLA's warnings of a full rematerialization, and the rules with their lines
relative to the first line of the function. The shardings of `moved` and `columns` are those of public reports of the
warning "Involuntary full rematerialization" (jax-ml/jax issues 21562 and 18591, openxla/xla issue 15207).
"""

from __future__ import annotations

import functools
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

os.environ["JAX_NUM_CPU_DEVICES"] = "8"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import xbuild as xb

DEVICES = np.array(jax.devices())
DATA = Mesh(DEVICES, ("data",))
XY = Mesh(DEVICES.reshape(4, 2), ("x", "y"))
AB = Mesh(DEVICES.reshape(2, 4), ("a", "b"))
F32 = jnp.float32


def array(*dims: int, dtype: Any = F32) -> Any:
    return jax.ShapeDtypeStruct(dims, dtype)


def named(mesh: Mesh, *spec: Any) -> NamedSharding:
    return NamedSharding(mesh, P(*spec))


def shifted(x):
    return x + jax.lax.ppermute(x, "data", [(i, i + 1) for i in range(7)])


def shifted_with_own(x):
    received = jax.lax.ppermute(x, "data", [(i, i + 1) for i in range(7)])
    return jnp.where(jax.lax.axis_index("data") == 0, x, received)


def summed_twice(x):
    once = jax.lax.psum(x, "data")
    return jax.lax.psum(once * 2, "data")


def loss(w, b, x):
    return ((x @ w + b) ** 2).mean()


def bias_not_reduced(w, b, x):
    of_w, of_b = jax.grad(loss, (0, 1))(w, b, x)
    return w - jax.lax.pmean(of_w, "data"), b - of_b


def all_reduced(w, b, x):
    of_w, of_b = jax.grad(loss, (0, 1))(w, b, x)
    return w - jax.lax.pmean(of_w, "data"), b - jax.lax.pmean(of_b, "data")


def adam(w, m, v, x):
    gradient = jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).mean())(w)
    m = 0.9 * m + 0.1 * gradient
    v = 0.99 * v + 0.01 * gradient * gradient
    return w - m / (jnp.sqrt(v) + 1e-8), m, v


def returns_whole(w, m, x):
    gradient = jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).mean())(w)
    m = 0.9 * m + 0.1 * gradient
    return w - m, m


def gathers_in_loop(w, x):
    def trip(carry, _):
        return jnp.tanh(carry @ jax.lax.all_gather(w, "data", tiled=True)), None

    return jax.lax.scan(trip, x, None, length=10)[0]


def sums_in_loop(w, xs):
    def trip(total, x):
        gradient = jax.grad(lambda w: ((x @ w) ** 2).sum())(w)
        return total + jax.lax.psum(gradient, "data"), None

    return jax.lax.scan(trip, jnp.zeros_like(w), xs)[0]


def widened(x, w):
    return x @ w


def summed_in_f32(x, w):
    return jnp.dot(x, w, preferred_element_type=F32)


def calls_back(x):
    return jax.pure_callback(lambda y: np.asarray(y), x, x)


def prints(x):
    jax.debug.print("{}", x[0, 0])
    return x + 1


def moved(a, b, c):
    d = a + b
    d = jax.lax.with_sharding_constraint(d, named(XY, None, ("x", "y"), None))
    return c + d


def columns(a):
    h = jnp.tanh(a)
    return jax.lax.with_sharding_constraint(h, named(AB, None, "a")) * 2


def transposed(a):
    return jnp.tanh(a).T * 3


def padded(a):
    p = jnp.pad(a, (8, 8))
    return jax.lax.with_sharding_constraint(p, named(AB, "b"))


def mapped(function: Callable[..., Any], in_specs: Any, out_specs: Any) -> Any:
    return functools.wraps(function)(
        jax.shard_map(function, mesh=DATA, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    )


def cases() -> Iterator[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]:
    square, row = array(512, 512), array(512)
    half = array(512, 512, dtype=jnp.bfloat16)
    yield mapped(shifted, P("data"), P("data")), (square,), {}
    yield mapped(shifted_with_own, P("data"), P("data")), (square,), {}
    yield mapped(summed_twice, P("data"), P()), (square,), {}
    yield mapped(bias_not_reduced, (P(), P(), P("data")), P()), (square, row, square), {}
    yield mapped(all_reduced, (P(), P(), P("data")), P()), (square, row, square), {}
    whole, split = named(DATA), named(DATA, "data")
    yield adam, (square,) * 4, {"in_shardings": (whole, whole, whole, split), "out_shardings": (whole,) * 3}
    yield returns_whole, (square,) * 3, {"in_shardings": (whole, split, split), "out_shardings": (whole, whole)}
    yield mapped(gathers_in_loop, (P("data"), P("data")), P("data")), (square, square), {}
    yield mapped(sums_in_loop, (P(), P(None, "data")), P()), (square, array(4, 512, 512)), {}
    yield widened, (half, square), {}
    yield summed_in_f32, (half, half), {}
    yield calls_back, (square,), {}
    yield prints, (square,), {}
    one, other = named(XY, "y", None, "x"), named(XY, None, ("x", "y"), None)
    yield moved, (array(16, 16, 16),) * 3, {"in_shardings": (one, one, other), "out_shardings": other}
    yield columns, (array(64, 64),), {"in_shardings": named(AB, ("a", "b"))}
    yield padded, (array(80),), {"in_shardings": named(AB, "a")}
    yield transposed, (array(64, 64),), {"in_shardings": named(AB, "a", "b"), "out_shardings": named(AB, "b", "a")}


def count_warnings(lowered: Any) -> tuple[Any, int]:
    """What a function compiles to, and the number of XLA's warnings."""
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            compiled = lowered.compile()
        finally:
            os.dup2(kept, 2)
        file.seek(0)
        return compiled, file.read().count(b"Involuntary full rematerialization")


def main() -> None:
    rows = []
    for function, arguments, options in cases():
        lowered = jax.jit(function, **options).lower(*arguments)
        compiled, warnings = count_warnings(lowered)
        code = getattr(function, "__wrapped__", function).__code__
        for stage, program in (("lowered", lowered), ("compiled", compiled)):
            issues = [
                (
                    each.rule,
                    each.source.line - code.co_firstlineno if each.source else None,
                    each.source.file == __file__,
                )
                for each in xb.lint(program).issues
            ]
            rows.append([code.co_name, stage, warnings, issues])
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
