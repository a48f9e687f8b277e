"""Reader of HLO text: printed programs are read back, faults have positions, any text is a module or a refusal."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

import xbuild as xb
from interpreter import evaluate
from shape_inference import KINDS, PRIMITIVES, XbuildError, compatible
from shape_inference.kinds import TEXT_KINDS
from xbuild.cli import main
from xbuild.core.op import OPS
from xbuild.text.spelling.expansion import expansion

from ..conformance import corpus, rejects
from ..golden import programs

HLO = Path(__file__).parents[1] / "data" / "hlo"
SPELLINGS = {schema.spelling for schema in OPS.values()}


def is_within(entry: dict[str, Any]) -> bool:
    """Whether all its ops are there; a custom call of LAPACK is to be refused by name."""
    lapack = {"custom-call"} if any(target.startswith("lapack_") for target in entry["custom_call_targets"]) else set()
    return entry["opcodes"].keys() <= SPELLINGS | lapack


MANIFEST = [entry for entry in json.loads((HLO / "manifest.json").read_text()) if is_within(entry)]
READ = [entry for entry in MANIFEST if not entry["custom_call_targets"]]
REJECTS: list[dict[str, Any]] = json.loads((HLO / "rejects.json").read_text())
GOLDEN = (programs.attributes, programs.devices, programs.training_step, programs.loop)


def text_of(entry: dict[str, Any]) -> str:
    return (HLO / entry["file"]).read_text(encoding="utf-8")


def entry(body: str, before: str = "") -> xb.Module:
    return xb.parse_hlo(f"{before}\nENTRY main {{\n  x = f32[4] parameter(0)\n{body}\n}}\n")


def root(body: str, before: str = "") -> xb.Instruction:
    return entry(body, before).entry.root


def fault(text: str) -> xb.HloParseError:
    with pytest.raises(xb.HloParseError) as caught:
        xb.parse_hlo(text, "model.hlo")
    return caught.value


ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"


# what is printed comes back


def assert_same_structure(found: xb.Computation, expected: xb.Computation) -> None:
    assert [i.name for i in found.instructions] == [i.name for i in expected.instructions]
    assert found.root.name == expected.root.name
    for ours, theirs in zip(found.instructions, expected.instructions, strict=True):
        assert (ours.opcode, ours.segments) == (theirs.opcode, theirs.segments)
        assert compatible(ours.shape, theirs.shape)
        assert [o.name for o in ours.operands] == [o.name for o in theirs.operands]
        assert [o.name for o in ours.control] == [o.name for o in theirs.control]
        assert_same_attributes(ours, theirs)


def assert_same_attributes(ours: xb.Instruction, theirs: xb.Instruction) -> None:
    left, right = ours.attribute_values(), theirs.attribute_values()
    assert left.keys() == right.keys()
    for key, value in left.items():
        if key == "literal":
            assert value.dtype == right[key].dtype
            np.testing.assert_array_equal(value, right[key], strict=True)
        elif isinstance(value, xb.Computation):
            assert value.signature == right[key].signature
        elif not (isinstance(value, tuple) and any(isinstance(each, xb.Computation) for each in value)):
            assert value == right[key], key


@pytest.mark.parametrize("program", GOLDEN, ids=lambda program: program.__name__)
@pytest.mark.parametrize("style", ["short", "percent", "full"])
def test_programs_come_back(program: Any, style: str) -> None:
    module = program()
    text = module.to_hlo(style=style)
    back = xb.parse_hlo(text)
    assert back.to_hlo(style=style) == text
    assert (back.name, back.num_replicas, back.num_partitions) == (
        module.name,
        module.num_replicas,
        module.num_partitions,
    )
    blocks = {each.name: each for each in back.computations}
    if len(blocks) == len({each.name for each in module.computations}) == len(module.computations):
        for computation in module.computations:
            if any(len(expansion(instruction)) > 1 for instruction in computation.instructions):
                continue  # text has more instructions
            assert_same_structure(blocks[computation.name], computation)


@pytest.mark.parametrize("each", [e for e in READ if e["style"] in ("short", "percent")], ids=lambda e: e["file"])
def test_what_xla_printed_is_printed_the_same(each: dict[str, Any]) -> None:
    text = text_of(each)
    assert xb.parse_hlo(text).to_hlo(style=each["style"]).rstrip() == text.rstrip()


@pytest.mark.parametrize("each", MANIFEST, ids=lambda e: e["file"])
def test_corpus(each: dict[str, Any]) -> None:
    assert corpus.failure(HLO, each) is None


@pytest.mark.parametrize("case", REJECTS, ids=lambda case: case["name"])
def test_rejects(case: dict[str, Any]) -> None:
    assert rejects.failure(case) is None


def test_the_corpus_runner_tells_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    each = next(e for e in MANIFEST if e["num_replicas"] == 1 and e["outputs"])
    for name in (each["file"], each["inputs_file"]):
        (tmp_path / name).write_bytes((HLO / name).read_bytes())
    with np.load(HLO / each["outputs_file"]) as stored:
        wrong = {
            key: value if number else np.zeros_like(value) + 77 for number, (key, value) in enumerate(stored.items())
        }
    np.savez(tmp_path / each["outputs_file"], **wrong)
    (tmp_path / "manifest.json").write_text(json.dumps([each, {**each, "file": "missing.hlo"}]))
    assert corpus.main([str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "is expected" in lines[0]
    assert lines[-1] == "0 passed, 2 failed"


def test_the_rejects_runner_tells_what_is_wrong() -> None:
    good, bad = "ENTRY e { x = f32[] parameter(0) }", "ENTRY e { x = f32[] parameter(0) "
    assert rejects.failure({"name": "a", "text": good, "stage": "accepted"}) is None
    assert rejects.failure({"name": "b", "text": bad, "stage": "parse"}) is None
    assert rejects.failure({"name": "c", "text": good, "stage": "compile"})
    assert rejects.failure({"name": "d", "text": bad, "stage": "accepted"})


# grammar


@pytest.mark.parametrize(
    "text",
    [
        "ENTRY e { ROOT x = f32[] parameter(0) }",
        "HloModule m\n\n// a comment\nENTRY %e (y: s32[7]) -> f32[] { %x = f32[] parameter(0) /* more */ }",
        "HloModule m, is_scheduled=true, replica_count=1\ne { x = f32[] parameter(0) }, execution_thread=\"main\"",
        "e{ROOT x =f32[]parameter(0)}",
        "HloModule m\nFileNames\n1 \"a.py\"\nFunctionNames\n1 \"f\"\nFileLocations\n"
        "1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=9}\nStackFrames\n"
        "1 {file_location_id=1 parent_frame_id=1}\n\ne { x = f32[] parameter(0), metadata={stack_frame_id=1} }",
    ],
)  # fmt: skip
def test_modules(text: str) -> None:
    module = xb.parse_hlo(text)
    assert str(module.entry.program_shape) == "(f32[]) -> f32[]"
    assert module.name in ("m", "module_e")
    again = module.to_hlo(style="full")
    assert xb.parse_hlo(again).to_hlo(style="full") == again


def test_the_last_instruction_is_the_root_and_the_last_computation_the_entry() -> None:
    module = xb.parse_hlo("a { x = f32[] parameter(0) }\nb { x = f32[] parameter(0) y = f32[] negate(x) }")
    assert (module.entry.name, module.entry.root.name) == ("b", "y")


def test_shapes_that_are_not_written_are_inferred() -> None:
    assert str(root("  ROOT y = concatenate(x, negate(x)), dimensions={0}").shape) == "f32[8]"
    for line in ("y = reshape(x)", "y = slice(x), slice={[0:2]}", "y = convert(x)", "y = constant(1)"):
        assert fault(f"ENTRY e {{ x = f32[4] parameter(0) {line} }}").kind == "missing_shape"


def test_nested_operands_become_instructions_of_their_own() -> None:
    module = entry("  negate.1 = f32[4] negate(x)\n  ROOT y = f32[4] add(f32[4] negate(abs(x)), f32[4]{0} %negate.1)")
    assert [i.name for i in module.entry.instructions] == ["x", "negate.1", "abs.1", "negate.2", "y"]
    assert [o.name for o in module.entry.root.operands] == ["negate.2", "negate.1"]


def test_computations_may_stand_where_they_are_called() -> None:
    y = root(
        "  ROOT y = f32[4] call(x), to_apply={ a = f32[4] parameter(0) ROOT r = f32[4] negate(a) }, is_composite=true"
    )
    assert [i.opcode for i in y.called[0].instructions] == ["parameter", "negate"]
    module = xb.parse_hlo(str(xb.Module("m", y.called[0])))
    assert module.entry.root.opcode == "negate"
    assert y.annotations["is_composite"] == "true"


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{}", ()),
        ("{{0,1},{2,3}}", ((0, 1), (2, 3))),
        ("[2,2]<=[4]", ((0, 1), (2, 3))),
        ("[2,2]<=[2,2]T(1,0)", ((0, 2), (1, 3))),
        ("[4,2]<=[2,2,2]T(1,2,0)", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("mesh['a'=2,'b'=2] {'b'}", ((0, 1), (2, 3))),
        ("mesh['a'=2,'b'=2] {'a'}", ((0, 2), (1, 3))),
        ("mesh['a'=2,'b'=2] {'b','a'}", ((0, 2, 1, 3),)),
        ("mesh['a'=4] {'a':(1)2}", ((0, 2), (1, 3))),
        ("mesh['a'=4] {'a':(2)2}", ((0, 1), (2, 3))),
        ("mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}", ((0, 2), (1, 3))),
    ],
)
def test_replica_groups(text: str, groups: Any) -> None:
    line = f"  ROOT y = f32[4] all-reduce(x), replica_groups={text}, to_apply=add"
    module = entry(line, f"HloModule m\n{ADD}")
    assert module.entry.root.attributes.replica_groups == groups
    assert f"replica_groups={text}, to_apply" in module.to_hlo()


@pytest.mark.parametrize(
    "text",
    ["[2,2]<=[4]T(0)", "[2,2]<=[5]", "[4]<=[4]", "[1,99999999999]<=[99999999999]", "mesh[a=2] {'a'}",
     "mesh['a'=2] {'b'}", "mesh['a'=2,'a'=2] {'a'}", "mesh['a'=4] {'a':(3)2}", "{{0,1}", "none", "{{-1}}",
     "[2,2]<=[2,2]T(0,0)"],
)  # fmt: skip
def test_replica_groups_that_are_none(text: str) -> None:
    error = fault(
        f"{ADD}ENTRY e {{ x = f32[4] parameter(0) y = f32[4] all-reduce(x), replica_groups={text}, to_apply=add }}"
    )
    assert error.kind in ("syntax", "invalid_group")


ANNOTATED = [
    "sharding={replicated}",
    "sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}",
    "sharding={{maximal device=0}, {devices=[2]0,1 metadata={op_name=\"a\"}}}",
    "sharding={mesh['x'=2], [{'x'}, {?}], replicated={}}",
    'frontend_attributes={a="b",_c.d={e}}',
    "backend_config={uplo = 76 : ui8}",
    'backend_config="fast"',
    "control-predecessors={x}",
    'parameter_replication={true,false}, statistics={visualizing_index=0}',
]  # fmt: skip


@pytest.mark.parametrize("words", ANNOTATED)
def test_what_means_nothing_here_is_printed_back(words: str) -> None:
    assert f"ROOT y = f32[4] negate(x), {words}\n" in entry(f"  ROOT y = f32[4] negate(x), {words}").to_hlo()


def test_the_numbers_of_a_long_sharding_are_passed_over() -> None:
    parts = ", ".join(["{replicated}"] * 5)
    numbered = f'sharding={{{parts}, /*index=5*/{{replicated}}, {{maximal device=0 metadata={{op_name="/*a*/"}}}}}}'
    printed = entry(f"  ROOT y = f32[4] negate(x), {numbered}").to_hlo()
    assert f"negate(x), {numbered.replace('/*index=5*/', '')}\n" in printed


@pytest.mark.parametrize(
    "text",
    [
        "module @jit_f attributes {mhlo.num_partitions = 1 : i32} {\n  func.func public @main() {\n  }\n}",
        "#loc = loc(unknown)\n#loc1 = loc(unknown)\nmodule {\n  func.func @main() {\n  }\n}",
    ],
)
def test_mlir_is_told_from_hlo(text: str) -> None:
    error = fault(text)
    assert "this is MLIR" in error.message
    assert "dialect='hlo'" in error.hints[0]


def test_a_computation_may_be_called_module() -> None:
    assert xb.parse_hlo("module { func.func = f32[2] parameter(0) }").entry.name == "module"


def test_metadata_is_printed_where_it_is_asked_for() -> None:
    words = 'metadata={op_name="a/b" source_file="f.py" source_line=3 profile_type={1}}'
    module = entry(f"  ROOT y = f32[4] negate(x), {words.replace(' ', ', ')}")
    assert words in module.to_hlo(metadata=True)
    assert "metadata" not in module.to_hlo()
    assert "source_file" not in entry("  ROOT y = f32[4] negate(x)").to_hlo(metadata=True)


def test_the_pairs_of_send_and_recv_come_from_their_frontend_attributes() -> None:
    pairs = '_xla_send_recv_source_target_pairs="{{0,1},{1,2}}"'
    module = entry(
        "  t = token[] after-all()\n"
        f'  s = (f32[4], u32[], token[]) send(x, t), channel_id=7, frontend_attributes={{{pairs},a="b"}}\n'
        "  d = token[] send-done(s), channel_id=7\n"
        f"  r = (f32[4], u32[], token[]) recv(t), channel_id=8, frontend_attributes={{{pairs}}}\n"
        "  ROOT e = (f32[4], token[]) recv-done(r), channel_id=8"
    )
    for name in ("s", "r"):
        assert module.entry[name].attributes.source_target_pairs == ((0, 1), (1, 2))
    text = module.to_hlo()
    assert xb.parse_hlo(text).to_hlo() == text
    assert f'frontend_attributes={{{pairs},a="b"}}' in text


def test_a_header_is_kept() -> None:
    words = (
        "input_output_alias={ {}: (0, {}, may-alias) }, entry_computation_layout={(f32[4]{0})->f32[4]{0}}, "
        'replica_count=2, frontend_attributes={a="b"}'
    )
    text = f"HloModule m, is_scheduled=true, {words}\n\nENTRY e {{\n  ROOT x = f32[4] parameter(0)\n}}\n"
    module = xb.parse_hlo(text)
    assert module.is_scheduled
    assert module.to_hlo() == text


def test_layouts_are_kept_and_mean_nothing() -> None:
    module = xb.parse_hlo(
        "ENTRY e { x = f32[2,3]{0,1:T(8,128)S(5)} parameter(0) y = f32[3,2]{1,0} transpose(x), dimensions={1,0} "
        "ROOT z = f32[3,2] negate(f32[3,2] y) }"
    )
    assert "f32[2,3]{0,1:T(8,128)S(5)} parameter(0)" in module.to_hlo()
    assert str(module.entry.root.shape) == "f32[3,2]"


def test_instructions_know_their_line() -> None:
    module = xb.parse_hlo(
        "ENTRY e {\n  x = f32[] parameter(0)\n\n  y = negate(abs(x))\n  z = f32[] negate(y)\n}", "m.hlo"
    )
    lines = {i.name: (i.source.file, i.source.line) for i in module.entry.instructions if i.source}
    assert lines == {"x": ("m.hlo", 2), "abs.1": ("m.hlo", 4), "y": ("m.hlo", 4), "z": ("m.hlo", 5)}


# constants


@pytest.mark.parametrize(
    ("shape", "text", "value"),
    [
        ("f32[]", "-0", np.float32("-0.0")),
        ("f32[3]", "{1, -0.5e1, 2.}", np.array([1, -5, 2], np.float32)),
        ("f32[4]", "{inf, -inf, nan, -nan}", np.array([np.inf, -np.inf, np.nan, np.nan], np.float32)),
        ("s32[2,2]", "{ { 1, 2 }, { 3, 4 } }", np.array([[1, 2], [3, 4]], np.int32)),
        ("s32[2,2]", "{{1,2,},{3,/*c*/4}}", np.array([[1, 2], [3, 4]], np.int32)),
        ("f32[2,0]", "{ {}, {} }", np.zeros((2, 0), np.float32)),
        ("f32[0,9999999999]", "{}", np.zeros((0, 9999999999), np.float32)),
        ("pred[3]", "{1, false, 2}", np.array([True, False, True])),
        ("pred[]", "true", np.bool_(True)),
        ("u64[]", "18446744073709551615", np.uint64(2**64 - 1)),
        ("s64[]", "18446744073709551615", np.int64(-1)),
        ("s4[2]", "{-8, 7}", np.array([-8, 7], ml_dtypes.int4)),
        ("c64[2]", "{(1, -2), (nan, 3)}", np.array([1 - 2j, complex(np.nan, 3)], np.complex64)),
        ("c128[]", "(-0, 1)", np.complex128(complex(-0.0, 1))),
        ("bf16[]", "0.1001", ml_dtypes.bfloat16(0.1)),
        ("f8e4m3fn[]", "449", ml_dtypes.float8_e4m3fn(448)),
    ],
)
def test_constants(shape: str, text: str, value: Any) -> None:
    (found,) = xb.parse_hlo(f"ENTRY e {{ x = {shape} constant({text}) }}").entry.instructions
    literal = found.attributes.literal
    assert (literal.dtype, literal.shape) == (value.dtype, value.shape)
    is_number = literal == literal
    assert literal[is_number].tobytes() == value[is_number].tobytes()
    assert repr(found) == f"x = {shape} constant({text})"


def test_the_payload_of_a_nan_is_kept() -> None:
    (found,) = xb.parse_hlo("ENTRY e { x = f32[2] constant({nan(0x1), -nan(0x7)}) }").entry.instructions
    assert found.attributes.literal.view(np.uint32).tolist() == [0x7F800001, 0xFF800007]


@pytest.mark.parametrize(
    ("shape", "text", "kind", "place"),
    [
        ("f32[100]", "{1, ...}", "syntax", "..."),
        ("s8[1]", "{200}", "invalid_literal", "200"),
        ("u32[]", "-1", "invalid_literal", "-1"),
        ("f32[1]", "{1e39}", "invalid_literal", "1e39"),
        ("s32[2]", "{1, 2.5}", "invalid_literal", "2.5"),
        ("f32[]", ".5", "invalid_literal", ".5"),
        ("f32[]", "1_0", "invalid_literal", "1_0"),
        ("f32[]", "{1}", "shape_mismatch", "{1}"),
        ("f32[2]", "{1, 2, 3}", "shape_mismatch", "3"),
        ("f32[2]", "{1}", "shape_mismatch", "}"),
        ("f32[2]", "{1 2}", "syntax", "2}"),
        ("f32[2]", "{1, 2", "syntax", ""),
        ("f32[9999999999999]", "{1}", "shape_mismatch", "}"),
        ("c64[]", "1", "syntax", "1"),
        ("c64[]", "(1, 2, 3)", "shape_mismatch", ""),
        ("f8e8m0fnu[]", "-1", "invalid_literal", "-1"),
        ("(f32[])", "(1)", "syntax", ""),
    ],
)
def test_constants_that_are_none(shape: str, text: str, kind: str, place: str) -> None:
    begin = f"ENTRY e {{ x = {shape} constant("
    error = fault(f"{begin}{text}) }}")
    assert error.kind == kind, error
    if place:
        assert error.faults[0].column == len(begin) + text.index(place) + 1, error


ELIDED = "ENTRY e { x = f32[100] constant({...}) y = f32[100] constant({...}) ROOT z = add(x, y) }"


def test_an_elided_constant_is_read_checked_drawn_and_printed() -> None:
    module = xb.parse_hlo(ELIDED)
    assert xb.check(module).kind == "ok"
    assert "{...}" in str(module)
    assert xb.parse_hlo(str(module)).to_hlo() == str(module)
    assert "z" in str(xb.viz(module))
    assert xb.diff(module, xb.parse_hlo(ELIDED)).same


def test_whoever_needs_the_elements_of_an_elided_constant_is_refused_by_name() -> None:
    with pytest.raises(XbuildError, match=r"elements of %x .*f32\[100\].*--xla_dump_large_constants"):
        evaluate(xb.parse_hlo(ELIDED).entry)
    with pytest.raises(XbuildError, match="left out of the text"):
        np.asarray(xb.parse_hlo(ELIDED).entry.instructions[0].attributes.literal)


@pytest.mark.parametrize(
    ("shape", "text", "first"), [("f32[2,3]", "1.5", 1.5), ("c64[2]", "(1, 2)", 1 + 2j), ("pred[3]", "true", True)]
)
def test_one_number_is_the_first_element_as_in_xla(shape: str, text: str, first: Any) -> None:
    (found,) = xb.parse_hlo(f"ENTRY e {{ x = {shape} constant({text}) }}").entry.instructions
    assert found.attributes.literal.reshape(-1).tolist() == [first, *[0] * (found.attributes.literal.size - 1)]
    assert found.attributes.literal.dtype == found.shape.dtype.dtype


@pytest.mark.parametrize("dtype", [t for t in PRIMITIVES.values() if t.is_float and t.bits <= 16], ids=str)
def test_every_small_float_comes_back(dtype: Any) -> None:
    bits = np.arange(1 << max(dtype.bits, 4), dtype=np.uint16 if dtype.bits == 16 else np.uint8)
    values = bits.view(dtype.dtype)
    builder = xb.Builder("b")
    text = xb.Module("m", builder.build(xb.ops.constant(builder, literal=values))).to_hlo()
    back = xb.parse_hlo(text).entry.root.attributes.literal
    number = ~np.isnan(values.astype(np.float32))
    assert back[number].tobytes() == values[number].tobytes()
    assert np.isnan(back.astype(np.float32))[~number].all()


# faults


def test_a_fault_stands_at_its_place() -> None:
    assert str(fault("HloModule m\nENTRY e {\n  y = f32[2] parameter(0)\n  ROOT r = f32[2] negat(y)\n}\n")) == (
        "model.hlo:4:19: xbuild has no op 'negat' [unknown_opcode]\n"
        "      ROOT r = f32[2] negat(y)\n"
        "                      ^\n"
        "  hint: did you mean 'negate'?"
    )


def test_a_refusal_of_an_op_tells_operands_and_attributes() -> None:
    text = "ENTRY e {\n  x = f32[2,3] parameter(0)\n  r = f32[2,3] transpose(x), dimensions={0,0}\n}\n"
    assert str(fault(text)) == (
        "model.hlo:3:16: transpose: permutation [0, 0] is no permutation of the dimensions [0, 1] of operand f32[2,3] "
        "[not_permutation]\n"
        "      r = f32[2,3] transpose(x), dimensions={0,0}\n"
        "                   ^\n"
        "  operand      f32[2,3]  %x\n"
        "  permutation  (0, 0)"
    )


def test_several_faults_are_told_at_once_and_who_uses_them_is_not_blamed() -> None:
    error = fault(
        "ENTRY e {\n  x = f32[2] parameter(0)\n  a = f32[2] foo(x)\n  b = f32[2] add(a, x)\n"
        "  c = f32[3] negate(x)\n  d = f32[2] negate(x), colour=3\n  ROOT r = f32[2] add(b, d)\n}\n"
    )
    assert [(each.kind, each.line) for each in error.faults] == [
        ("unknown_opcode", 3), ("shape_mismatch", 5), ("unknown_attribute", 6),
    ]  # fmt: skip
    assert error.kind == "unknown_opcode"
    assert len(re.findall(r"^ *\^$", str(error), re.MULTILINE)) == 3


@pytest.mark.parametrize(
    ("count", "told", "end"),
    [(20, 20, ""), (21, 20, "\n\nand 1 more"), (999, 20, "\n\nand 979 more"),
     (3000, 20, "\n\nand 980 more; reading stopped after 1000 faults")],
)  # fmt: skip
def test_of_many_faults_twenty_are_told(count: int, told: int, end: str) -> None:
    lines = "\n".join(f"  y{n} = f32[] foo(x)" for n in range(count))
    error = fault(f"ENTRY e {{\n  x = f32[] parameter(0)\n{lines}\n}}\n")
    assert len(error.faults) == told
    assert str(error).endswith(f"'floor'?{end}"), str(error)[-200:]


def test_faults_of_several_computations_are_told_at_once() -> None:
    error = fault(
        "HloModule m, colour=3\n\na (x: f33[]) -> f32[] {\n  x = f32[] parameter(0)\n}\n\n"
        "b {\n  x = f32[2] parameter(0)\n  c = f32[2] call(x), to_apply=a\n  y = f32[] foo(x)\n}\n\n"
        "c {\n}\n\na {\n  x = f32[] parameter(0)\n}\n\n"
        "ENTRY d {\n  x = f32[2] parameter(0)\n  y = f32[2] call(x), to_apply=b\n  ROOT z = f32[2] negate(xx)\n}\n"
    )
    assert [(each.kind, each.line) for each in error.faults] == [
        ("unknown_attribute", 1), ("syntax", 3), ("unknown_opcode", 10), ("syntax", 13), ("duplicate_name", 16),
        ("undefined_name", 23),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind", "place", "says"),
    [
        ("ENTRY e { x=f32[2] parameter(0) }", "syntax", "x=", "a blank is wanted"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] negate(z) }", "undefined_name", "z)", "'z'"),
        ("ENTRY e { weight = f32[2] parameter(0) y = f32[2] negate(wieght) }", "undefined_name", "wieght", "'weight'"),
        ("ENTRY e { x = f32[2] parameter(0) x = f32[2] negate(x) }", "duplicate_name", "x = f32[2] negate", "line 1"),
        ("ENTRY a { x = f32[] parameter(0) }\nENTRY b { x = f32[] parameter(0) }", "syntax", "ENTRY b",
         "one in a module"),
        ("a { x = f32[] parameter(0) }\na { x = f32[] parameter(0) }", "duplicate_name", "a { x = f32[]", "'a'"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] reverse(x) }", "missing_attribute", "reverse", "dimensions"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] reverse(x), dimension={0} }", "unknown_attribute", "dimension=",
         "did you mean 'dimensions'"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] reverse(x), dimensions={0}, dimensions={0} }",
         "duplicate_attribute", "dimensions={0} }", "twice"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] add(x) }", "arity_mismatch", "add", "2 are wanted: lhs, rhs"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] negate(f32[3] x) }", "shape_mismatch", "x) }", "f32[3]"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] parameter(0) }", "duplicate_parameter", "0) }", "parameter 0"),
        ("ENTRY e { x = f32[2] parameter(1) }", "missing_parameter", " x = ", "no parameter 0"),
        ("ENTRY e { x = F32[2] parameter(0) }", "unknown_opcode", "F32", "lower case"),
        ("ENTRY e () -> f32[3] { x = f32[2] parameter(0) }", "shape_mismatch", "f32[3]", "f32[2]"),
        ("ENTRY e { }", "syntax", " }", "no instructions"),
        ("ENTRY e { x = f32[2] parameter(0)", "syntax", "", "the end of the text"),
        ("", "syntax", "", "a computation is wanted"),
        ("HloModule m, colour=3\ne { x = f32[] parameter(0) }", "unknown_attribute", "colour", "replica_count"),
        ("HloModule m, replica_count=0\ne { x = f32[] parameter(0) }", "syntax", "0\n", "at least 1"),
        ("HloModule m, replica_count=2048, num_partitions=1024\ne { x = f32[] parameter(0) }", "syntax", "1024\n",
         "2097152 devices, and 1048576 are the most"),
        ("HloModule m, replica_cont=2\ne { x = f32[] parameter(0) }", "unknown_attribute", "replica_cont",
         "did you mean 'replica_count'"),
        ("relu { x = f32[] parameter(0) }\nENTRY e { x = f32[2] parameter(0) y = f32[2] call(x), to_apply=rleu }",
         "undefined_name", "rleu", "did you mean 'relu'"),
        ("ENTRY e { abc = f32[2] parameter(0) y = f32[2] negate(abc), control-predecessors={abd} }", "undefined_name",
         "abd", "did you mean 'abc'"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] set-dimension-size(x, x), dimensions={0} }", "non_scalar",
         "set-dimension-size", "size"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] call(x), to_apply=f }", "undefined_name", "f }", "'f'"),
        ("ENTRY e { x = f32[2]{1} parameter(0) }", "syntax", "{1}", "no order of the 1 dimensions"),
        ("ENTRY e { x = f32[?] parameter(0) }", "syntax", "?", "no extent"),
        ("ENTRY e { x = opaque[] parameter(0) }", "syntax", "opaque", "type opaque"),
        ("ENTRY e { x = f32[2] parameter(0) y = bf16[2] convert(x) z = f32[2] add(x, y) }", "element_type_mismatch",
         "add", "bf16 and f32"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] negate(x), metadata={op_nam=\"a\"} }", "unknown_attribute",
         "op_nam=", "did you mean 'op_name'"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] negate(x), sharding={replicate} }", "syntax", "replicate} }",
         "did you mean 'replicated'"),
        ("ENTRY e { x = pred[2] parameter(0) y = pred[2] compare(x, x), direction=EQUAL }", "invalid_attribute",
         "compare", "'EQ'"),
        ("ENTRY e { x = f32[2] parameter(0) true = f32[2] negate(x) }", "syntax", "true", "word of HLO"),
    ],
)  # fmt: skip
def test_faults(text: str, kind: str, place: str, says: str) -> None:
    error = fault(text)
    assert error.kind == kind, error
    assert says in str(error), error
    first = error.faults[0]
    at = (text.splitlines(keepends=True) or [""])[first.line - 1][first.column - 1 :]
    assert at.lstrip().startswith(place.strip()), (at, error)


def test_kinds_are_listed() -> None:
    assert TEXT_KINDS <= KINDS


# what real XLA reads


@pytest.mark.parametrize(
    ("shape", "size", "dimension", "is_read"),
    [("f32[4,<=3]", 4, 0, True), ("f32[<=4,3]", 3, 1, True), ("f32[<=4,<=3]", 3, 1, True), ("f32[4,3]", 3, 1, False),
     ("f32[<=4,3]", 2, 1, False), ("f32[4,<=3]", 4, 1, False)],
)  # fmt: skip
def test_a_dimension_set_to_all_of_it_may_be_written_plainly(
    shape: str, size: int, dimension: int, is_read: bool
) -> None:
    """XLA takes the bound for removed where a constant says so (DynamicDimensionInference, HandleSetDimensionSize)."""
    text = (
        "ENTRY e {\n  x = f32[4,3] parameter(0)\n  two = s32[] constant(2)\n"
        f"  y = f32[{'<=' * (dimension == 1)}4,{'<=' * (dimension == 0)}3] set-dimension-size(x, two), "
        f"dimensions={{{1 - dimension}}}\n  n = s32[] constant({size})\n"
        f"  ROOT r = {shape} set-dimension-size(y, n), dimensions={{{dimension}}}\n}}\n"
    )
    if not is_read:
        assert fault(text).kind == "shape_mismatch"
        return
    module = xb.parse_hlo(text)
    assert str(module.entry.root.shape) == shape
    assert xb.parse_hlo(module.to_hlo()).to_hlo() == module.to_hlo()


def test_only_a_constant_tells_that_a_dimension_is_whole() -> None:
    text = "ENTRY e { x = f32[4] parameter(0) n = s32[] parameter(1) r = f32[4] set-dimension-size(x, n), "
    assert "f32[<=4], and f32[4] is written" in str(fault(f"{text}dimensions={{0}} }}"))


MIXED = {
    "add": "f32[2] add(x, h)",
    "clamp": "bf16[2] clamp(x, h, x)",
    "concatenate": "f32[6] concatenate(x, h, x), dimensions={0}",
    "dynamic-update-slice": "f32[2] dynamic-update-slice(x, h, n)",
    "pad": "f32[2] pad(x, y), padding=0_0",
}


@pytest.mark.parametrize("spelling", MIXED)
def test_floats_of_one_instruction_have_one_precision(spelling: str) -> None:
    text = (
        "ENTRY e {\n  x = f32[2] parameter(0)\n  h = bf16[2] parameter(1)\n  y = bf16[] parameter(2)\n"
        f"  n = s32[] parameter(3)\n  ROOT r = {MIXED[spelling]}\n}}\n"
    )
    assert f"{spelling}: operands are bf16 and f32; in HLO text they have one precision" in str(fault(text))


def _padded(x: xb.Value, h: xb.Value) -> xb.Value:
    return xb.pad(h, xb.constant(x.builder, literal=np.float32(0.1)), [(1, 0, 0)])


@pytest.mark.parametrize(
    "function",
    [
        lambda x, h: xb.concat_in_dim([x, h, x], 0),
        lambda x, h: xb.dynamic_update_slice(h, x, [0]),
        lambda x, h: xb.dynamic_update_slice(x, h, [0]),
        lambda x, h: xb.clamp(x, h, x),
        _padded,
    ],
    ids=["concatenate", "narrow-update", "wide-update", "clamp", "pad"],
)
def test_operands_of_two_precisions_are_converted_in_text(function: Any) -> None:
    computation = xb.computation(xb.f32[2], xb.bf16[2])(function)
    again = xb.parse_hlo(str(computation)).entry
    assert "convert" in [each.opcode for each in again.instructions]
    arguments = np.float32([0.3, 1.7]), np.array([1, 2], ml_dtypes.bfloat16)
    ours, theirs = evaluate(computation, *arguments), evaluate(again, *arguments)
    np.testing.assert_array_equal(ours, theirs, strict=True)


# at length and from files


@pytest.mark.slow
@pytest.mark.parametrize("style", ["short", "percent", "full"])
def test_a_hundred_thousand_instructions_are_read(style: str) -> None:
    builder = xb.Builder("long")
    x = xb.ops.parameter(builder, number=0, shape=xb.f32[4, 4])
    for _ in range(25_000):
        y = xb.ops.transpose(xb.ops.add(x, x), permutation=(1, 0))
        x = xb.ops.get_tuple_element(xb.ops.tuple_([xb.ops.negate(y)]), index=0)
    text = xb.Module("long", builder.build(x)).to_hlo(style=style)
    module = xb.parse_hlo(text)
    assert len(module.entry.instructions) > 100_000


def test_the_command_line_reads_files_of_hlo(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.hlo", tmp_path / "bad.hlo"
    good.write_text(programs.loop().to_hlo())
    bad.write_bytes(b"ENTRY e {\n  x = f32[2] parameter(0)\n  y = f32[3] negate(x) \xff\n}\n")
    shown = CliRunner().invoke(main, ["show", str(good)])
    assert (shown.exit_code, shown.stdout) == (0, programs.loop().to_hlo())
    assert CliRunner().invoke(main, ["check", str(good)]).exit_code == 0
    refused = CliRunner().invoke(main, ["show", str(bad)])
    assert refused.exit_code == 1
    assert "bad.hlo:3:14: negate: the result is f32[2], and f32[3] is written [shape_mismatch]" in refused.stderr


BITS = """HloModule bits

