"""What StableHLO text says beside the values: attributes, meshes, shardings, composites, kept through both texts."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb
from tests.support.converter import Converter

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=2]>'
CUT = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}'


def module(body: str, arguments: str = "%a: tensor<4x4xf32>", results: str = "tensor<4x4xf32>", head: str = "") -> str:
    return f"module @m {{\n{head}\nfunc.func public @main({arguments}) -> {results} {{\n{body}\n}}\n}}"


PROGRAMS = {
    "kernel_name": module(
        '%0 = stablehlo.custom_call @tpu_custom_call(%a) {kernel_name = "k", has_side_effect = true} : '
        "(tensor<4x4xf32>) -> tensor<4x4xf32>\nreturn %0 : tensor<4x4xf32>"
    ),
    "typed_attributes": module(
        "%0 = stablehlo.add %a, %a {bar = 1 : i32, flag, table = dense<[1, 2]> : tensor<2xi64>} : tensor<4x4xf32>\n"
        "return %0 : tensor<4x4xf32>"
    ),
    "meshes": module(
        "%0 = stablehlo.sine %a : tensor<4x4xf32>\nreturn %0 : tensor<4x4xf32>", f"%a: tensor<4x4xf32> {CUT}", head=MESH
    ),
    "shardings_of_results": module(
        "%0 = stablehlo.sine %a : tensor<4x4xf32>\nreturn %0, %a : tensor<4x4xf32>, tensor<4x4xf32>",
        results=f"(tensor<4x4xf32> {CUT}, tensor<4x4xf32>)", head=MESH,
    ),
    "shardings_of_a_callee": module(
        "%0 = call @f(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>\nreturn %0 : tensor<4x4xf32>",
        head=f"{MESH}\nfunc.func private @f(%a: tensor<4x4xf32> {CUT}) -> tensor<4x4xf32> {{\n"
        "%0 = stablehlo.cosine %a : tensor<4x4xf32>\nreturn %0 : tensor<4x4xf32>\n}",
    ),
    "tiles_of_results": module(
        "return %a, %a : tensor<4x4xf32>, tensor<4x4xf32>",
        results='(tensor<4x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}, tensor<4x4xf32>)',
    ),
    "tiles_of_the_result": module(
        "return %a : tensor<4x4xf32>", results='(tensor<4x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})'
    ),
    "sharding_group": module("sdy.sharding_group %a group_id = 7 : tensor<4x4xf32>\nreturn %a : tensor<4x4xf32>"),
    "scalar_layout": module(
        "%0 = stablehlo.custom_call @f(%a) {operand_layouts = [dense<> : tensor<0xindex>], result_layouts = "
        "[dense<> : tensor<0xindex>]} : (tensor<i32>) -> tensor<i32>\nreturn %0 : tensor<i32>",
        "%a: tensor<i32>", "tensor<i32>",
    ),
    "stated_defaults": module(
        "%0 = stablehlo.slice %a [0:4:1, 1:4:1] : (tensor<4x4xf32>) -> tensor<4x3xf32>\n"
        "%1 = stablehlo.compare LT, %0, %0, FLOAT : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xi1>\n"
        "return %1 : tensor<4x3xi1>",
        results="tensor<4x3xi1>",
    ),
    "function_of_chlo": module("%0 = chlo.atanh %a : tensor<4x4xf32> -> tensor<4x4xf32>\nreturn %0 : tensor<4x4xf32>"),
    "empty_index_list": module(
        "%0 = stablehlo.dynamic_slice %a, , sizes = [] : (tensor<i32>) -> tensor<i32>\nreturn %0 : tensor<i32>",
        "%a: tensor<i32>", "tensor<i32>",
    ),
    "composite": module(
        '%0 = stablehlo.composite "own.op" %a {composite_attributes = {n = 1 : i64}, decomposition = @f, version = 2 : '
        "i32} : (tensor<4x4xf32>) -> tensor<4x4xf32>\nreturn %0 : tensor<4x4xf32>",
        head="func.func private @f(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {\nreturn %a : tensor<4x4xf32>\n}",
    ),
    "exchange_along_two_dimensions": module(
        '%0 = "stablehlo.all_to_all"(%a) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : '
        "tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<4x4xf32>) -> tensor<8x2xf32>\n"
        "return %0 : tensor<8x2xf32>",
        results="tensor<8x2xf32>",
    ),
    "unspecified_version": module(
        "%0 = stablehlo.custom_call @f(%a) {api_version = 0 : i32} : (tensor<4x4xf32>) -> tensor<4x4xf32>\n"
        "return %0 : tensor<4x4xf32>"
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_both_texts_keep_the_structure(text: str) -> None:
    read = xb.parse_stablehlo(text)
    assert xb.same_structure(read, xb.parse_hlo(read.to_hlo())), xb.diff(read, xb.parse_hlo(read.to_hlo()))
    again = xb.parse_stablehlo(read.to_stablehlo())
    assert xb.same_structure(read, again), xb.diff(read, again)
    assert xb.diff(read, again).same
    assert again.to_stablehlo() == read.to_stablehlo()


@pytest.mark.oracle
def test_jaxlib_takes_what_is_written() -> None:
    with Converter() as converter:
        for name in PROGRAMS.keys() - {"empty_index_list"}:
            assert converter.hlo(xb.parse_stablehlo(PROGRAMS[name]).to_stablehlo()).startswith("HloModule"), name


def test_an_attribute_without_a_prefix_is_written_as_it_was() -> None:
    written = xb.parse_stablehlo(PROGRAMS["typed_attributes"]).to_stablehlo()
    assert "{bar = 1 : i32, flag = unit, table = dense<[1, 2]> : tensor<2xi64>}" in written


def test_attributes_that_mean_something_are_no_annotations() -> None:
    read = xb.parse_stablehlo(PROGRAMS["kernel_name"])
    assert read.entry.root.annotations["frontend_attributes"] == {"mlir.kernel_name": '"k"'}
    assert read.entry.root.attributes.custom_call_has_side_effect


def test_the_total_order_is_no_default() -> None:
    texts = [PROGRAMS["stated_defaults"].replace("FLOAT", kind) for kind in ("FLOAT", "TOTALORDER")]
    one, other = map(xb.parse_stablehlo, texts)
    assert not xb.same_structure(one, other)


def test_meshes_are_partitioned_after_the_trip() -> None:
    read = xb.parse_stablehlo(PROGRAMS["meshes"])
    found = xb.shard.partition(xb.parse_stablehlo(read.to_stablehlo()))
    assert found.mesh == xb.Mesh(x=2, y=2)
    assert found.module.entry.parameters[0].shape == xb.f32[2, 2]


def test_a_complex_number_is_true_where_its_real_part_is_not_0() -> None:
    text = module("%0 = stablehlo.convert %a : (tensor<3xcomplex<f32>>) -> tensor<3xi1>\nreturn %0 : tensor<3xi1>",
                  "%a: tensor<3xcomplex<f32>>", "tensor<3xi1>")  # fmt: skip
    found = xb.evaluate(xb.parse_stablehlo(text).entry, np.array([1j, 2, 0], np.complex64))
    assert found.tolist() == [False, True, False]


MIXED = [
    ("f32", "i32", "f32", "s32", "f32", np.float32),
    ("bf16", "i8", "bf16", "s8", "bf16", None),
    ("bf16", "i32", "f32", "s32", "f32", None),
    ("i4", "f32", "f32", "s4", "f32", np.float32),
    ("i1", "f32", "f32", "pred", "f32", np.float32),
    ("complex<f32>", "f32", "complex<f32>", "f32", "c64", np.complex64),
]


@pytest.mark.parametrize(
    ("lhs", "rhs", "result", "poorer", "converted", "dtype"), MIXED, ids=lambda each: str(each)[:12]
)
def test_products_of_two_kinds(
    lhs: str, rhs: str, result: str, poorer: str, converted: str, dtype: type | None
) -> None:
    dot = (
        f"%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3x{lhs}>, tensor<3x2x{rhs}>) -> "
        f"tensor<2x2x{result}>\nreturn %0 : tensor<2x2x{result}>"
    )
    read = xb.parse_stablehlo(module(dot, f"%a: tensor<2x3x{lhs}>, %b: tensor<3x2x{rhs}>", f"tensor<2x2x{result}>"))
    (convert,) = [each for each in read.entry.instructions if each.opcode == "convert"]
    assert (str(convert.operands[0].shape.dtype), str(convert.shape.dtype)) == (poorer, converted)  # type: ignore[union-attr]
    arguments = [np.arange(6).reshape(each.shape.dims).astype(each.shape.dtype.dtype) for each in read.entry.parameters]
    wide = np.complex128 if dtype is np.complex64 else np.float64
    wanted = arguments[0].astype(wide) @ arguments[1].astype(wide)
    np.testing.assert_array_equal(xb.evaluate(read.entry, *arguments).astype(wide), wanted)


def test_a_convolution_of_a_float_and_an_integer() -> None:
    convolution = (
        "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x1xbf16>, tensor<2x1x1xi4>) -> "
        "tensor<1x2x1xbf16>\nreturn %0 : tensor<1x2x1xbf16>"
    )
    read = xb.parse_stablehlo(module(convolution, "%a: tensor<1x3x1xbf16>, %b: tensor<2x1x1xi4>", "tensor<1x2x1xbf16>"))
    one, other = (np.ones(each.shape.dims, each.shape.dtype.dtype) for each in read.entry.parameters)
    assert xb.evaluate(read.entry, one, other).reshape(-1).tolist() == [2, 2]


TRANSFERS = """
    %t = stablehlo.create_token : !stablehlo.token
    %0 = "stablehlo.send"(%a, %t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>,
      is_host_transfer = true}> : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
    %1 = "stablehlo.send"(%a, %AFTER) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>,
      is_host_transfer = true}> : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
    %2:3 = "stablehlo.recv"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 3>,
      is_host_transfer = true}> : (!stablehlo.token) -> (tensor<2xf32>, tensor<i32>, !stablehlo.token)
    return %2#0, %2#1 : tensor<2xf32>, tensor<i32>"""


