"""`prove` on two programs: the layouts that are stated, those that runs show, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import xbuild as xb
from tests.equivalence.test_faults import ALONE
from tests.proving.reshard import programs
from xbuild.variance.specs import read_specs

MESH = "mesh['a'=2,'b'=4]"

GLOBAL = """HloModule layer, num_partitions=8
ENTRY e {
  x = f32[8,16] parameter(0), sharding={MESH, [{'a'}, {'b'}]}
  w = f32[16,12] parameter(1), sharding={MESH, [{'b'}, {}]}
  y = f32[8,12] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT z = f32[8,12] tanh(y), sharding={MESH, [RESULT]}
}""".replace("MESH", MESH)


def layer(result: str) -> xb.Module:
    """A layer whose result has this sharding."""
    return xb.parse_hlo(GLOBAL.replace("RESULT", result))


def without_result(module: xb.Module) -> xb.Module:
    """The program of each device, as XLA prints it: its text states no shardings of results."""
    return xb.parse_hlo(re.sub(r", frontend_attributes=\{xbuild[^\n]*\}(?=\n)", "", module.to_hlo()))


def unsharded(module: xb.Module) -> xb.Module:
    """The global program without the sharding of its result."""
    return xb.parse_hlo(re.sub(r"(ROOT [^\n]*), sharding=\{[^\n]*\}", r"\1", module.to_hlo()))


def without_any(module: xb.Module) -> xb.Module:
    """The program of each device, as newer XLA prints it: its text states no shardings at all."""
    text = re.sub(r"(parameter\(\d+\)), sharding=\{[^\n]*\}", r"\1", without_result(module).to_hlo())
    assert "sharding" not in text
    return xb.parse_hlo(text)


RESULTS = [
    "{'a'}, {}", "{}, {'b'}", "{'a'}, {'b'}", "{'b'}, {'a'}", "{'a','b'}, {}", "{'b','a'}, {}", "{}, {}",
    "{'b':(1)2}, {'a'}",
]  # fmt: skip


@pytest.mark.parametrize("result", RESULTS)
def test_layouts_that_no_text_states_are_found(result: str) -> None:
    whole = layer(result)
    cut = xb.shard.partition(whole)
    assert xb.prove(whole, cut).layouts == ()
    assert xb.prove(whole, without_any(cut.module)).layouts == ()
    found = xb.prove(unsharded(whole), without_result(cut.module))
    assert found, str(found)
    stated = () if result == "{}, {}" else (result,)
    named = [sentence.partition(", [")[2].removesuffix("]}") for sentence in found.layouts]
    assert [each.replace(" ", "") for each in named] == [each.replace(" ", "") for each in stated]
    assert all(sentence in str(found).replace("\n    ", " ") for sentence in found.layouts)


@pytest.mark.parametrize("result", RESULTS)
def test_a_fault_is_found_whatever_the_layout(result: str) -> None:
    whole = layer(result)
    text = without_result(xb.shard.partition(whole).module).to_hlo()
    wrong = xb.parse_hlo(re.sub(r"tanh\((\S+)\)", r"logistic(\1)", text))
    found = xb.prove(unsharded(whole), wrong)
    assert found.kind == "different"
    assert found.verdict.example is not None


def test_parts_in_another_order_are_a_layout_unless_one_is_stated() -> None:
    whole = layer("{'b'}, {'a'}")
    cut = without_result(xb.shard.partition(layer("{'a'}, {'b'}")).module)
    assert xb.prove(whole, cut).kind == "equal"  # the shardings of the global result do not fit, so runs show others
    mesh = xb.Mesh(a=2, b=4)
    assert xb.prove(whole, cut, out_specs=xb.P("a", "b"), mesh=mesh)
    assert xb.prove(layer("{'a'}, {}"), without_result(xb.shard.partition(layer("{'a'}, {}")).module))
    turned = without_result(xb.shard.partition(layer("{'b','a'}, {}")).module)
    assert xb.prove(unsharded(whole), turned, out_specs=xb.P(("b", "a")), mesh=mesh)
    assert xb.prove(unsharded(whole), turned, out_specs=xb.P(("a", "b")), mesh=mesh).kind == "different"


def test_specs_replace_stated_layouts() -> None:
    whole, mesh = layer("{'a'}, {}"), xb.Mesh(a=2, b=4)
    cut = re.sub(r", sharding=\{[^\n]*\}(?=\n)", "", without_result(xb.shard.partition(whole).module).to_hlo())
    given = {"in_specs": [xb.P("a", "b"), xb.P("b")], "out_specs": xb.P("a"), "mesh": mesh}
    assert xb.prove(GLOBAL.replace("RESULT", "{'a'}, {}"), cut, **given)
    with pytest.raises(xb.ShapeError):  # the parts have other shapes
        xb.prove(whole, cut, **{**given, "in_specs": [xb.P("a", "b"), xb.P(None, "b")]})


def test_two_global_programs() -> None:
    whole = layer("{'a'}, {}")
    other = xb.parse_hlo(whole.to_hlo().replace("dot(x, w)", 'dot(x, w), metadata={op_name="again"}'))
    assert xb.prove(whole, other)
    assert xb.prove(whole, xb.parse_hlo(whole.to_hlo().replace("tanh(", "sine("))).kind == "different"


def test_the_resharding_of_a_partial_sum() -> None:
    whole, right, wrong = programs(2, 4, 2)
    assert xb.prove(whole, right)
    found = xb.prove(whole, wrong)
    assert found.kind == "different"
    difference = found.verdict.difference
    assert difference is not None
    assert difference.value is not None
    assert difference.value.name == "g"


TERMS = """HloModule terms, num_partitions=2
ENTRY e {
  x = DTYPE[4] parameter(0), sharding={devices=[1,2]<=[2] last_tile_dims={unreduced}}
  ROOT y = DTYPE[4] copy(x), sharding={replicated}
}"""
SUMMED = """HloModule summed, num_partitions=2
add { a = DTYPE[] parameter(0)  b = DTYPE[] parameter(1)  ROOT c = DTYPE[] add(a, b) }
ENTRY e_spmd {
  x = DTYPE[4] parameter(0), sharding={unreduced}
  ROOT y = DTYPE[4] all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
}"""


@pytest.mark.parametrize("dtype", ["f32", "bf16", "s32", "u64", "s8"])
def test_terms_of_a_sum_in_each_type(dtype: str) -> None:
    whole, cut = TERMS.replace("DTYPE", dtype), SUMMED.replace("DTYPE", dtype)
    assert xb.prove(whole, cut), str(xb.prove(whole, cut))
    alone = re.sub(r"all-reduce\(x\),[^\n]*", "copy(x)", cut)
    assert xb.prove(whole, alone).kind == "different"


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((layer("{}, {}"),), {}, "prove: expected a JAX function with its arguments, a dump, or two programs"),
        ((layer("{}, {}"), 3), {}, "prove: expected a program"),
        ((layer("{}, {}"), layer("{}, {}")), {"other": 1}, "prove: unexpected keyword arguments: other"),
    ],
)
def test_wrong_arguments(arguments: tuple[Any, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        xb.prove(*arguments, **options)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"in_specs": [xb.P("a")]}, "invalid_attribute", "in_specs has 1 entries, but the parameters have 2 arrays"),
        ({"out_specs": xb.P("c")}, "unbound_axis", "out_specs[0] is P('c')"),
        ({"out_specs": xb.P("a", None, "b")}, "rank_mismatch", "it has 3 entries, but the array has rank 2"),
    ],
)
def test_specs_that_do_not_fit(options: dict[str, Any], kind: str, message: str) -> None:
    whole = layer("{'a'}, {}")
    with pytest.raises(xb.ShapeError) as caught:
        xb.prove(whole, xb.shard.partition(whole), **options)
    assert caught.value.kind == kind
    assert message in str(caught.value)


AXES = st.sampled_from(["a", "b", "long_name"])
ENTRIES = st.lists(st.none() | AXES | st.lists(AXES, min_size=1, max_size=3).map(tuple), max_size=4)


SPECS = st.builds(lambda e, u, r: xb.P(*e, unreduced=u, reduced=r), ENTRIES, st.sets(AXES), st.sets(AXES))


@given(st.lists(SPECS, min_size=1, max_size=3))
def test_specs_are_read_as_they_are_printed(specs: list[xb.P]) -> None:
    assert read_specs("; ".join(map(repr, specs))) == specs


NO_SPECS = [
    "P(1)", "Q('a')", "P('a'", "'a'", "P(open('x'))", "P('a', unreduced=3)", "P(*['a'])", "P(a='b')", "P(**{})",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_SPECS)
def test_texts_that_are_no_specs(text: str) -> None:
    with pytest.raises(xb.ShapeError, match="spec"):
        read_specs(text)


def test_a_function_whose_code_only_one_program_has_is_undecided() -> None:
    called = """HloModule called
ENTRY e {
  x = f32[4] parameter(0)
  ROOT y = f32[4] custom-call(x), custom_call_target="CustomSPMDPartitioning"
}"""
    inlined = xb.computation(xb.f32[4])(lambda x: xb.tanh(x) * 2.0)
    for pair in ((called, inlined), (inlined, called)):
        assert xb.prove(*pair).kind == "undecided"


def test_a_program_that_the_check_refuses_is_different() -> None:
    whole = xb.computation(xb.f32[8])(lambda x: x + x)
    found = xb.prove(whole, ALONE)
    assert found.kind == "different"
    assert "the check refuses the other program: deadlock" in str(found)
