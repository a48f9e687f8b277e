"""The pictures of the gallery by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import xbuild as xb
from examples import axpy, pipeline, ring
from examples.digits import refusal
from examples.gallery import deadlocks, programs, replicated
from examples.hangs.catalog import STORIES
from examples.hangs.story import Told
from examples.sharding import block

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"


def _svg(thing: Any, **view: Any) -> str:
    return str(xb.viz(thing, "svg", **view))


def _with_bytes(program: xb.Module, **view: Any) -> str:
    """Each instruction with the bytes of its result."""
    everything = (each for computation in program.computations for each in computation.instructions)
    arrays = [each for each in everything if isinstance(each.shape, xb.Shape)]
    sizes = {each: each.shape.size * each.shape.dtype.dtype.itemsize for each in arrays}
    return _svg(program, data=sizes, data_name="bytes of the result", **view)


def _story(told: Told) -> Callable[[], str]:
    """The picture of the verdict on the broken program of a story."""
    return lambda: _svg(told.check(told.broken()))


PICTURES: dict[str, Callable[[], str]] = {
    "example": lambda: _svg(programs.example()),
    "axpy": lambda: _svg(axpy.axpy),
    "axpy_light": lambda: _svg(axpy.axpy, theme="light"),
    "axpy_dark": lambda: _svg(axpy.axpy, theme="dark"),
    "ring": lambda: _svg(ring.ring_all_reduce(2)),
    "loop": lambda: _svg(programs.loop()),
    "groups": lambda: _svg(programs.groups()),
    "digits_step": lambda: _svg(refusal.train_step(4)),
    "pipeline": lambda: _svg(pipeline.program()),
    "attention": lambda: _svg(programs.attention()),
    "tower": lambda: _svg(programs.tower(6), max_nodes=60),
    "tower_overview": lambda: _svg(programs.tower(200), max_nodes=100),
    "tower_around": lambda: _svg(programs.tower(6), around="w3", radius=2),
    "digits_bytes": lambda: _with_bytes(refusal.train_step(4)),
    "tower_bytes": lambda: _with_bytes(programs.tower(6), max_nodes=60),
    "tower_collectives": lambda: _svg(programs.tower(6), only="collectives"),
    "ok_ring": lambda: _svg(xb.check(ring.ring_all_reduce(3))),
    "ok_pipeline": lambda: _svg(xb.check(pipeline.program())),
    "ok_groups": lambda: _svg(xb.check(programs.groups())),
    "deadlock_send_first": lambda: _svg(deadlocks.both_send_first()),
    "deadlock_wait_first": lambda: _svg(deadlocks.both_wait_first()),
    "deadlock_many": lambda: _svg(deadlocks.ring_of_many()),
    "deadlock_swapped": lambda: _svg(deadlocks.swapped_collectives()),
    "deadlock_tokens": lambda: _svg(deadlocks.crossed_tokens()),
    "error_shapes": lambda: _svg(deadlocks.unlike_shapes()),
    "partition_layer": lambda: _svg(xb.shard.partition(programs.layer())),
    "partition_block": lambda: _svg(xb.shard.partition(block.tensor())),
    "tiles_uneven": lambda: _svg(xb.shard.tiling(programs.uneven(), "parameter.1")),
    "tiles_heads": lambda: _svg(xb.shard.tiling(block.tensor(), "heads")),
    "tpu_step": lambda: _svg(replicated.program().module),
    "tpu_refused": lambda: _svg(replicated.refused()),
    "depends_loop": lambda: _svg(deadlocks.loop_of_unknown_length()),
    **{f"hang_{told.name}": _story(told) for told in STORIES},
}
TEXTS: dict[str, Callable[[], str]] = {
    "pipeline.dot": lambda: str(xb.viz(pipeline.program(), "dot")),
    "loop.mmd": lambda: str(xb.viz(programs.loop(), "mermaid")),
}
