"""`xbuild shard`: the table of shardings with causes, explanations, text and JSON; and the page on shardings runs."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import xbuild as xb
from xbuild.cli import main

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
    assert lines[0] == "m: mesh x=2 x y=2, 10 arrays, 10 of them cut"
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in lines[2:12] if line}
    assert rows["a"] == "f32[8,4] [{x}, {y}] stated"
    assert rows["b"] == "f32[4,6] [{y}, {}] from a, by dot y (level 3)"
    assert rows["m"].startswith("relu f32[8,6] [{y}, {}] from c")
    assert "resharded, since values do not fit each other (2)" in lines
    assert any(line.startswith("  dot %y wants factor i") for line in lines)


def test_explanations_and_text(target: str) -> None:
    told = said(target, "--explain", "y")
    assert told.startswith("%y f32[8,6] is [{y}, {}]: it came from other values")
    assert f"at {target}:7 in e" in told
    assert xb.parse_hlo(said(target, "--hlo")).entry["y"].annotations["sharding"]
    whole = said(target, "--strategy", "dialect", "--explain", "k")
    assert "level 0, dialect)" in whole
    wrong = CliRunner().invoke(main, ["shard", target, "--explain", "q"])
    assert wrong.exit_code == 1
    assert "has no value 'q'" in wrong.output


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


def test_the_page_on_shardings_runs() -> None:
    page = Path(__file__).parents[2] / "docs" / "sharding.md"
    text = page.read_text().replace("```python", "").replace("```", "")
    test = doctest.DocTestParser().get_doctest(text, {}, "sharding.md", str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test).failed == 0
