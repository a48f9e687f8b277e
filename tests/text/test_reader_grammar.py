"""Grammar of HLO text: modules, computations, operands, shapes and replica groups; MLIR is told from it."""

from __future__ import annotations

from typing import Any

import pytest

import xbuild as xb
from tests.text.texts import ADD, entry, fault, root


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
        ("mesh['a'=2,'b'=2], device_ids=(3,1,0,2) {'b'}", ((3, 1), (0, 2))),
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
     "[2,2]<=[2,2]T(0,0)", "mesh['a'=2], device_ids=(0,0) {'a'}"],
)  # fmt: skip
def test_replica_groups_that_are_none(text: str) -> None:
    error = fault(
        f"{ADD}ENTRY e {{ x = f32[4] parameter(0) y = f32[4] all-reduce(x), replica_groups={text}, to_apply=add }}"
    )
    assert error.kind in ("syntax", "invalid_group")


@pytest.mark.parametrize(
    "text",
    [
        "module @jit_f attributes {mhlo.num_partitions = 1 : i32} {\n  func.func public @main() {\n  }\n}",
        "#loc = loc(unknown)\n#loc1 = loc(unknown)\nmodule {\n  func.func @main() {\n  }\n}",
    ],
)
def test_mlir_is_told_from_hlo(text: str) -> None:
    error = fault(text)
    assert "expected HLO text, got MLIR" in error.message
    assert "use xb.parse_stablehlo to read MLIR" in error.hints[0]


def test_a_computation_may_be_called_module() -> None:
    assert xb.parse_hlo("module { func.func = f32[2] parameter(0) }").entry.name == "module"


def test_instructions_know_their_line() -> None:
    module = xb.parse_hlo(
        "ENTRY e {\n  x = f32[] parameter(0)\n\n  y = negate(abs(x))\n  z = f32[] negate(y)\n}", "m.hlo"
    )
    lines = {i.name: (i.source.file, i.source.line) for i in module.entry.instructions if i.source}
    assert lines == {"x": ("m.hlo", 2), "abs.1": ("m.hlo", 4), "y": ("m.hlo", 4), "z": ("m.hlo", 5)}


def test_a_number_of_thousands_of_digits_in_a_table_of_frames_is_passed_over() -> None:
    table = f"FileLocations\n1 {{file_name_id=1 line={'1' * 5000}}}"
    text = f"HloModule m\n\n{table}\n\nENTRY e {{ ROOT x = f32[] parameter(0) }}\n"
    assert xb.parse_hlo(text, origins=True).entry.root.name == "x"
