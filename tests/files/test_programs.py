"""Texts, bytes and paths as programs, in every function that takes one; objects that are none stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from xbuild.files.programs import program_in
from xbuild.files.targets import TargetError

HLO = "HloModule twice\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] add(x, x)\n}\n"
STABLEHLO = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
DUMP = Path(__file__).parents[1] / "data" / "dumps" / "jax_0.10.2" / "xla"
USES: dict[str, Callable[[Any], Any]] = {
    "check": lambda p: xb.check(p).kind == "ok",
    "parse": lambda p: isinstance(xb.parse(p), xb.Module),
    "cost": lambda p: xb.cost(p).num_devices == 1,
    "viz": lambda p: "add" in str(xb.viz(p).render("txt")),
    "timeline": lambda p: xb.timeline(p, "v5e").seconds > 0,
    "equivalent": lambda p: bool(xb.equivalent(p, HLO)),
    "execute": lambda p: (xb.execute(p, [[np.ones(2, np.float32)]])[0] == 2).all(),
    "trace": lambda p: xb.trace(p, [[np.ones(2, np.float32)]]) is not None,
    "explain": lambda p: "add" in str(xb.explain(p, "y")),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "twice.hlo"
    file.write_text(HLO)
    return file


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("form", ["text", "bytes", "str", "path"])
def test_a_program_in_each_form(path: Path, use: str, form: str) -> None:
    forms = {"text": HLO, "bytes": HLO.encode(), "str": str(path), "path": path}
    assert USES[use](forms[form])


def test_one_line_of_stablehlo_is_text() -> None:
    assert xb.check(STABLEHLO).kind == "ok"


def test_counts_apply_to_files(path: Path) -> None:
    assert xb.parse(path, replicas=3).num_replicas == 3
    assert xb.parse(str(path), partitions=2).num_partitions == 2


def test_a_module_of_a_dump_is_a_path() -> None:
    assert xb.cost(f"{DUMP}#jit_step").flops > 0
    with pytest.raises(TargetError, match="has 2 modules: jit_step, jit_summed"):
        xb.check(DUMP)


def test_a_module_is_unchanged(path: Path) -> None:
    module = xb.parse(path)
    assert xb.parse(module) is module


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("absent.hlo", "there is no file"),
        ("train.py:step", "is not the path of a program: import the file and pass its program"),
    ],
)
def test_a_path_that_is_no_program(target: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        xb.check(target)


@pytest.mark.parametrize("thing", [None, 3, "hello", object(), [HLO], len])
def test_anything_else_is_unchanged(thing: object) -> None:
    assert program_in(thing) is thing
    with pytest.raises(TypeError):
        xb.check(thing)  # type: ignore[arg-type]


def test_a_function_is_told_from_jax() -> None:
    with pytest.raises(TypeError, match=r"xb\.from_jax\(function, \*arguments\)"):
        xb.check(lambda x: x)  # type: ignore[arg-type]


NAMED = """HloModule step, num_partitions=2
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
yes { p = f32[4] parameter(0) ROOT r = f32[4] all-reduce(p), channel_id=1,
  replica_groups={{0,1}}, use_global_device_ids=true, to_apply=sum }
no { p = f32[4] parameter(0) ROOT r = f32[4] negate(p) }
ENTRY e {
  param.1 = pred[] parameter(0), metadata={op_name="state['flags'].on"}
  param.2 = f32[4] parameter(1), metadata={op_name="state['w'][0]"}
  ROOT c = f32[4] conditional(param.1, param.2, param.2), true_computation=yes, false_computation=no
}
"""


def test_reports_name_parameters_by_their_paths() -> None:
    assert "state['flags'].on   decides c" in str(xb.check(NAMED))
    assert "state['w'][0]" in str(xb.cost(NAMED))
    with pytest.raises(xb.ArgumentError, match=r"argument 1 \(state\['w'\]\[0\]\) of device 0 has shape"):
        xb.execute(NAMED, [[True, [1.0]]] * 2, check=False)
    assert "param.2 = f32[4] parameter(1)" in str(xb.parse(NAMED))


@pytest.mark.parametrize(
    ("name", "op_name", "shown"),
    [
        ("x.1", "x", "x.1"),
        ("param.3", "x", "x"),
        ("Arg_0.1", "args[0]['w']", "args[0]['w']"),
        ("p", "layer/attention", "p"),
        ("p", "jit(f)/reduce_sum", "p"),
        ("p", "[('data',)]", "p"),
        ("p", "p['<b>']", "p"),
        ("p", "p['a\u202eb']", "p"),
        ("p", "", "p"),
    ],
)
def test_only_a_path_of_arguments_is_a_name(name: str, op_name: str, shown: str) -> None:
    from xbuild.properties.effects import name_in_report

    text = f'ENTRY e {{\n  ROOT {name} = f32[8] parameter(0), metadata={{op_name="{op_name}"}}\n}}'
    assert name_in_report(xb.parse(text).entry.root) == shown
