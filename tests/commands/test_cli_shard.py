"""`xbuild shard`: the table of shardings with causes, explanations, text and JSON; and the page on shardings runs."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import xbuild as xb
from xbuild.cli import main
from xbuild.cli.shard import complete_target

BLOCK_TARGET = f"{Path(__file__).parents[2] / 'examples/sharding/block.py'}:tensor"

TEXT = """HloModule m
relu { p = f32[8,6] parameter(0)  ROOT m = f32[8,6] negate(p) }
ENTRY e {
  a = f32[8,4] parameter(0), sharding={mesh['x'=2,'y'=2], [{'x'}, {'y'}]}
  b = f32[4,6] parameter(1)
  y = f32[8,6] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[8,6] parameter(2), sharding={mesh['x'=2,'y'=2], [{'y'}, {}]}
  t = f32[8,6] call(y), to_apply=relu
  k = f32[8,6] add(c, t)
  n = f32[] constant(1)
  ROOT u = (f32[8,6], f32[8,6]) tuple(t, k)
}
"""


@pytest.fixture
def target(tmp_path: Path) -> str:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    return str(path)


def said(*arguments: str) -> str:
    done = CliRunner().invoke(main, ["shard", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_each_value_has_its_sharding_and_cause(target: str) -> None:
    lines = said(target).splitlines()
    assert lines[0].startswith(("partitioned by xbuild: ", "not partitioned: "))
    start = lines.index("m: mesh x=2 x y=2, 10 arrays, 10 sharded")
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in lines[start + 2 :]}
    assert rows["a"] == "f32[8,4] [{x}, {y}] stated"
    assert rows["b"] == "f32[4,6] [{y}, {}] from a, by dot y (level 3)"
    assert rows["m"].startswith("relu f32[8,6] [{y}, {}] from c")
    assert "resharded because shardings conflict (2)" in lines
    assert any(line.startswith("  dot %y has factor i") for line in lines)


def test_explanations_and_text(target: str) -> None:
    told = said(target, "--explain", "y")
    assert told.startswith("%y f32[8,6] is [{y}, {}]: its axes propagated from other values")
    assert "m.hlo:7 in e" in told
    assert xb.parse_hlo(said(target, "--hlo")).entry["y"].annotations["sharding"]
    whole = said(target, "--strategy", "dialect", "--explain", "k")
    assert "level 0, dialect)" in whole
    wrong = CliRunner().invoke(main, ["shard", target, "--explain", "q"])
    assert wrong.exit_code == 1
    assert "has no value 'q'" in wrong.output


def test_a_parameter_has_the_name_that_the_table_shows(tmp_path: Path) -> None:
    path = tmp_path / "named.hlo"
    path.write_text("""HloModule m
ENTRY e {
  a = f32[8,4] parameter(0), sharding={mesh['x'=2], [{'x'}, {}]}, metadata={op_name="p[\'w\']"}
  ROOT n = f32[8,4] negate(a)
}
""")
    assert "p['w'] " in said(str(path))
    assert said(str(path), "--explain", "p['w']") == said(str(path), "--explain", "a")
    propagated = xb.shard.propagate(xb.parse_hlo(path.read_text()))
    assert propagated.sharding("p['w']") == propagated.sharding("a")


def test_json_has_every_value(target: str) -> None:
    found = json.loads(said(target, "--json"))
    assert (found["mesh"], found["strategy"], len(found["conflicts"])) == ({"x": 2, "y": 2}, "shardy", 2)
    values = {each["name"]: each for each in found["values"]}
    assert values["n"]["kind"] == "scalar"
    assert values["u[1]"]["sharding"] == "[{y}, {}]"
    one = json.loads(said(target, "--explain", "k", "--json"))
    assert one["dimensions"][0]["origin"] == "c"


def test_programs_without_shardings_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "plain.hlo"
    path.write_text("HloModule m\nENTRY e {\n  ROOT p = f32[8] parameter(0)\n}\n")
    done = CliRunner().invoke(main, ["shard", str(path)])
    assert done.exit_code == 1
    assert "states no sharding" in done.output


CUTS = {"one.hlo": ("{}, {'x'}", "{'x'}, {}"), "two.hlo": ("{'x'}, {}", "{'x'}, {}")}


@pytest.fixture
def products(tmp_path: Path) -> list[str]:
    for name, (a, b) in CUTS.items():
        (tmp_path / name).write_text(f"""HloModule m, num_partitions=2