@pytest.mark.parametrize(("after", "kind"), [("0", "ok"), ("t", "error")])
def test_the_host_takes_one_send_after_the_other(after: str, kind: str) -> None:
    text = module(TRANSFERS.replace("AFTER", after), "%a: tensor<2xf32>", "(tensor<2xf32>, tensor<i32>)")
    read = xb.parse_stablehlo(text)
    assert xb.check(read).kind == kind
    if kind == "ok":
        found = xb.execute(read, [[np.ones(2, np.float32)]])[0]
        assert [np.asarray(each).tolist() for each in found] == [[0, 0], 0]


CALLS = ["LayoutConstraint", "InspectSharding", "MoveToHost", "annotate_device_placement", "xla.sdy.PropagationBarrier"]


@pytest.mark.parametrize("target", CALLS)
def test_calls_that_place_a_value_give_it(target: str) -> None:
    call = f"%0 = stablehlo.custom_call @{target}(%a) {{has_side_effect = true}} : (tensor<4x4xf32>) -> tensor<4x4xf32>"
    text = module(f"{call}\nreturn %0 : tensor<4x4xf32>", f"%a: tensor<4x4xf32> {CUT}", head=MESH)
    read = xb.parse_stablehlo(text)
    given = np.arange(16, dtype=np.float32).reshape(4, 4)
    np.testing.assert_array_equal(xb.evaluate(read.entry, given), given)
    found = xb.shard.partition(read)
    assert xb.check(found.module).kind == "ok"
    np.testing.assert_array_equal(found.run(given), given)


