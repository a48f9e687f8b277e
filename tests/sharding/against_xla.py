"""Comparison with XLA's partitioner: programs of JAX partitioned by both, their results, and the bytes devices send.

`python -m tests.sharding.against_xla [WORD ...]` prints the table of the programs whose names contain one of the words.
With `--rows` it prints JSON, and JAX with its eight devices is in this process alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

import xbuild as xb
from interpreter.engines import execute_here

from .cases import difference
from .propagation.jax_programs import _programs

ROOT = Path(__file__).parents[2]


@frozen
class Row:
    """A program, its mesh, what is wrong, and for both partitioners the bytes a device sends and the collectives."""

    name: str
    mesh: dict[str, int]
    fault: str | None
    ours: float = 0
    xla: float = 0
    our_collectives: str = ""
    xla_collectives: str = ""

    @property
    def ratio(self) -> float:
        """Our bytes over XLA's: 1 where neither sends anything."""
        return self.ours / self.xla if self.xla else 1.0 if not self.ours else float("inf")


def rows(*words: str) -> list[Row]:
    """The rows of the programs whose names contain one of the words, made in a process of its own."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.sharding.against_xla", "--rows", *words],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return [Row(**each) for each in json.loads(done.stdout.splitlines()[-1])]


def _row(name: str, function: Any, shapes: Any, axes: dict[str, int], specs: Any) -> Row:
    import jax
    import numpy as np

    axes = _on_eight(shapes, axes, specs)
    count = int(np.prod(list(axes.values())))
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:count]).reshape(tuple(axes.values())), tuple(axes))
    placed = [jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*_plain(spec))) for spec in specs]
    jitted = jax.jit(function, in_shardings=tuple(placed), keep_unused=True)
    arrays = [_array(shape) for shape in shapes]
    compiled = jitted.lower(*shapes).compile()
    made = xb.shard.partition(xb.from_jax(jitted, *shapes, partition=False))
    wanted = jax.tree.leaves(compiled(*(jax.device_put(*pair) for pair in zip(arrays, placed, strict=True))))
    found = jax.tree.leaves(made.run(*arrays))
    fault = difference(_parts(wanted), _parts(found)) or _fault_on_xla(made, arrays)
    ours, theirs = xb.cost(made.module), xb.cost(xb.parse_hlo(compiled.as_text()))
    return Row(name, axes, fault, ours.link_bytes, theirs.link_bytes, _collectives(ours), _collectives(theirs))


def _fault_on_xla(made: Any, arrays: list[Any]) -> str | None:
    """Where the partitioned program on XLA differs from the interpreter's run of it, device by device."""
    import jax

    given = made.arguments(*arrays)
    found = execute_here(made.module, dict(enumerate(given)))
    wanted = xb.execute(made.module, given)
    told = difference(_parts(jax.tree.leaves(wanted)), _parts(jax.tree.leaves([found[n] for n in range(len(given))])))
    return f"on XLA: {told}" if told else None


def _parts(leaves: list[Any]) -> tuple[Any, ...]:
    """The arrays, a complex one as its two parts, whose size decides on the tolerance."""
    import numpy as np

    arrays = [np.asarray(each) for each in leaves]
    return tuple(part for a in arrays for part in ((a.real, a.imag) if a.dtype.kind == "c" else (a,)))


def _on_eight(shapes: Any, axes: dict[str, int], specs: Any) -> dict[str, int]:
    """A mesh of four devices made one of eight by its first axis, where all arguments can be cut so."""
    first, size = next(iter(axes.items()))
    larger = {**axes, first: 2 * size}
    total = 1
    for each in axes.values():
        total *= each
    pairs = [zip(shape.shape, _plain(spec), strict=False) for shape, spec in zip(shapes, specs, strict=True)]
    cuts = [cut for pair in pairs for cut in pair]
    fits = all(extent % larger[name] == 0 for extent, name in cuts if name)
    return larger if total == 4 and fits else axes


def _plain(spec: Any) -> list[Any]:
    return list(spec or [])


def _array(shape: Any) -> Any:
    import numpy as np

    chance = np.random.default_rng(0)
    if np.dtype(shape.dtype).kind in "iu":
        return chance.integers(0, 8, shape.shape).astype(shape.dtype)
    if len(shape.shape) == 3 and shape.shape[1] == shape.shape[2]:  # cholesky wants positive definite matrices
        return (np.eye(shape.shape[1]) * 4 + 0.1).astype(shape.dtype) * np.ones(shape.shape, shape.dtype)
    return chance.normal(size=shape.shape).astype(shape.dtype)


def _collectives(cost: Any) -> str:
    counted = Counter(row.op for row in cost.collectives)
    return ", ".join(f"{count} {opcode}" for opcode, count in sorted(counted.items()))


def _guarded(program: Any) -> Row:
    try:
        return _row(*program)
    except Exception as error:
        return Row(program[0], program[3], f"{type(error).__name__}: {error}"[:300])


def table(found: list[Row]) -> str:
    """The rows as a table in Markdown, those with a fault last."""
    titles = ("program", "mesh", "bytes here", "bytes of XLA", "ratio", "collectives here", "of XLA")
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for row in sorted(found, key=lambda each: each.fault is not None):
        mesh = " x ".join(f"{name} {size}" for name, size in row.mesh.items())
        both = f"{row.our_collectives or 'none'} | {row.xla_collectives or 'none'}"
        told = f"{row.ours:.0f} | {row.xla:.0f} | {row.ratio:.2f} | {both}" if row.fault is None else repr(row.fault)
        lines.append(f"| {row.name} | {mesh} | {told} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    words = [each for each in arguments if each != "--rows"]
    if "--rows" in arguments:
        programs = [each for each in _programs() if not words or any(word in each[0] for word in words)]
        print(json.dumps([asdict(_guarded(each)) for each in programs]))
        return 0
    found = rows(*words)
    print(table(found))
    right = [each for each in found if each.fault is None]
    print(f"{len(right)} of {len(found)} compared; never above {sum(each.ratio <= 1 for each in right)}, "
          f"at most 1.1x {sum(each.ratio <= 1.1 for each in right)}")  # fmt: skip
    return 0 if len(right) == len(found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