ENTRY main (p: u64[2]) -> {root} {{
  p = u64[2] parameter(0)
  r = (u64[2], {dtype}[2]) rng-bit-generator(p), algorithm=rng_three_fry
  g = {dtype}[2] get-tuple-element(r), index=1
  ROOT z = {root} {line}
}}
"""


@pytest.mark.parametrize(
    ("dtype", "root", "line", "wanted"),
    [
        ("f32", "f32[2]", "copy(f32[2] g)", np.uint32([43444564, 2150618427])),
        ("f32", "f32[2]", "add(g, g)", np.uint32([86889128, 6269558])),
        ("f32", "f64[2]", "convert(f32[2] g)", np.float64([43444564, 2150618427])),
        ("f32", "s32[2]", "bitcast-convert(g)", np.uint32([43444564, 2150618427]).view(np.int32)),
        ("f32", "(f32[2], u64[2])", "tuple(g, p)", (np.uint32([43444564, 2150618427]), np.uint64([1, 2]))),
        ("s32", "s32[2]", "negate(g)", np.uint32([4251522732, 2144348869])),
        ("bf16", "bf16[2]", "copy(g)", np.uint16([59732, 54587])),
    ],
)
def test_random_bits_are_unsigned_whatever_is_written(dtype: str, root: str, line: str, wanted: Any) -> None:
    """As real XLA computes these programs, whose parser takes what is written."""
    module = xb.parse_hlo(BITS.format(dtype=dtype, root=root, line=line))
    found = evaluate(module.entry, np.uint64([1, 2]))
    for one, other in zip(*((each if isinstance(each, tuple) else (each,)) for each in (found, wanted)), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert "u32" in str(module) or "u16" in str(module)


@pytest.mark.parametrize(
    ("dtype", "root", "line"),
    [
        ("f32", "f32[2]", "sqrt(g)"),
        ("f32", "f64[2]", "copy(g)"),
        ("f32", "f32[3]", "copy(g)"),
        ("pred", "pred[2]", "copy(g)"),
    ],
)
def test_random_bits_are_no_floats(dtype: str, root: str, line: str) -> None:
    with pytest.raises(xb.XbuildError):
        xb.parse_hlo(BITS.format(dtype=dtype, root=root, line=line))


def test_a_number_of_thousands_of_digits_in_a_table_of_frames_is_passed_over() -> None:
    table = f"FileLocations\n1 {{file_name_id=1 line={'1' * 5000}}}"
    text = f"HloModule m\n\n{table}\n\nENTRY e {{ ROOT x = f32[] parameter(0) }}\n"
    assert xb.parse_hlo(text, origins=True).entry.root.name == "x"
