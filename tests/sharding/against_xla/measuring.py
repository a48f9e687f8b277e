"""The process that measures: lines of JSON, each a row of a program that takes the place of the one before it.

`python -m tests.sharding.against_xla.measuring [--exact] [--only-shardy] [--done=NAME ...] [WORD ...]`; JAX with its
eight devices is in this process alone.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from attrs import asdict, evolve

import xbuild as xb
from interpreter.engines import execute_here
from tests.sharding.cases import difference
from tests.sharding.jax_programs.listed import PROGRAMS, named
from tests.sharding.jax_programs.record import Program

from .rows import Row, ratio
from .texts import Partition, collectives, partition


def measured(program: Program, has_gspmd: bool) -> Iterator[Row]:
    """A row for each stage: a fault in case XLA ends the process, Shardy's figures and ours, then GSPMD's, too.

    Shardings of results that the program leaves open are those that XLA chooses with Shardy, for all three.
    """
    yield Row(program.name, program.mesh, "XLA ended its process")
    begun = time.perf_counter()
    mesh, arrays = program.device_mesh(), program.arrays()
    shardy = partition(program.jitted(mesh).lower(*program.shapes))
    specs = [each.spec for each in jax.tree.leaves(shardy.compiled.output_shardings)]
    wanted = _global(shardy.compiled(*_placed(program, mesh, arrays)))
    made = xb.shard.partition(program.module(specs))
    fault = difference(wanted, _parts(jax.tree.leaves(made.run(*arrays)))) or _fault_on_xla(made, arrays)
    ours = xb.cost(made.module)
    row = Row(
        program.name, program.mesh, fault, ours.link_bytes, shardy.cost.link_bytes, None, shardy.scattered,
        ratio(ours.flops, shardy.flops), collectives(ours), collectives(shardy.cost),
        seconds=time.perf_counter() - begun,
    )  # fmt: skip
    yield row
    if has_gspmd and (gspmd := _gspmd(program, mesh, specs, arrays, wanted)):
        yield evolve(row, gspmd=gspmd.cost.link_bytes, gspmd_collectives=collectives(gspmd.cost),
                     seconds=time.perf_counter() - begun)  # fmt: skip


def _placed(program: Program, mesh: Any, arrays: list[Any]) -> list[Any]:
    given = zip(arrays, program.in_specs, strict=True)
    return [jax.device_put(array, jax.sharding.NamedSharding(mesh, spec)) for array, spec in given]


def _gspmd(program: Program, mesh: Any, specs: list[Any], arrays: list[Any], wanted: Any) -> Partition | None:
    """The program partitioned by GSPMD, with the same shardings of results; None where that fails."""
    jax.config.update("jax_use_shardy_partitioner", False)
    try:
        found = partition(program.jitted(mesh, specs).lower(*program.shapes))
        given = _global(found.compiled(*_placed(program, mesh, arrays)))
    except Exception as error:
        print(f"{program.name}, GSPMD: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
        return None
    finally:
        jax.config.update("jax_use_shardy_partitioner", True)
    if told := difference(wanted, given):
        print(f"{program.name}, GSPMD: {told}", file=sys.stderr)
    return None if told else found


def _fault_on_xla(made: Any, arrays: list[Any]) -> str | None:
    """Where the partitioned program on XLA differs from the interpreter's run of it, device by device."""
    given = made.arguments(*arrays)
    found = execute_here(made.module, dict(enumerate(given)))
    wanted = xb.execute(made.module, given)
    told = difference(_parts(jax.tree.leaves(wanted)), _parts(jax.tree.leaves([found[n] for n in range(len(given))])))
    return f"on XLA: {told}" if told else None


def _global(results: Any) -> tuple[Any, ...]:
    return _parts(jax.tree.leaves(results))


def _parts(leaves: list[Any]) -> tuple[Any, ...]:
    """The arrays, a complex one as its two parts, whose size decides on the tolerance."""
    arrays = [np.asarray(each) for each in leaves]
    return tuple(part for a in arrays for part in ((a.real, a.imag) if a.dtype.kind == "c" else (a,)))


def _guarded(program: Program, has_gspmd: bool) -> Iterator[Row]:
    try:
        yield from measured(program, has_gspmd)
    except Exception as error:
        yield Row(program.name, program.mesh, f"{type(error).__name__}: {error}"[:300])


def main(arguments: list[str]) -> None:
    words = [each for each in arguments if not each.startswith("--")]
    done = {each.removeprefix("--done=") for each in arguments if each.startswith("--done=")}
    chosen = [each for each in PROGRAMS if each.name in words] if "--exact" in arguments else named(*words)
    for program in chosen:
        if program.name not in done:
            for row in _guarded(program, "--only-shardy" not in arguments):
                print(json.dumps(asdict(row)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
