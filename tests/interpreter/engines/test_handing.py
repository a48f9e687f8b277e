"""What engines are handed means the same there: groups, pairs and shardings, read back by real XLA in a child."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import execute
from interpreter.engines import execute_on_xla
from interpreter.engines.programs import as_engine_reads
from xbuild.properties.device_groups import groups_of, pairs_of
from xbuild.sharding.hlo_text import tiled_text
from xbuild.sharding.stated_shardings import sharding_of

SPELLINGS = (
    "{{0,1},{2,3}}", "{{0,2,1,3}}", "[2,2]<=[4]", "[2,2]<=[2,2]T(1,0)", "[1,4]<=[4]", "mesh['a'=4,'b'=1] {'a'}",
    "mesh['a'=1,'b'=4] {'b'}", "mesh['a'=2,'b'=2] {'b'}", "mesh['a'=2,'b'=2] {'a'}", "mesh['b'=2,'a'=2] {'b','a'}",
    "mesh['a'=4] {'a':(1)2}", "mesh['a'=4] {'a':(2)2}", "mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}",
    "mesh['a'=2,'b'=2], device_ids=(3,1,0,2) {'b'}",
)  # fmt: skip
PAIRS = "{{0,1},{1,2},{2,3},{3,0}}", "{{0,2}}", "{{3,3},{1,0}}"
SHARDINGS = (
    "{replicated}", "{devices=[4,1]<=[4]}", "{devices=[2,2]<=[2,2]T(1,0)}",
    "{devices=[2,1,2]0,3,1,2 last_tile_dim_replicate}",
    "{mesh['a'=4], [{'a'}, {}]}", "{mesh['a'=2,'b'=2], [{'b'}, {'a'}]}", "{mesh['a'=4], [{'a':(1)2}, {'a':(2)2}]}",
    "{mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)), [{'b'}, {}]}", "{mesh['a'=2,'b'=2], [{}, {'b', ?}]}",
)  # fmt: skip
HEAD = "HloModule m, num_partitions=4\nadd { p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] add(p, q) }\n"


def _collectives(spelling: str, number: int) -> list[str]:
    """Every collective that has groups, on channels of its own."""
    one = f"r = f32[8] all-reduce(x), channel_id=1, replica_groups={spelling}, to_apply=add"
    size = len(xb.parse_hlo(_text([one])).entry["r"].attributes.replica_groups[0])
    lines = (
        "r{n} = f32[8] all-reduce(x), {g}, use_global_device_ids=true, to_apply=add",
        f"g{{n}} = f32[{8 * size}] all-gather(x), {{g}}, use_global_device_ids=true, dimensions={{{{0}}}}",
        f"k{{n}} = f32[{8 // size}] reduce-scatter(x), {{g}}, use_global_device_ids=true, dimensions={{{{0}}}},"
        " to_apply=add",
        "t{n} = f32[8] all-to-all(x), {g}, dimensions={{0}}",
        "b{n} = f32[8] collective-broadcast(x), {g}",
    )
    return [
        line.format(n=number, g=f"channel_id={10 * number + place + 1}, replica_groups={spelling}")
        for place, line in enumerate(lines)
    ]


def _text(lines: list[str], parameter: str = "x = f32[8] parameter(0)") -> str:
    body = "\n  ".join([parameter, *lines])
    return f"{HEAD}ENTRY e {{\n  {body}\n  ROOT n = f32[8] negate(x)\n}}"


_READ = """
import json, sys
import numpy as np
from jaxlib import _hlo, _jax
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir

def groups(operation):
    for region in operation.regions:
        for block in region.blocks:
            for each in block.operations:
                for key in ("replica_groups", "source_target_pairs"):
                    if key in each.operation.attributes:
                        yield np.array(ir.DenseIntElementsAttr(each.operation.attributes[key])).tolist()
                yield from groups(each.operation)

for line in sys.stdin:
    module = _hlo.hlo_module_from_text(json.loads(line))
    shardings = [part.split("sharding=")[1].strip() for part in module.to_string().splitlines() if "sharding=" in part]
    program = _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
    with mlir.make_ir_context():
        lowered = ir.Module.parse(program)
        print(json.dumps([list(groups(lowered.operation)), shardings, "sdy.mesh" in str(lowered)]), flush=True)