ENTRY e {{
  a = f32[8,4] parameter(0), sharding={{mesh['x'=2], [{a}]}}
  b = f32[4,6] parameter(1), sharding={{mesh['x'=2], [{b}]}}
  ROOT y = f32[8,6] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
""")
    return [str(tmp_path / name) for name in CUTS]


def test_what_partitioning_inserts_is_told(products: list[str]) -> None:
    told, found = said(products[0]), json.loads(said(products[0], "--json"))["partitioned"]
    parts = xb.shard.partition(xb.parse_hlo(Path(products[0]).read_text(), products[0]))
    assert "partitioned by xbuild: 2 collectives inserted; a device sends 112 B" in told
    assert [each["reason"] for each in found["communications"]] == [each.reason for each in parts.communications]
    assert all(each.reason in " ".join(told.split()) for each in parts.communications)
    first = found["communications"][0]
    assert first["line"].endswith("one.hlo:3 in e")
    assert (first["runs"], first["why"]["kind"], first["why"]["user"]) == (1, "operand", "y")
    assert 0 < first["total_seconds"] < 1e-3
    assert "time on h100" in told
    assert "time on v5e" in said(products[0], "--machine", "v5e")
    assert (found["bytes_by_axis"], found["verdict"]) == ({"x": 64 + 48}, "ok")
    spmd = xb.parse_hlo(said(products[0], "--partitioned"))
    assert sum(each.opcode == "all_gather" for each in spmd.entry.instructions) == 2


def test_shardings_stand_side_by_side(products: list[str]) -> None:
    found = json.loads(said(products[0], "--compare", products[1], "--json"))
    one, two = found["programs"]
    assert found["schema"] == "xbuild.shard.compare/1"
    assert (one["bytes_by_axis"], two["bytes_by_axis"]) == ({"x": 112}, {"x": 48})
    assert (one["flops"], two["flops"]) == (2 * 8 * 4 * 6, 2 * 4 * 4 * 6)
    assert one["exposed_seconds"] > two["exposed_seconds"] > 0
    table = said(products[0], "--compare", products[1], "--machine", "v5p")
    assert ["bytes", "over", "x", "112", "B", "48", "B"] in [line.split() for line in table.splitlines()]


def test_several_targets_stand_behind_one_option(products: list[str]) -> None:
    block = str(Path(__file__).parents[2] / "examples" / "sharding" / "block.py")
    lines = said(f"{block}:data", "--compare", "tensor", "sequence", "full").splitlines()
    assert lines[0].split() == ["per", "device", "data", "tensor", "sequence", "full"]
    assert lines[2].split() == ["collectives", "0", "2", "2", "6"]
    assert said(f"{block}:data", "--compare", "tensor", "--compare", "full").splitlines()[0].split()[-1] == "full"
    fixed, rule = (json.loads(said(products[0], "--compare", products[1], "--json", "--strategy", each))["programs"]
                   for each in ("shardy", "dialect"))  # fmt: skip
    assert [each["bytes_by_axis"] for each in rule] != [each["bytes_by_axis"] for each in fixed]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("b.hlo",), "b.hlo is a second target; to compare it with"),
        (("--compare",), "--compare needs at least one other target: xbuild shard A --compare B C"),
        (("b.hlo", "--compare", "--explain", "y"), "--compare and --explain cannot be used together"),
        (("b.hlo", "--compare", "--hlo"), "--compare and --hlo cannot be used together"),
        (("--partitioned", "--explain", "y"), "--explain and --partitioned cannot be used together"),
        (("--hlo", "--json"), "--json and --hlo cannot be used together"),
        (("--theme", "dark"), "--theme has no effect without -o FILE"),
        (("-o", "p.svg", "--json"), "--output and --json cannot be used together"),
        (("-o", "p.png", "--explain", "y"), "tiles can be drawn as svg, html or txt, not as png"),
        (("-o", "p.doc"), "'p.doc': expected a file name that ends in one of"),
    ],
)
def test_ways_that_exclude_each_other(products: list[str], arguments: tuple[str, ...], told: str) -> None:
    done = CliRunner().invoke(main, ["shard", products[0], *arguments])
    assert done.exit_code == 2
    assert told in done.stderr


def test_pictures_of_the_partition_and_of_tiles(products: list[str], tmp_path: Path) -> None:
    for form in ("svg", "html", "txt"):
        said(products[0], "-o", str(tmp_path / f"both.{form}"))
        said(products[0], "--explain", "a", "-o", str(tmp_path / f"tiles.{form}"))
    both, tiles = ((tmp_path / f"{each}.txt").read_text() for each in ("both", "tiles"))
    assert "  f32[8,4]  [64 B over x]" in both
    reason = xb.shard.partition(xb.parse_hlo(Path(products[0]).read_text(), products[0])).communications[0].reason
    assert " ".join(reason.split()) in " ".join(both.split())
    assert "[{}, {x}] stated" in both
    assert tiles.splitlines()[:3] == ["a  f32[8,4]  [{}, {x}]",
        "  mesh x=2: 2 tiles of f32[8,2], one device holds each; the numbers are device numbers",
        "  +---+---+"]  # fmt: skip
    assert "a states them" in tiles


def test_of_very_many_tiles_a_corner_is_drawn() -> None:
    module = xb.Module("many", xb.computation(xb.f32[100, 40, 30, 7])(lambda x: x + x))
    cut = xb.shard.annotated(module, {0: xb.P("a", "a2", "b", "c")}, mesh=xb.Mesh(a=8, a2=2, b=20, c=2))
    found = str(xb.viz(xb.shard.tiling(cut, "parameter.1"), "txt"))
    assert "the first 16 x 2 of 20 x 2 tiles are drawn\n4 more panels are not drawn" in found
    assert found.count("[13:26, 0:20, :, :]") == 1
    assert "hatched: padding" in found
    assert str(xb.viz(xb.shard.tiling(cut, "parameter.1"), "svg")).count('class="own"') == 12 * 15 * 2


def test_a_name_to_compare_is_of_the_same_file() -> None:
    assert [complete_target("m.py:one", each) for each in ("two", "n.py:two", "n.hlo")] == [
        "m.py:two",
        "n.py:two",
        "n.hlo",
    ]


def test_specs_with_a_mesh_annotate_by_name_and_number() -> None:
    module, mesh = xb.Module("m", xb.computation(xb.f32[8, 4])(lambda x: x + x)), xb.Mesh(data=2)
    named = xb.shard.annotated(module, {module.entry.parameters[0].name: xb.P("data", None)}, mesh=mesh)
    assert named.to_hlo() == xb.shard.annotated(module, {0: xb.P("data")}, mesh=mesh).to_hlo()
    again = xb.shard.annotated(named, {module.entry.root.name: xb.P(None, "data")})
    assert str(again.entry.root.annotations["sharding"]) == "{mesh['data'=2], [{}, {'data'}]}"
    for key, spec, on, message in [
        (0, xb.P("data"), None, "no mesh defines their sizes"),
        (3, xb.P("data"), mesh, "got parameter number 3"),
        (0, xb.P("model"), mesh, "model"),
        (0, xb.P(None, None, "data"), mesh, "3 entries"),
    ]:
        with pytest.raises(xb.XbuildError, match=message):
            xb.shard.annotated(module, {key: spec}, mesh=on)


def test_a_collective_that_was_not_inserted_is_named(products: list[str]) -> None:
    parts = xb.shard.partition(xb.parse_hlo(Path(products[0]).read_text()))
    assert xb.shard.explain(parts, "all-gather.2") == parts.communications[1]
    with pytest.raises(
        xb.XbuildError, match="no value 'q', and the partitioner inserted no such collective; it inserted all-gather"
    ):
        xb.shard.explain(parts, "q")


def test_the_page_on_shardings_runs() -> None:
    page = Path(__file__).parents[2] / "docs" / "sharding.md"
    text = page.read_text().replace("```python", "").replace("```", "")
    test = doctest.DocTestParser().get_doctest(text, {}, "sharding.md", str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test).failed == 0


def test_top_lists_the_largest_arrays_and_the_longest_collectives() -> None:
    whole, part = said(BLOCK_TARGET), said(BLOCK_TARGET, "--top", "1")
    assert "more; --all shows them" in part
    assert "more values; --all shows them" in part
    assert part.splitlines()[0] == whole.splitlines()[0]
    assert len(part.splitlines()) < len(said(BLOCK_TARGET, "--all").splitlines()) / 2
    assert said(BLOCK_TARGET, "--top", "1000") == said(BLOCK_TARGET, "--all")
    facts = json.loads(said(BLOCK_TARGET, "--top", "2", "--json"))
    assert len(facts["values"]) == 2
    every = json.loads(said(BLOCK_TARGET, "--json"))
    sizes = {
        row["name"]: xb.parse_hlo(f"ENTRY e {{ ROOT x = {row['shape']} parameter(0) }}") for row in every["values"]
    }
    bytes_of = {name: module.entry.root.shape.bytes for name, module in sizes.items()}  # type: ignore[union-attr]
    assert min(bytes_of[row["name"]] for row in facts["values"]) >= sorted(bytes_of.values())[-2]
    assert len(facts["partitioned"]["communications"]) == min(2, len(every["partitioned"]["communications"]))


@pytest.mark.parametrize("other", ["--hlo", "--partitioned"])
def test_top_is_for_tables(other: str) -> None:
    done = CliRunner().invoke(main, ["shard", BLOCK_TARGET, "--top", "1", other])
    assert (done.exit_code, f"--top and {other} cannot be used together" in done.output) == (2, True)


def test_the_collectives_that_send_most_are_shown_and_parameters_have_their_paths(tmp_path: Path) -> None:
    mesh = "mesh['x'=2]"
    small = [f"sum{n} = f32[8] add(a, b), sharding={{{mesh}, [{{}}]}}" for n in range(12)]
    sums = [f"part{n} = f32[8] negate(sum{n}), sharding={{{mesh}, [{{'x'}}]}}" for n in range(12)]
    results = ", ".join(["new", *(f"part{n}" for n in range(12))])
    stated = ", ".join([f"{{{mesh}, [{{}}, {{}}]}}", *[f"{{{mesh}, [{{}}]}}"] * 12])
    shapes = ", ".join(["f32[64,64]", *["f32[8]"] * 12])
    lines = [
        f"w = f32[64,64] parameter(0), sharding={{{mesh}, [{{'x'}}, {{}}]}}, metadata={{op_name=\"p['w']\"}}",
        f"a = f32[8] parameter(1), sharding={{{mesh}, [{{'x'}}]}}, metadata={{op_name=\"p['a']\"}}",
        f"b = f32[8] parameter(2), sharding={{{mesh}, [{{}}]}}, metadata={{op_name=\"p['b']\"}}",
        *small, *sums, "new = f32[64,64] negate(w)", f"ROOT r = ({shapes}) tuple({results}), sharding={{{stated}}}",
    ]  # fmt: skip
    path = tmp_path / "step.hlo"
    path.write_text("HloModule step\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n")
    shown = said(str(path)).partition("step: mesh")[0]
    assert "; --all shows them" in shown
    assert "the program returns new (step.hlo:30) replicated, but it is produced sharded along `x` in dimension 0" in (
        " ".join(shown.split())
    )
    conflicts = shown.partition("resharded because shardings conflict")[2]
    assert "along x in p['a']" in conflicts
    assert "%a" not in shown
