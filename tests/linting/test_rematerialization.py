"""Full rematerializations: found where XLA's partitioner warns of one, and nowhere else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import xbuild as xb
from xbuild.testing import ContractError

ROOT = Path(__file__).parents[2]
HEAD = """HloModule step, num_partitions=4

ENTRY main {
  x = f32[4,8] parameter(0)
  g = f32[16,8] all-gather(x), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true
  t = f32[8,16] transpose(g), dimensions={1,0}
  id = u32[] partition-id()
  two = u32[] constant(2)
  start = u32[] multiply(id, two)
  zero = u32[] constant(0)
"""
SLICE = "ROOT s = f32[2,16] dynamic-slice(t, start, zero), dynamic_slice_sizes={2,16}"

# What follows the gather, and the bytes that are rematerialized.
CASES = {
    "split again": ([SLICE], 512),
    "used by another op": (["u = f32[8,16] exponential(t)", SLICE.replace("(t,", "(u,")], None),
    "returned as well": (
        [SLICE.removeprefix("ROOT "), "ROOT r = (f32[2,16], f32[16,8]) tuple(s, g)"],
        None,
    ),
    "sliced alike on all devices": ([SLICE.replace("start,", "zero,")], None),
    "split by half": (
        ["h = f16[8,16] convert(t)", SLICE.replace("f32", "f16").replace("(t,", "(h,")],
        512,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_only_an_array_that_is_gathered_to_be_split_counts(case: str) -> None:
    lines, size = CASES[case]
    text = HEAD + "".join(f"  {line}\n" for line in lines) + "}\n"
    if size is None:
        xb.testing.assert_no_rematerialization(text)
        return
    with pytest.raises(
        ContractError, match="1 array is gathered only to be split again\n  g: 512 B on each device, then"
    ):
        xb.testing.assert_no_rematerialization(text)
    xb.testing.assert_no_rematerialization(text, at_least=size + 1)


def test_a_gather_in_an_async_start_counts_as_one_in_place() -> None:
    gather = HEAD[HEAD.index("  g = ") : HEAD.index("  t = ")]
    wrapped = gather.replace("g = ", "ROOT w = ").replace("(x)", "(p)")
    wrapped = "\n\nwrapped {\n  p = f32[4,8] parameter(0)\n" + wrapped + "}\n"
    pair = (
        "  a = ((f32[4,8]), f32[16,8], u32[]) async-start(x), calls=wrapped\n"
        "  g = f32[16,8] async-done(a), calls=wrapped\n"
    )
    text = HEAD.replace(gather, pair).replace("\n\n", wrapped, 1) + f"  {SLICE}\n}}\n"
    with pytest.raises(ContractError, match="1 array is gathered only to be split again\n  w: 512 B on each device"):
        xb.testing.assert_no_rematerialization(text)
    kept = "ROOT r = (f32[2,16], f32[16,8]) tuple(s, g)"
    xb.testing.assert_no_rematerialization(text.replace(f"  {SLICE}\n", f"  {SLICE.removeprefix('ROOT ')}\n  {kept}\n"))


SENT = """HloModule step, num_partitions=4

add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}

ENTRY main {{
  x = f32[16,8] parameter(0)
  id = u32[] partition-id()
  number = u32[] constant(2)
  is_one = pred[] compare(id, number), direction={direction}
  mask = pred[16,8] broadcast(is_one), dimensions={{}}
  filled = f32[] constant({filled})
  others = f32[16,8] broadcast(filled), dimensions={{}}
  masked = f32[16,8] select(mask, x, others)
  g = f32[16,8] all-reduce(masked), channel_id=1, replica_groups=[1,4]<=[4], use_global_device_ids=true, to_apply=add
  four = u32[] constant(4)
  start = u32[] multiply(id, four)
  zero = u32[] constant(0)
  ROOT s = f32[4,8] dynamic-slice(g, start, zero), dynamic_slice_sizes={{4,8}}
}}
"""


def test_an_array_that_one_device_sends_to_all_counts_as_gathered() -> None:
    sent = SENT.format(direction="EQ", filled=0)
    with pytest.raises(ContractError, match="1 array is gathered only to be split again\n  g: 512 B on each device"):
        xb.testing.assert_no_rematerialization(sent)
    (found,) = xb.lint(sent, rules=["full_rematerialization"]).issues
    assert found.instructions == ("g", "s")
    assert found.fix.startswith("one device has the array")
    xb.testing.assert_no_rematerialization(SENT.format(direction="LT", filled=0))
    xb.testing.assert_no_rematerialization(SENT.format(direction="EQ", filled=1))


PROGRAM = """
import itertools, json
from tests.linting.jax_programs import count_warnings  # before JAX, whose number of devices it sets
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from xbuild.files.programs import program_in
from xbuild.linting.rematerialization import find_rematerializations

mesh = Mesh(np.array(jax.devices()).reshape(2, 2, 2), ("a", "b", "c"))
specs = [P(("a", "b"), "c"), P(None, ("b", "a")), P("b"), P(("b", "a", "c")), P(None, ("a", "b", "c")), P("a", "b")]
found = []
for one, other in itertools.permutations(specs, 2):
    source, target = NamedSharding(mesh, one), NamedSharding(mesh, other)
    step = jax.jit(lambda x: jnp.tanh(x).T * 3, in_shardings=source, out_shardings=target)
    lowered = step.lower(jax.ShapeDtypeStruct((64, 64), jnp.float32))
    compiled, warnings = count_warnings(lowered)
    found.append([str(one), str(other), warnings, len(find_rematerializations(program_in(compiled)))])
print(json.dumps(found))
"""


@pytest.mark.oracle
@pytest.mark.slow
def test_what_xla_warns_of_is_found_and_nothing_else() -> None:
    pytest.importorskip("jax")
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}  # it counts devices, too
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=True)
    rows = json.loads(done.stdout)
    assert sum(bool(warned) for *_, warned, _ in rows) >= 4
    assert [row for row in rows if bool(row[2]) != bool(row[3])] == []
