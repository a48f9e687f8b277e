"""Planted faults in partitioned programs: each is found against the global program, and each right one is accepted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import examples.sharded_block as block
import xbuild as xb
from examples import transformer_step
from tests.equivalence.mutations import OPERATORS, Text, mutants
from tests.equivalence.planted import Changed, judged
from tests.equivalence.programs import PAIRS, Pair

SMALL = [pair for pair in PAIRS if "block" not in pair.name]
BY_NAME = {pair.name: pair for pair in PAIRS}


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_right_partition_is_accepted(pair: Pair) -> None:
    found = xb.equivalent(pair.whole, pair.cut)
    assert found, str(found)
    assert found.log2_error < -60


@pytest.mark.parametrize("pair", SMALL, ids=lambda pair: pair.name)
def test_planted_faults_are_found(pair: Pair) -> None:
    all_of_them = list(judged(pair))
    assert len(all_of_them) >= 5
    missed = [f"{each.mutant.operator}: {each.mutant.line}" for each in all_of_them if each.is_missed]
    assert missed == []


def test_each_operator_plants_a_fault() -> None:
    used = {mutant.operator for pair in SMALL for mutant in mutants(pair.cut.module)}
    assert OPERATORS.keys() - used == set()


def changed(pair: Pair, old: str, new: str) -> Changed:
    """The program with one text in place of another."""
    text = pair.cut.module.to_hlo()
    assert text.count(old) == 1
    return Changed(xb.parse_hlo(text.replace(old, new)), pair.cut.mesh, pair.cut.in_specs, pair.cut.out_specs)


def test_a_missing_sum_is_named_with_its_line() -> None:
    pair = BY_NAME["tensor_parallel"]
    text = Text.of(pair.cut.module)
    (line,) = (each for each in text.instructions.values() if each.opcode == "all-reduce")
    found = xb.equivalent(pair.whole, changed(pair, line.spelled(), line.spelled(opcode="copy", rest="")))
    assert found.kind == "different"
    assert found.difference is not None
    value, other = found.difference.value, found.difference.other
    assert value is not None
    assert value.opcode == "dot"
    assert value.source is not None
    assert value.source.file.endswith("programs.py")
    assert other is not None
    assert (other.opcode, other.name) == ("copy", line.name)
    assert "the first value of the first program that the second program lacks is dot" in str(found)
    assert "the second program diverges at copy" in str(found)


def test_a_wrong_neighbour_is_told_with_device_and_element() -> None:
    pair = BY_NAME["stencil"]
    text = pair.cut.module.to_hlo()
    pairs = "{{0,1},{1,2},{2,3}}"
    first = text.index(f"source_target_pairs={pairs}")
    other = text[:first] + text[first:].replace(pairs, "{{0,1},{1,2}}", 1)
    found = xb.equivalent(
        pair.whole, Changed(xb.parse_hlo(other), pair.cut.mesh, pair.cut.in_specs, pair.cut.out_specs)
    )
    assert found.kind == "different"
    assert found.difference is not None
    assert (found.difference.device, found.difference.element) == (2, (2, 0))


def test_a_training_step_that_leaves_a_device_out(monkeypatch: pytest.MonkeyPatch) -> None:
    step, mesh, specs = transformer_step.step(), transformer_step.MESH, tuple(block.SPECS.values())
    monkeypatch.setattr(transformer_step, "MESH", xb.Mesh(batch=1, model=1))
    whole = transformer_step.step()
    monkeypatch.undo()
    results = (xb.P(), *specs[2:])
    assert xb.equivalent(whole, Changed(step, mesh, specs, results))
    found = xb.equivalent(whole, Changed(transformer_step.left_out(), mesh, specs, results))
    assert found.kind == "different"
    assert found.difference is not None
    assert found.difference.value is not None
    assert found.difference.value.name == "dot.92.vjp.1"  # whose sum, pvary.14.vjp, the fault is planted in


def test_the_example_of_the_document() -> None:
    text = (Path(__file__).parents[2] / "docs" / "equivalence.md").read_text()
    found = re.search(r"```python\n(.*?)```.*```\n(different: .*?)```", text, re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(found[1], names)
    cut = names["cut"]
    alone = re.sub(r"all-reduce\((\S+)\),[^\n]*", r"copy(\1)", cut.module.to_hlo())
    other = Changed(xb.parse_hlo(alone), cut.mesh, cut.in_specs, cut.out_specs)
    found_now = xb.equivalent(names["whole"].module, other, names=("layer.hlo", "cut.hlo"))
    told = " ".join(str(found_now).split())  # rows are wrapped
    assert all(line.partition(" (")[0].strip() in told for line in found[2].splitlines() if line.strip())


def test_what_the_check_refuses_is_different() -> None:
    whole = xb.computation(xb.f32[4])(lambda x: x + x)
    found = xb.equivalent(whole, xb.parse_hlo(ALONE), inputs=[None], outputs=[None])
    assert found.kind == "different"
    assert "the check refuses the other program: deadlock" in found.reason


ALONE = """HloModule alone, num_partitions=2
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
meet {
  x = f32[4] parameter(0)
  ROOT all = f32[4] all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=sum
}
stay {
  x = f32[4] parameter(0)
  ROOT own = f32[4] add(x, x)
}
ENTRY main {
  x = f32[4] parameter(0)
  here = u32[] partition-id()
  none = u32[] constant(0)
  first = pred[] compare(here, none), direction=EQ
  ROOT found = f32[4] conditional(first, x, x), true_computation=meet, false_computation=stay
}
"""