"""


def _read_by_xla(texts: list[str]) -> list[Any]:
    """For each text the groups and pairs of its lowered form, its shardings, and whether meshes are left in it."""
    lines = "".join(f"{json.dumps(text)}\n" for text in texts)
    done = subprocess.run(
        [sys.executable, "-c", _READ], input=lines, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def _named(module: xb.Module) -> list[Any]:
    """The groups and pairs of a program, as lists of device numbers, in its order."""
    found = []
    for each in module.entry.instructions:
        if hasattr(each.attributes, "source_target_pairs"):
            found.append([[*pair] for pair in pairs_of(each, 1, 4)])
        elif hasattr(each.attributes, "replica_groups"):
            found.append([[*group] for group in groups_of(each, 1, 4)])
    return found


@pytest.mark.oracle
def test_groups_and_pairs_are_read_back_as_they_are() -> None:
    pytest.importorskip("jaxlib")
    texts = [_text(_collectives(each, 1)) for each in SPELLINGS]
    texts += [_text(_collectives(each, 1) + _collectives(other, 2)) for each, other in pairwise(SPELLINGS)]
    texts += [_text([f"c = f32[8] collective-permute(x), channel_id=1, source_target_pairs={each}"]) for each in PAIRS]
    modules = [xb.parse_hlo(each) for each in texts]
    came = _read_by_xla([as_engine_reads(each).to_hlo() for each in modules])
    for module, (groups, _, has_meshes) in zip(modules, came, strict=True):
        assert groups == _named(module), module
        assert not has_meshes


@pytest.mark.oracle
def test_shardings_are_read_back_as_they_are() -> None:
    pytest.importorskip("jaxlib")
    texts = [
        f"HloModule m, num_partitions=4\nENTRY e {{\n  ROOT x = f32[8,8] parameter(0), sharding={each}\n}}"
        for each in SHARDINGS
    ]
    modules = [xb.parse_hlo(each) for each in texts]
    for module, (_, (text,), _) in zip(
        modules, _read_by_xla([as_engine_reads(each).to_hlo() for each in modules]), strict=True
    ):
        again = xb.parse_hlo(
            f"HloModule m, num_partitions=4\nENTRY e {{\n  ROOT x = f32[8,8] parameter(0), sharding={text}\n}}"
        )
        assert _tiles(again) == _tiles(module), text


def _sharded(text: str) -> xb.Module:
    return xb.parse_hlo(
        f"HloModule m, num_partitions=4\nENTRY e {{\n  ROOT x = f32[8,8] parameter(0), sharding={text}\n}}"
    )


def _tiles(module: xb.Module) -> Any:
    found = sharding_of(module.entry.root)
    return tiled_text(found, 2) if isinstance(found, xb.shard.Sharding) else found


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_what_is_handed_on_lists_its_groups(spelling: str) -> None:
    module = xb.parse_hlo(_text(_collectives(spelling, 1)))
    text = as_engine_reads(module).to_hlo()
    assert "replica_groups=mesh" not in text
    assert "<=" not in text
    assert _named(xb.parse_hlo(text)) == _named(module)
    assert spelling in module.to_hlo()  # what is printed elsewhere stays as it was written


TWO_MESHES = """HloModule t, num_partitions=4
ENTRY main {
  x = f32[4,8] parameter(0)
  g = f32[16,8] all-gather(x), channel_id=1, replica_groups=FIRST, dimensions={0}, use_global_device_ids=true
  ROOT a = f32[16,8] all-to-all(g), channel_id=2, replica_groups=SECOND, dimensions={0}
}"""


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("mesh['u'=4,'v'=1] {'u'}", "mesh['u'=1,'v'=4] {'v'}"),
        ("{{0,1,2,3}}", "{{0,1,2,3}}"),
        ("mesh['u'=2,'v'=2] {'v','u'}", "[1,4]<=[2,2]T(1,0)"),
    ],
)
def test_groups_over_two_meshes_give_what_the_interpreter_gives(first: str, second: str) -> None:
    pytest.importorskip("jaxlib")
    module = xb.parse_hlo(TWO_MESHES.replace("FIRST", first).replace("SECOND", second))
    rows = [[np.arange(32, dtype=np.float32).reshape(4, 8) + 100 * device] for device in range(4)]
    ours, theirs = execute(module, rows), execute_on_xla(module, rows)
    assert [each.tolist() for each in theirs] == [each.tolist() for each in ours]
