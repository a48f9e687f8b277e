"""What `xbuild explain` says about JAX's functions, against the HLO that JAX writes for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xbuild.reference.concepts import concepts

jax = pytest.importorskip("jax")
X = np.arange(12, dtype=np.float32).reshape(3, 4)
ROWS = np.int32([0, 2])

BECOMES: list[tuple[str, Callable[..., Any], tuple[Any, ...], str]] = [
    ("where", lambda m, x, y: jax.numpy.where(m, x, y), (X > 3, X, X), "select"),
    ("clip", lambda x: jax.lax.clamp(np.float32(1), x, np.float32(3)), (X,), "clamp"),
    ("one_hot", lambda i: jax.nn.one_hot(i, 4), (ROWS,), "compare iota"),
    ("take", lambda x, i: jax.numpy.take(x, i, axis=0), (X, ROWS), "gather"),
    ("cumsum", lambda x: jax.numpy.cumsum(x, axis=1), (X,), "reduce-window"),
    ("argmax", lambda x: jax.numpy.argmax(x, axis=1), (X,), "reduce"),
    ("tril", lambda x: jax.numpy.tril(x), (X,), "select compare iota"),
    ("softmax", lambda x: jax.nn.softmax(x), (X,), "reduce broadcast subtract exponential divide"),
    ("relu", lambda x: jax.nn.relu(x), (X,), "maximum"),
    ("gelu", lambda x: jax.nn.gelu(x), (X,), "tanh"),
    ("sigmoid", lambda x: jax.nn.sigmoid(x), (X,), "divide exponential negate"),
    ("silu", lambda x: jax.nn.silu(x), (X,), "multiply divide exponential negate"),
    ("mean", lambda x: jax.numpy.mean(x), (X,), "reduce divide"),
    ("max", lambda x: jax.numpy.max(x), (X,), "reduce maximum"),
    ("prod", lambda x: jax.numpy.prod(x), (X,), "reduce multiply"),
    ("matmul", lambda x, y: x @ y, (X, X.T), "dot"),
    ("einsum", lambda x: jax.numpy.einsum("ij,kj->ik", x, x), (X,), "dot"),
    ("vmap", lambda x: jax.vmap(jax.numpy.dot)(x, x), (X,), "dot"),
    ("scan", lambda x: jax.lax.scan(lambda c, a: (c + a, c), x[0], x), (X,), "while tuple"),
    ("fori_loop", lambda x: jax.lax.fori_loop(0, 3, lambda n, c: c + 1, x), (X,), "while tuple"),
    ("while_loop", lambda x: jax.lax.while_loop(lambda c: c[0, 0] < 3, lambda c: c + 1, x), (X,), "while"),
    ("cond", lambda x: jax.lax.cond(x[0, 0] > 0, lambda x: x + 1, lambda x: x * 2, x), (X,), "conditional"),
]

_OPCODE = re.compile(r"^\s*(?:ROOT )?\S+ = (?:\(.*?\)|\S+) ([a-z][a-z-]*)\(", re.MULTILINE)


def opcodes(function: Callable[..., Any], *arguments: Any) -> set[str]:
    """The opcodes of the HLO that JAX writes for a function."""
    return {*_OPCODE.findall(jax.jit(function).lower(*arguments).compiler_ir("hlo").as_hlo_text())}


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "function", "arguments", "expected"), BECOMES, ids=[name for name, *_ in BECOMES])
def test_functions_of_jax_become_these_ops(
    name: str, function: Callable[..., Any], arguments: tuple[Any, ...], expected: str
) -> None:
    assert name in concepts()
    assert {*expected.split()} <= opcodes(function, *arguments)


COLLECTIVES = [
    ("psum", lambda x: jax.lax.psum(x, "i"), "all-reduce"),
    ("pmax", lambda x: jax.lax.pmax(x, "i"), "all-reduce"),
    ("pmin", lambda x: jax.lax.pmin(x, "i"), "all-reduce"),
    ("pmean", lambda x: jax.lax.pmean(x, "i"), "all-reduce divide"),
    ("ppermute", lambda x: jax.lax.ppermute(x, "i", [(0, 1)]), "collective-permute"),
    ("psum_scatter", lambda x: jax.lax.psum_scatter(x, "i", tiled=True), "reduce-scatter"),
]


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "function", "expected"), COLLECTIVES, ids=[name for name, *_ in COLLECTIVES])
def test_collectives_of_jax_become_these_ops(name: str, function: Callable[..., Any], expected: str) -> None:
    assert name in concepts()
    mesh = jax.make_mesh((2,), ("i",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices("cpu")[:2])
    cut = jax.sharding.PartitionSpec("i")
    mapped = jax.shard_map(function, mesh=mesh, in_specs=cut, out_specs=cut, check_vma=False)
    assert {*expected.split()} <= opcodes(mapped, np.arange(4, dtype=np.float32))


def idle_fraction(stages: int, batches: int, order: Callable[[int], list[str]]) -> float:
    """The fraction of the time in which the stages of a pipeline are idle, with items of one unit in these orders."""
    done: dict[tuple[str, int], int] = {}
    queues = [order(stage) for stage in range(stages)]
    now = 0
    while any(queues):
        started = []
        for stage, queue in enumerate(queues):
            if not queue:
                continue
            before = stage - 1 if queue[0][0] == "F" else stage + 1
            ready = (queue[0][0] == "F" and before < 0) or (queue[0][0] == "B" and before == stages)
            if ready or done.get((queue[0], before), now + 1) <= now:
                started.append((queue.pop(0), stage))
        now += 1
        done |= dict.fromkeys(started, now)
    return 1 - 2 * batches / now


@pytest.mark.parametrize(("stages", "batches"), [(2, 3), (4, 12), (3, 7)])
def test_the_bubble_of_a_pipeline(stages: int, batches: int) -> None:
    """Both orders have the same bubble; in 1F1B, the first stage holds as many micro-batches as there are stages."""

    def forward_first(stage: int) -> list[str]:
        return [f"{kind}{batch}" for kind in "FB" for batch in range(batches)]

    def one_by_one(stage: int) -> list[str]:
        ahead = stages - stage - 1
        forward, backward = [f"F{n}" for n in range(batches)], [f"B{n}" for n in range(batches)]
        mixed = [item for pair in zip(forward[ahead:], backward, strict=False) for item in pair]
        return [*forward[:ahead], *mixed, *backward[batches - ahead :]]

    expected = (stages - 1) / (batches + stages - 1)
    assert idle_fraction(stages, batches, forward_first) == pytest.approx(expected)
    assert idle_fraction(stages, batches, one_by_one) == pytest.approx(expected)
    for stage, most in ((0, min(stages, batches)), (stages - 1, 1)):
        order = one_by_one(stage)
        assert most_held(order) == most
    assert most_held(forward_first(0)) == batches
    if (stages, batches) == (2, 3):
        assert ", ".join(one_by_one(0)) in " ".join(concepts()["1f1b"].split())


def most_held(order: list[str]) -> int:
    held = [sum(1 if item[0] == "F" else -1 for item in order[: count + 1]) for count in range(len(order))]
    return max(held)
