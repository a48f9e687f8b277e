"""Modules that the printer writes: kept texts, styles, headers, annotations and order; real XLA reads all of it."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import numpy as np
import pytest

import tests.cases
import xbuild as xb
from shape_inference import Layout, Shape
from tests.golden.kept import FOLDER, TEXTS
from tests.text.real_xla import refusals
from xbuild.core.graph import NOTHING, Source
from xbuild.core.op import OPS
from xbuild.text.printer import skeleton_text
from xbuild.text.spelling import NameWriter

from ..golden import programs

# kept texts and cases


@pytest.mark.parametrize("file", [file for file in TEXTS if file.endswith(".hlo")])
def test_kept_texts(file: str) -> None:
    assert TEXTS[file]() == (FOLDER / file).read_text(encoding="utf-8")


@pytest.mark.oracle
def test_real_xla_reads_the_kept_texts() -> None:
    pytest.importorskip("jaxlib")
    modules = (programs.attributes(), programs.devices(), programs.training_step(), programs.loop())
    texts = [module.to_hlo(style=style) for module in modules for style in ("short", "percent", "full")]
    texts += [str(module.entry) for module in modules]
    assert refusals(texts) == [""] * len(texts)


@pytest.mark.oracle
def test_real_xla_reads_every_case() -> None:
    pytest.importorskip("jaxlib")
    families = [info.name for info in pkgutil.iter_modules(tests.cases.__path__) if info.name != "case"]
    cases = [case for family in families for case in importlib.import_module(f"tests.cases.{family}").CASES]
    texts = [xb.Module("case", case.computation()).to_hlo() for case in cases]
    bad = {case.id: said for case, said in zip(cases, refusals(texts), strict=True) if said}
    assert bad == {}


# modules and styles


def _two() -> xb.Module:
    builder = xb.Builder("main")
    with xb.scope("layer"), xb.scope("act"):
        x = xb.ops.parameter(builder, number=0, shape=xb.f32[2, 3], name="x")
        y = xb.ops.tanh(x)
    return xb.Module("two", builder.build(y), num_replicas=2, num_partitions=3, is_scheduled=True)


def test_the_header_says_devices_and_schedule() -> None:
    assert _two().to_hlo().splitlines()[0] == "HloModule two, is_scheduled=true, replica_count=2, num_partitions=3"
    full = _two().to_hlo(entry_layout=True).splitlines()[0]
    assert "entry_computation_layout={(f32[2,3])->f32[2,3]}" in full


def test_styles() -> None:
    module = _two()
    assert "  ROOT tanh.1 = f32[2,3] tanh(x)\n" in module.to_hlo()
    assert "ENTRY %main (x: f32[2,3]) -> f32[2,3] {" in module.to_hlo(style="percent")
    assert "f32[2,3]{1,0} tanh(x)" in module.to_hlo(layouts=True)
    metadata = module.to_hlo(metadata=True)
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    line = lines.index("        y = xb.ops.tanh(x)") + 1
    assert f'metadata={{op_name="layer/act" source_file="{__file__}" source_line={line}}}' in metadata
    with pytest.raises(ValueError, match="expected one of short, percent, full"):
        module.to_hlo(style="long")


def test_a_layout_that_a_shape_has_is_kept() -> None:
    builder = xb.Builder("main")
    x = xb.ops.parameter(builder, number=0, shape=Shape(xb.f32, (2, 3), layout=Layout((0, 1))), name="x")
    scalar = Shape(xb.f32, (), layout=Layout(()))
    y = xb.ops.parameter(builder, number=1, shape=scalar, name="y")
    text = str(builder.build(xb.ops.tuple_([x, y])))
    assert "x = f32[2,3]{0,1} parameter(0)" in text
    assert "y = f32[] parameter(1)" in text


def test_annotations_are_printed_back() -> None:
    notes = {
        "sharding": "{replicated}",
        "frontend_attributes": {"a": 'say "so"', "b": "{1}"},
        "metadata": {"op_name": "f", "source_file": "theirs.py", "source_line": 7},
        "backend_config": "fast",
    }
    x = xb.Instruction("parameter", "x", xb.f32[2], (), None, OPS["parameter"].attributes(number=0, shape=xb.f32[2]))
    y = xb.Instruction("negate", "y", xb.f32[2], (x,), None, None, Source("mine.py", 3, "f"), (x,), notes)
    module = xb.Module("m", xb.Computation("main", (x, y), y))
    assert module.to_hlo(metadata=True).splitlines()[-2] == (
        '  ROOT y = f32[2] negate(x), sharding={replicated}, frontend_attributes={a="say \\"so\\"",b="{1}"}, '
        'control-predecessors={x}, metadata={op_name="f" source_file="theirs.py" source_line=7}, backend_config="fast"'
    )
    raw = xb.Instruction("negate", "y", xb.f32[2], (x,), annotations={"backend_config": '{"a":1}'})
    assert repr(raw) == 'y = f32[2] negate(x), backend_config={"a":1}'
    assert repr(xb.Instruction("negate", "y", xb.f32[2], (x,), annotations=NOTHING)) == "y = f32[2] negate(x)"


def test_callees_come_first_even_where_the_module_lists_them_last() -> None:
    module = programs.loop()
    turned = xb.Module("loop", module.entry, tuple(reversed(module.computations)), num_replicas=2)
    names = [line.split()[0] for line in turned.to_hlo().splitlines() if line.endswith("{") and "=" not in line]
    assert names[-1] == "ENTRY"
    assert names.index("add") < names.index("next")
    assert len(names) == len(module.computations)


def test_one_writer_spells_a_shape_once() -> None:
    writer = NameWriter()
    assert writer.shape(xb.f32[2]) is writer.shape(xb.f32[2])


def test_a_group_prints_each_device() -> None:
    assert str(programs.ring(2)).count("HloModule ring") == 2


@pytest.mark.parametrize(("split", "concat"), [(0, 1), (1, 0), (2, 0), (0, 2)])
@pytest.mark.oracle
def test_an_exchange_with_two_dimensions_means_the_same_to_real_xla(split: int, concat: int) -> None:
    pytest.importorskip("jaxlib")
    from interpreter import execute
    from tests.oracle import Job, run

    x = xb.ops.parameter(xb.Builder("main"), number=0, shape=xb.s32[2, 4, 6])
    y = xb.ops.all_to_all(x, split_dimension=split, concat_dimension=concat, split_count=2, replica_groups=[(0, 1)])
    module = xb.Module("exchange", x.builder.build(y), num_replicas=2)
    rows = [[np.arange(48, dtype=np.int32).reshape(2, 4, 6) + 100 * device] for device in range(2)]
    (theirs,) = run([Job(module.to_hlo(), rows, num_replicas=2)])
    for ours, (other,) in zip(execute(module, rows), theirs, strict=True):
        np.testing.assert_array_equal(ours, other, strict=True)


def test_the_skeleton_keeps_what_devices_do_together() -> None:
    assert skeleton_text(programs.loop()).splitlines() == [
        "next {",
        "  ... 3 ops",
        "  all-reduce.13 = f32[4,4] all-reduce(get-tuple-element.9), replica_groups={}, to_apply=add",
        "  ... 6 ops",
        "}",
        "",
        "ENTRY loop {",
        "  ... 3 ops",
        "  while.20 = (s32[], f32[4,4]) while(tuple.2), condition=below_ten, body=next",
        "  ... 6 ops",
        "}",
    ]
    builder = xb.Builder("quiet")
    quiet = builder.build(xb.ops.parameter(builder, number=0, shape=xb.f32[2]))
    assert skeleton_text(quiet) == "quiet does not communicate"


def test_a_scalar_that_is_padded_is_itself() -> None:
    x = xb.ops.parameter(xb.Builder("main"), number=0, shape=xb.s32[()], name="x")
    y = xb.ops.parameter(x.builder, number=1, shape=xb.s32[()], name="y")
    assert "ROOT pad.1 = s32[] copy(x)\n" in str(x.builder.build(xb.ops.pad(x, y, padding=())))


@pytest.mark.slow
def test_a_hundred_thousand_instructions_print() -> None:
    builder = xb.Builder("long")
    x = xb.ops.parameter(builder, number=0, shape=xb.f32[4, 4])
    for _ in range(50_000):
        x = xb.ops.negate(xb.ops.add(x, x))
    computation = builder.build(x)
    text = str(computation)
    assert text.count("\n") > 100_000
