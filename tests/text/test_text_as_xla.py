"""Odd forms of HLO text: read where real XLA reads them, with the bits it gives, and refused where it refuses them."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb
from tests.text.real_xla import refusals

ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"


def constant(dtype: str, word: str) -> str:
    return f"HloModule m\nENTRY e {{\n  ROOT c = {dtype}[] constant({word})\n}}\n"


def collective(words: str, counts: str) -> str:
    return f"HloModule m{counts}\n{ADD}ENTRY e {{\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] {words}\n}}\n"


def aliased(alias: str, key: str = "input_output_alias") -> str:
    return f"HloModule m, {key}={alias}\nENTRY e {{\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] negate(x)\n}}\n"


def sharded(sharding: str) -> str:
    return f"HloModule m\nENTRY e {{\n  x = f32[2] parameter(0), sharding={sharding}\n  ROOT y = f32[2] negate(x)\n}}\n"


READ = [
    ("f32", "nan(0x1)", "0100807f"), ("f32", "-nan(0x7fffff)", "ffffffff"), ("f16", "nan(0x3ff)", "ff7f"),
    ("f32", "nan(0x8000000000000)", "0000c07f"), ("f64", "nan(0x1)", "010000000000f07f"), ("bf16", "-nan(0x1)", "81ff"),
    ("f8e5m2", "nan(0x1)", "7d"), ("f8e4m3", "-nan(0x2)", "fa"), ("f8e3m4", "nan(0xf)", "7f"),
    ("f8e4m3fn", "nan(0x8000000000000)", "7f"), ("f32", "nan(0x00000000000000000000001)", "0100807f"),
    ("f32", "-.5", "000000bf"), ("f8e5m2", "61439", "7b"), ("f8e8m0fnu", "1e-50", "00"), ("f16", "65519", "ff7b"),
    ("s8", "18446744073709551613", "fd"), ("u64", "-2", "feffffffffffffff"),
    ("s32", "18446744071562067968", "00000080"),
]  # fmt: skip
REFUSED = [
    *((dtype, "nan(0x0)") for dtype in ("f8e5m2", "f8e4m3fn", "bf16", "f16", "f32", "f64")),
    ("f32", "nan(0x800000)"), ("f16", "nan(0x400)"), ("bf16", "nan(0x80)"), ("f64", "nan(0x10000000000000)"),
    ("f8e5m2", "nan(0x4)"), ("f8e4m3", "nan(0x8)"), ("f8e3m4", "nan(0x10)"), ("f8e4m3fn", "nan(0x1)"),
    ("f8e5m2fnuz", "nan(0x1)"), ("f4e2m1fn", "nan(0x1)"), ("c64", "(nan(0x800000), 0)"), ("f32", "nan(0x)"),
    ("f16", "1e6"), ("f32", "1e39"), ("f32", "-1e39"), ("f64", "1e400"), ("f8e5m2", "61440"), ("f8e4m3fn", "480"),
    ("bf16", "1e39"), ("c64", "(1e39, 0)"), ("c128", "(0, 1e400)"), ("f32", ".5"), ("s8", "128"),
    ("u8", "-1"), ("u32", "4294967296"), ("s64", "-9223372036854775809"), ("u64", "18446744073709551616"),
    ("pred", "18446744073709551616"), ("s32", "18446744071562067967"), ("f32", "((1))"), ("c64", "((1, 2))"),
]  # fmt: skip
TWO, FOUR, GRID = ", replica_count=2", ", replica_count=4", ", replica_count=2, num_partitions=2"
GLOBAL = ", channel_id=1, use_global_device_ids=true"
FITTING = [
    ("all-reduce(x), replica_groups={{0,1}}, to_apply=add", TWO),
    ("all-reduce(x), replica_groups={{0},{1,2,3}}, to_apply=add", FOUR),
    (f"all-reduce(x){GLOBAL}, replica_groups={{{{0,1}},{{2,3}}}}, to_apply=add", GRID),
    ("all-reduce(x), channel_id=1, replica_groups={{0,1}}, to_apply=add", GRID),
    ("collective-permute(x), source_target_pairs={{0,3},{3,0}}", FOUR),
]
MISFITS = [
    ("all-reduce(x), replica_groups={{0,2}}, to_apply=add", TWO),
    ("all-reduce(x), replica_groups={{0}}, to_apply=add", TWO),
    ("all-reduce(x), replica_groups={{0,1},{1,0}}, to_apply=add", TWO),
    ("all-reduce(x), replica_groups=[2,2]<=[4], to_apply=add", TWO),
    ("all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=add", GRID),
    (f"all-reduce(x){GLOBAL}, replica_groups={{{{0,1}}}}, to_apply=add", GRID),
    (f"all-reduce(x){GLOBAL}, replica_groups={{}}, to_apply=add", GRID),
    ("all-reduce(x), replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add", TWO),
    ("collective-permute(x), source_target_pairs={{0,2}}", TWO),
    ("collective-permute(x), channel_id=1, source_target_pairs={{0,2}}", GRID),
    ("collective-permute(x), source_target_pairs={{3,0}}", GRID),
]
ALIASES = ["{}", "{ {}: (0, {}, may-alias) }", "{ {}: (0, {}) }", "{ {}: (0, {}, must-alias), }"]
NO_ALIASES = [
    "{ {0}: (0, {}, may-alias) }", "{ {-1}: (0, {}) }", "{ {}: (-1, {}) }", "{ {}: (1, {}) }", "{ {}: (0, {0}) }",
    "{ {}: (0, {}, maybe) }", "{ {} (0, {}) }", "{ {}: 0 }", "all",
]  # fmt: skip
SHARDINGS = [
    "{devices=[1,1]<=[1]}", "{devices=[1]<=[1]}", "{devices=[2]<=[3]}", "{devices=[0]<=[0]}", "{devices=[2]0,1}",
    "{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}", "{devices=[2]-1,0}", "{maximal device=5}", "{}", "{manual}",
    "{{replicated}, {maximal device=0}}", "{devices=[1,2]<=[2] last_tile_dims={manual,replicated}}", "{ replicated }",
    "{replicated shard_as 1}", "{devices=[2] <= [2] metadata={op_name=\"a}\"}}", "{mesh['a'=2], [{'a'}]}",
]  # fmt: skip
NO_SHARDINGS = [
    "{devices=[1]0}", "{devices=[]<=[]}", "{devices=[2]}", "{devices=[1,1]<=[1]T(0)}", "{devices=[4]<=[2,2]T(0)}",
    "{devices=2<=[2]}", "{devices=[2]0,1,}", "{maximal}", "{device=0}", "{{}}", "{replicated device=0}", "{<=[2]}",
    "{replicated, shard_as 1}", "{maximal device = 0}", "{{replicated},}", "{devices=[1,2]<=[2] last_tile_dims={foo}}",
]  # fmt: skip

ACCEPTED = [
    *[constant(dtype, word) for dtype, word, _ in READ],
    *[collective(words, counts) for words, counts in FITTING],
    *map(aliased, ALIASES), *map(sharded, SHARDINGS),
]  # fmt: skip
# XLA's verifier refuses a misfit of counts when it compiles, its parser all others.
UNREADABLE = [
    *[constant(dtype, word) for dtype, word in REFUSED],
    *[aliased(alias) for alias in NO_ALIASES if alias not in ("{ {}: (1, {}) }", "{ {}: (0, {0}) }")],
    *[aliased(donor, "buffer_donor") for donor in ("{ 0 }", "{ (-1, {}) }", "{ (0) }")],
    *map(sharded, NO_SHARDINGS),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "word", "bits"), READ)
def test_constants_have_the_bits_that_xla_reads(dtype: str, word: str, bits: str) -> None:
    module = xb.parse_hlo(constant(dtype, word))
    assert module.entry.root.attributes.literal.tobytes().hex() == bits
    assert xb.parse_hlo(module.to_hlo()).entry.root.attributes.literal.tobytes().hex() == bits


@pytest.mark.parametrize("text", [*ACCEPTED, *(aliased(donor, "buffer_donor") for donor in ("{ (7, {0}) }", "{}"))])
def test_accepted_texts_come_back(text: str) -> None:
    printed = xb.parse_hlo(text).to_hlo()
    assert xb.parse_hlo(printed).to_hlo() == printed


@pytest.mark.parametrize("text", [*UNREADABLE, *map(aliased, NO_ALIASES)])
def test_texts_that_xla_does_not_read_are_refused_at_their_place(text: str) -> None:
    with pytest.raises(xb.HloParseError) as caught:
        xb.parse_hlo(text)
    (fault,) = caught.value.faults
    assert fault.kind in ("syntax", "invalid_literal", "invalid_attribute", "shape_mismatch")
    assert fault.line == (1 if "alias" in text or "donor" in text else 3)
    assert "not closed" not in fault.message


@pytest.mark.parametrize(("words", "counts"), MISFITS)
def test_groups_fit_the_counts_of_the_header(words: str, counts: str) -> None:
    with pytest.raises(xb.HloParseError) as caught:
        xb.parse_hlo(collective(words, counts))
    (fault,) = caught.value.faults
    assert fault.kind in ("invalid_group", "invalid_attribute")
    assert (fault.line, fault.column) == (
        collective(words, counts).split("\n").index(f"  ROOT y = f32[4] {words}") + 1,
        19,
    )


def test_what_is_wrong_with_groups_is_told() -> None:
    with pytest.raises(
        xb.HloParseError, match=r"name replica 2, but the header states the range 0\.\.1 \(replica_count=2"
    ):
        xb.parse_hlo(collective("all-reduce(x), replica_groups={{0,2}}, to_apply=add", TWO))
    with pytest.raises(xb.HloParseError, match="replica 1 is in no group"):
        xb.parse_hlo(collective("all-reduce(x), replica_groups={{0}}, to_apply=add", TWO))


def test_counts_that_the_header_leaves_open_are_those_of_the_run() -> None:
    text = collective("all-reduce(x), replica_groups={{0,1}}, to_apply=add", "")
    assert xb.parse_hlo(text).entry.root.attributes.replica_groups == ((0, 1),)


def test_async_collectives_fit_the_counts_too() -> None:
    line = "s = ((f32[4]), f32[4]) all-reduce-start(x), replica_groups={{0,5}}, to_apply=add"
    body = f"  x = f32[4] parameter(0)\n  {line}\n  ROOT d = f32[4] all-reduce-done(s)\n"
    text = f"HloModule m{TWO}\n{ADD}ENTRY e {{\n{body}}}\n"
    with pytest.raises(xb.HloParseError, match="replica 5"):
        xb.parse_hlo(text)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_nans_keep_their_payload(dtype: type) -> None:
    part = dtype(0).real.dtype
    name = "c64" if dtype is np.complex64 else "c128"
    found = xb.parse_hlo(constant(name, "(nan(0x1), -nan(0x7))")).entry.root.attributes.literal
    nan = np.array(np.inf, part).view(f"u{part.itemsize}")
    sign = 1 << (8 * part.itemsize - 1)
    assert found.reshape(1).view(f"u{part.itemsize}").tolist() == [int(nan) | 1, int(nan) | 7 | sign]


@pytest.mark.parametrize(
    ("word", "column", "message"),
    [
        ("(((1)))", 30, "parentheses in a constant cannot be nested deeper"),
        ("(1, 2", 27, "is not closed"),
        ("1 /* ) */", None, ""),
    ],
)
def test_brackets_of_a_constant(word: str, column: int | None, message: str) -> None:
    text = f"ENTRY e {{\n  ROOT c = f32[] constant({word})\n}}\n"
    if column is None:
        assert xb.parse_hlo(text)
        return
    with pytest.raises(xb.HloParseError, match=message) as caught:
        xb.parse_hlo(text)
    assert (caught.value.faults[0].line, caught.value.faults[0].column) == (2, column - 1)


def test_a_string_that_is_not_closed_is_told_as_that() -> None:
    text = 'ENTRY e {\n  x = f32[] parameter(0), backend_config={"a": "b}\n}\n'
    with pytest.raises(xb.HloParseError, match="this string is not closed") as caught:
        xb.parse_hlo(text)
    assert (caught.value.faults[0].line, caught.value.faults[0].column) == (2, 48)


@pytest.mark.oracle
def test_real_xla_reads_and_refuses_the_same() -> None:
    pytest.importorskip("jaxlib")
    said = refusals([*ACCEPTED, *UNREADABLE])
    newly = "iota tile assignment size 3"  # XLA refuses this since jaxlib 0.12
    assert [text for text, why in zip(ACCEPTED, said, strict=False) if why and newly not in why] == []
    assert [text for text, why in zip(UNREADABLE, said[len(ACCEPTED) :], strict=True) if not why] == []