def test_values_of_a_sharding_group_have_one_sharding() -> None:
    group = "sdy.sharding_group %{} group_id = 7 : tensor<4x4xf32>"
    body = "%0 = stablehlo.sine %b : tensor<4x4xf32>\nreturn %0 : tensor<4x4xf32>"
    grouped = "\n".join([group.format("a"), group.format("b"), body])
    read = xb.parse_stablehlo(module(grouped, f"%a: tensor<4x4xf32> {CUT}, %b: tensor<4x4xf32>", head=MESH))
    assert [each.shape for each in xb.shard.partition(read).module.entry.parameters] == [xb.f32[2, 2]] * 2


def test_meshes_in_braces_are_those_in_quotes() -> None:
    text = """HloModule m, num_partitions=2, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=2]>}, note="n"}
    ENTRY e {
      ROOT p = f32[8] parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\\"x\\"}]>"}
    }"""
    read = xb.parse_hlo(text)
    assert 'frontend_attributes={xla.sdy.meshes="{mesh = #sdy.mesh<[\\"x\\"=2]>}",note="n"}' in read.to_hlo()
    assert xb.same_structure(read, xb.parse_stablehlo(read.to_stablehlo()))
    assert xb.shard.partition(read).module.entry.root.shape == xb.f32[4]


def test_how_counts_were_inferred_is_no_structure() -> None:
    groups = (
        "ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] all-gather(x), replica_groups=[1,2]<=[2], dimensions={0} }"
    )
    text = groups.replace("f32[2] all-gather", "f32[4] all-gather")
    read = xb.parse_hlo(text)
    assert read.num_replicas == 2
    assert xb.same_structure(read, xb.parse_hlo(read.to_hlo()))
    assert "replica_groups=[1,2]<=[2], dimensions={0}\n" in read.to_hlo()


def test_a_spelling_of_groups_ends_with_the_groups() -> None:
    text = """ENTRY e {
      x = f32[2,4] parameter(0)
      y = f32[2,4] all-to-all(x), dimensions={0}, replica_groups=[1,2]<=[2]
      ROOT z = f32[2,4] negate(y)
    }"""
    once = xb.parse_hlo(text).to_hlo()
    assert "replica_groups=[1,2]<=[2], dimensions={0}\n" in once
    assert xb.parse_hlo(once).to_hlo() == once
