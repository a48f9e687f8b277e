"""Printer of HLO text: kept spellings, exact constants, and real XLA reads all of it."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import tests.cases
import xbuild as xb
from shape_inference import PRIMITIVES, Layout, PrimitiveType, Shape
from tests.golden.kept import FOLDER, TEXTS
from xbuild.core.graph import NOTHING, Source
from xbuild.core.identifiers import KEYWORDS, is_identifier, nearest
from xbuild.core.op import OPS
from xbuild.reference.op_names import NAMES
from xbuild.text.codecs.table import spellings
from xbuild.text.spelling.literals import literal_text
from xbuild.text.spelling.writer import Writer
from xbuild.text.writing.skeleton import skeleton_text

from ..golden import programs

_PARSE = """
import json, sys
from jaxlib import _hlo
for line in sys.stdin:
    try:
        _hlo.hlo_module_from_text(json.loads(line))
        print(json.dumps(""), flush=True)
    except Exception as error:
        print(json.dumps(str(error)[:2000]), flush=True)
"""


def refusals(texts: Sequence[str]) -> list[str]:
    """For each text what real XLA says against it, "" where it reads it; in a child process, which may die."""
    said: list[str] = []
    while len(said) < len(texts):
        lines = "".join(f"{json.dumps(text)}\n" for text in texts[len(said) :])
        child = subprocess.run([sys.executable, "-c", _PARSE], input=lines, capture_output=True, text=True, check=False)
        said += map(json.loads, child.stdout.splitlines())
        if child.returncode:
            said.append(f"died with {child.returncode}: {child.stderr[-500:]}")
    return said


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


@pytest.mark.parametrize("opcode", sorted(OPS))
def test_each_attribute_has_one_spelling(opcode: str) -> None:
    """Whatever an op has as an attribute stands in its text once, or is told by the shape."""
    record = OPS[opcode].attributes
    fields = [field.name for field in record.__attrs_attrs__] if record else []
    assert sorted(name for spelling in spellings(opcode) for name in spelling.names) == sorted(fields)


def test_each_op_has_its_names() -> None:
    assert OPS.keys() ^ NAMES.keys() == set()
    for opcode in OPS:
        assert getattr(xb, NAMES[opcode].name)
        assert OPS[opcode].spelling == NAMES[opcode].spelling


# constants


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.float32(0.1), "0.1"),
        (np.float32(1), "1"),
        (np.float32(3.4028235e38), "3.4028235e+38"),
        (np.float32(1e-45), "1e-45"),
        (np.float32("-0"), "-0.0"),
        (np.array([-0.0, 0.0, -10.0, 1e16]), "{-0.0, 0, -10, 1e+16}"),
        (np.array([np.nan, np.inf, -np.inf], np.float32), "{nan, inf, -inf}"),
        (-np.float32(np.nan), "-nan"),
        (np.float16(0.1), "0.1"),
        (ml_dtypes.bfloat16(3.14), "3.14"),
        (np.array([0.1, -0.0], ml_dtypes.float8_e4m3fn), "{0.1, -0.0}"),
        (np.complex64(1 - 2j), "(1, -2)"),
        (np.array([complex(-0.0, np.nan)]), "{(-0.0, nan)}"),
        (np.bool_(True), "true"),
        (np.array([True, False]), "{1, 0}"),
        (np.array([-8, 7], ml_dtypes.int4), "{-8, 7}"),
        (np.array([15, 0], ml_dtypes.uint4), "{15, 0}"),
        (np.uint64(2**64 - 1), "18446744073709551615"),
        (np.int64(-(2**63)), "-9223372036854775808"),
        (np.arange(4, dtype=np.int8).reshape(2, 2), "{ { 0, 1 }, { 2, 3 } }"),
        (np.zeros((1, 1, 1), np.float32), "{ { { 0 } } }"),
        (np.zeros(0, np.float32), "{}"),
        (np.zeros((2, 0), np.int32), "{ {}, {} }"),
        (np.zeros((0, 2), np.float32), "{}"),
        (np.broadcast_to(np.float32(2), (2,)), "{2, 2}"),
        (np.arange(6, dtype=ml_dtypes.bfloat16)[::2], "{0, 2, 4}"),
    ],
)
def test_constants(array: np.ndarray, text: str) -> None:
    assert literal_text(np.asarray(array)) == text


@pytest.mark.parametrize("dtype", [t for t in PRIMITIVES.values() if t.is_float and t.bits <= 16], ids=str)
def test_every_small_float_comes_back(dtype: PrimitiveType) -> None:
    values = every(dtype)
    assert read_back(values).tobytes() == values.tobytes()


def read_back(values: np.ndarray) -> np.ndarray:
    """A constant, printed and read."""
    builder = xb.Builder("constant")
    text = xb.Module("constant", builder.build(xb.ops.constant(builder, literal=values))).to_hlo()
    found: np.ndarray = xb.parse_hlo(text).entry.root.attributes.literal
    return found


def every(dtype: PrimitiveType) -> np.ndarray:
    bits = np.arange(1 << max(dtype.bits, 4), dtype=np.uint16 if dtype.bits == 16 else np.uint8)
    return bits.view(dtype.dtype)


@given(arrays.arrays(st.sampled_from([np.float32, np.float64]), st.integers(1, 5)))
def test_wide_floats_come_back(values: np.ndarray) -> None:
    assert read_back(values).tobytes() == values.tobytes()


@given(st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=6), st.sampled_from([np.float32, np.float64]))
def test_every_pattern_of_bits_comes_back(patterns: list[int], dtype: type) -> None:
    bits = np.array(patterns[: len(patterns) // 2 * 2], np.uint64) | np.uint64(0x7FF0000000000000 * (patterns[0] % 2))
    values = bits.view(dtype)
    for each in (values, values.view(np.complex64 if dtype is np.float32 else np.complex128)):
        assert read_back(each).tobytes() == each.tobytes()


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", PRIMITIVES.values(), ids=str)
def test_real_xla_reads_the_same_constant(dtype: PrimitiveType) -> None:
    """The bytes of the literal that XLA made of our text."""
    pytest.importorskip("jaxlib")
    from tests.oracle import run_one
    from tests.oracle.chance import UNRUN

    values = sample(dtype)
    builder = xb.Builder("constant")
    text = xb.Module("constant", builder.build(xb.ops.constant(builder, literal=values))).to_hlo()
    if dtype.name in UNRUN or (dtype.bits == 1 and dtype.is_integer):  # XLA:CPU runs none of these
        assert refusals([text]) == [""]
        return
    (back,) = run_one(text)
    with np.errstate(invalid="ignore"):
        number = ~np.isnan(values.astype(np.complex128)) if dtype.kind in ("float", "complex") else values == values
        assert back[number].tobytes() == values[number].tobytes()
        if not number.all():
            assert np.isnan(back[~number].astype(np.complex128)).all()


def sample(dtype: PrimitiveType) -> np.ndarray:
    if dtype.is_float and dtype.bits <= 16:
        return every(dtype)
    if dtype.is_float:
        bits = np.random.default_rng(0).integers(0, 1 << 32, 400 * dtype.bits // 32, dtype=np.uint32)
        return bits.view(dtype.dtype)
    if dtype.kind == "complex":
        return np.array([1 - 2j, complex(-0.0, 0.1), complex(0.1, -0.0), 1e30], dtype.dtype)
    low = 0 if dtype.kind != "signed" else -(2 ** (dtype.bits - 1))
    high = 1 if dtype.kind == "pred" else low + 2**dtype.bits - 1
    return np.array([low, 0, 1 if high else 0, high], object).astype(np.int64 if low else np.uint64).astype(dtype.dtype)


# names


@pytest.mark.parametrize("name", ["", "3rd", "my layer", "größe", "a/b", "f32", "ROOT", "true", "-x", "x\n", "bf16"])
def test_names_that_text_cannot_hold_are_refused_at_the_call(name: str) -> None:
    x = xb.ops.parameter(xb.Builder("b"), number=0, shape=xb.f32[2], name="x")
    if name:
        with pytest.raises(xb.BuildError, match=f"(?s)negate: .*invalid_name.*{nearest(name)}"):
            xb.ops.negate(x, name=name)
    with pytest.raises(xb.BuildError) as caught:
        xb.Builder(name)
    assert caught.value.kind == "invalid_name"
    with pytest.raises(xb.XbuildError) as caught_module:
        xb.Module(name, x.builder.build(x))
    assert caught_module.value.kind == "invalid_name"
    assert is_identifier(nearest(name))


@pytest.mark.oracle
def test_the_words_that_are_no_names_are_those_of_real_xla() -> None:
    pytest.importorskip("jaxlib")
    words = sorted({*KEYWORDS, "x", "_", "x-1.y_", "s3", "tuple", "add", "none", "NaN", "T"})
    said = refusals(
        [f"HloModule m\nENTRY e {{\n  {w} = f32[] parameter(0)\n  ROOT r = f32[] negate({w})\n}}" for w in words]
    )
    refused = {word for word, message in zip(words, said, strict=True) if message}
    assert refused == KEYWORDS


def test_functions_with_odd_names_make_regions_with_legal_ones() -> None:
    def größe(v: xb.Value) -> xb.Value:
        return xb.ops.negate(v)

    x = xb.ops.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    called = xb.ops.call(x, to_apply=größe).instruction.called
    assert is_identifier(called[0].name)


def test_computations_of_one_name_are_told_apart() -> None:
    @xb.computation(xb.f32[()])
    def inner(v):
        return xb.ops.negate(v)

    first = inner

    @xb.computation(xb.f32[()])
    def inner(v):
        return xb.ops.abs(v)

    x = xb.ops.parameter(xb.Builder("main"), number=0, shape=xb.f32[()])
    y = xb.ops.call(xb.ops.call(x, to_apply=first), to_apply=inner)
    text = str(xb.Module("two", x.builder.build(y)))
    assert "inner {" in text
    assert "inner.1 {" in text
    assert "to_apply=inner\n" in text
    assert "to_apply=inner.1\n" in text


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
    with pytest.raises(ValueError, match="there are short, percent, full"):
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
    writer = Writer()
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
