"""Programs of JAX and what a partitioner makes of them, judged with faults planted in the partitioned ones.

The partitioner is `xb.shard.partition`, or XLA, whose text is optimised and has fusions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

import xbuild as xb
from interpreter.fields.draws import flat_arrays, float_array
from tests.equivalence.mutations import Mutant, some_mutants
from tests.equivalence.planted import Judged, apart

ROOT = Path(__file__).parents[2]
COMPILED = "--compiled"


@frozen(slots=False)
class Partition:
    """A global program with shardings, as HLO text, and what XLA compiles from it; "" for what xbuild makes of it."""

    name: str
    text: str
    compiled: str = ""

    @cached_property
    def whole(self) -> xb.Module:
        return xb.parse_hlo(self.text)

    @cached_property
    def cut(self) -> Any:
        cut = xb.shard.partition(self.whole)
        return evolve(cut, module=xb.parse_hlo(self.compiled)) if self.compiled else cut

    @cached_property
    def arrays(self) -> list[list[Any]]:
        """Arguments of the global program, several times."""
        random = np.random.default_rng(0)
        shapes: list[Any] = [each.shape for each in self.whole.entry.parameters]
        return [[float_array(shape, random) for shape in shapes] for _ in range(3)]

    @cached_property
    def wanted(self) -> list[list[Any]]:
        module = evolve(self.whole, num_replicas=1, num_partitions=1)
        return [flat_arrays(xb.execute(module, [each])[0], self.whole.entry.root.shape) for each in self.arrays]

    def verdict(self, module: xb.Module | None = None) -> Any:
        """The verdict on the partitioned program, or on another one in its place."""
        return xb.equivalent(self.whole, self.cut if module is None else evolve(self.cut, module=module))

    def distance(self, module: xb.Module) -> float:
        """How far results are from those of the global program, by the size of the numbers."""
        cut = evolve(self.cut, module=module)
        with np.errstate(all="ignore"):
            rows = [flat_arrays(cut.run(*each), self.whole.entry.root.shape) for each in self.arrays]
        return max(max(map(apart, *pair), default=0.0) for pair in zip(self.wanted, rows, strict=True))


@frozen(eq=False)
class Named:
    """A mutant, the verdict, and how the instruction that it names stands to the changed one."""

    judged: Judged
    place: str = field()

    @place.default
    def _placed(self) -> str:
        difference = self.judged.verdict.difference
        if difference is None:
            return "nothing"
        return place_of(self.judged.mutant, difference.other, difference.value)


def place_of(mutant: Mutant, named: Any, value: Any) -> str:
    """Where the named instruction, or the value of the global program, stands to the changed one."""
    changed = next((each for each in _instructions(mutant.module) if each.name == mutant.name), None)
    if changed is None:
        return "another"
    if named is not None:
        if named.name == mutant.name or named.name.startswith(f"{mutant.name}."):
            return "the changed one"
        for distance, several in enumerate(_used(mutant.module, named)):
            if changed in several:
                return "its user, behind what moves elements" if distance else "its user"
        if named in changed.operands:
            return "its operand"
    return "the global value" if value is not None and _is_of(mutant.name, value.name) else "another"


def _used(module: xb.Module, named: Any) -> Iterator[list[Any]]:
    """The operands of an instruction, then those behind ops that move elements, across fusions and calls."""
    callers = {called: each for each in _instructions(module) for called in each.called}
    homes = {each: computation for computation in module.computations for each in computation.instructions}
    found, passed = [*named.operands, *(each.root for each in named.called)], set[Any]()
    while found:
        yield found
        passed.update(found)
        behind = [each for value in found for each in _behind(value, callers.get(homes[value]))]
        found = [each for each in behind if each not in passed]


def _behind(value: Any, caller: Any) -> Sequence[Any]:
    """What an op arranges, a call returns, or a caller passes."""
    if value.opcode in ("fusion", "call"):
        return [value.called[0].root]
    if value.opcode == "parameter":
        is_passed = caller is not None and caller.opcode in ("fusion", "call")
        return [caller.operands[value.attributes.number]] if is_passed else []
    return value.operands if value.opcode in ("bitcast", "broadcast", "copy", "reshape", "transpose") else []


def _is_of(local: str, whole: str) -> bool:
    """Whether the partitioner has made a name of that of a global value."""
    return local == whole or local.startswith(f"{whole}.")


def _instructions(module: xb.Module) -> Iterator[Any]:
    for computation in module.computations:
        yield from computation.instructions


def judged(partition: Partition, count: int, seed: int = 0) -> Iterator[Named]:
    """So many mutants of the partitioned program."""
    for mutant in some_mutants(partition.cut.module, count, seed):
        verdict = partition.verdict(mutant.module)
        yield Named(Judged(partition.name, mutant, verdict, partition.distance(mutant.module) if verdict else 0.0))


def partitions(*words: str, by_xla: bool = False) -> list[Partition]:
    """The programs whose names contain one of the words, traced, or also compiled, by JAX in a process of its own."""
    flags = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.equivalence.partitions", *[COMPILED][: int(by_xla)], *words],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **flags},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return [Partition(*row) for row in json.loads(done.stdout.splitlines()[-1])]


def main(words: Sequence[str]) -> None:
    """Print a JSON list of names and HLO texts."""
    from tests.sharding.jax_programs.listed import named

    row = compiled if words[:1] == [COMPILED] else traced
    print(json.dumps([row(each) for each in named(*words[int(row is compiled) :])]))


def traced(program: Any) -> list[str]:
    """The name and the global text of a program."""
    return [program.name, program.module().to_hlo()]


def compiled(program: Any) -> list[str]:
    """The name, the global text with the shardings of results that XLA chose, and the text that XLA compiled."""
    import jax

    made = program.jitted(program.device_mesh()).lower(*program.shapes).compile()
    specs = [each.spec for each in jax.tree.leaves(made.output_shardings)]
    return [f"{program.name}, by XLA", program.module(specs).to_hlo(), made.as_text()]


if __name__ == "__main__":
    main(sys.argv[1:])
