"""The instruction that a verdict names: the fault itself, not what it leads to and not what the fault is not in."""

from __future__ import annotations

from collections import Counter

import pytest

import xbuild as xb
from tests.equivalence.partitions import place_of
from tests.equivalence.planted import judged
from tests.equivalence.programs import PAIRS
from tests.equivalence.test_faults import ALONE

# ----------------------------------------------------------------------------
# Programs of one device: a right program, what is changed in its text, and the name that the verdict has.

MEAN = """HloModule mean
ENTRY main {
  x = f32[4,3] parameter(0)
  w = f32[3,5] parameter(1)
  one = f32[] constant(1)
  count = f32[] constant(512)
  share = f32[] divide(one, count)
  shares = f32[4,3] broadcast(share), dimensions={}
  mean = f32[4,3] multiply(x, shares)
  top = f32[4,3] maximum(mean, x)
  none = f32[4,3] subtract(top, top)
  scores = f32[4,5] dot(top, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zeros = f32[4,5] dot(none, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT sum = f32[4,5] add(scores, zeros)
}"""
LOOP = """HloModule loop
condition {
  state = (s32[], f32[4]) parameter(0)
  count = s32[] get-tuple-element(state), index=0
  most = s32[] constant(5)
  ROOT more = pred[] compare(count, most), direction=LT
}
body {
  state = (s32[], f32[4]) parameter(0)
  count = s32[] get-tuple-element(state), index=0
  x = f32[4] get-tuple-element(state), index=1
  step = s32[] constant(1)
  next = s32[] add(count, step)
  wave = f32[4] tanh(x)
  moved = f32[4] subtract(wave, x)
  ROOT both = (s32[], f32[4]) tuple(next, moved)
}
ENTRY main {
  x = f32[4] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[4]) tuple(zero, x)
  loop = (s32[], f32[4]) while(start), condition=condition, body=body
  ROOT result = f32[4] get-tuple-element(loop), index=1
}"""
FUSED = """HloModule fused
ENTRY main {
  x = f32[3,5] parameter(0)
  a = f32[5,4] parameter(1)
  b = f32[5,4] parameter(2)
  weights = f32[5,8] concatenate(b, a), dimensions={1}
  both = f32[3,8] dot(x, weights), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  right = f32[3,4] slice(both), slice={[0:3], [0:4]}
  left = f32[3,4] slice(both), slice={[0:3], [4:8]}
  ROOT product = f32[3,3] dot(left, right), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}"""
APART = """HloModule apart
ENTRY main {
  x = f32[3,5] parameter(0)
  a = f32[5,4] parameter(1)
  b = f32[5,4] parameter(2)
  weights = f32[5,8] concatenate(a, b), dimensions={1}
  both = f32[3,8] dot(x, weights), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  left = f32[3,4] slice(both), slice={[0:3], [0:4]}
  right = f32[3,4] slice(both), slice={[0:3], [4:8]}
  ROOT product = f32[3,3] dot(left, right), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}"""
LINES = {
    "another value of the program in the place of one": (MEAN, "share = f32[] divide(one, count)",
                                                          "share = f32[] copy(one)", "share"),
    "a value that leads to zeros, which are right": (MEAN, "maximum(mean, x)", "minimum(mean, x)", "top"),
    "operands that have changed places": (LOOP, "subtract(wave, x)", "subtract(x, wave)", "moved"),
    "the number of trips": (LOOP, "constant(5)", "constant(6)", "most"),
    "an op in a loop, at the first of its trips": (LOOP, "tanh(x)", "sine(x)", "wave"),
}  # fmt: skip


@pytest.mark.parametrize("case", LINES)
def test_the_changed_line_is_named(case: str) -> None:
    text, old, new, name = LINES[case]
    assert text.count(old) == 1
    found = xb.equivalent(text, text.replace(old, new))
    assert found.kind == "different"
    assert found.difference is not None
    assert found.difference.other is not None
    assert found.difference.other.name == name


def test_a_wrong_part_of_a_fused_product_is_named() -> None:
    assert xb.equivalent(APART, FUSED)
    found = xb.equivalent(APART, FUSED.replace("slice={[0:3], [4:8]}", "slice={[0:3], [0:4]}"))
    assert found.kind == "different"
    assert found.difference is not None
    assert found.difference.other is not None
    assert found.difference.other.name == "left"


# ----------------------------------------------------------------------------
# Programs of several devices, against that of one.

LOOKUP = """HloModule lookup
ENTRY main {
  table = f32[16,3] parameter(0)
  ids = s32[5,1] parameter(1)
  ROOT rows = f32[5,3] gather(table, ids), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,3}
}"""
HEADER = 'HloModule m, num_partitions=4, frontend_attributes={xbuild.mesh="i=4",xbuild.out_shardings="{%s}"}'
LOOKUP_IN_PARTS = (
    HEADER % "replicated"
    + """
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  table = f32[4,3] parameter(0), sharding={devices=[4,1]<=[4]}
  ids = s32[5,1] parameter(1), sharding={replicated}
  here = u32[] partition-id()
  number = s32[] convert(here)
  size = s32[] constant(4)
  offset = s32[] multiply(number, size)
  offsets = s32[5,1] broadcast(offset), dimensions={}
  own = s32[5,1] subtract(ids, offsets)
  rows = f32[5,3] gather(table, own), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,3}
  flat = s32[5] reshape(own)
  zero = s32[] constant(0)
  zeros = s32[5] broadcast(zero), dimensions={}
  sizes = s32[5] broadcast(size), dimensions={}
  after = pred[5] compare(flat, zeros), direction=GE
  before = pred[5] compare(flat, sizes), direction=LT
  inside = pred[5] and(after, before)
  mask = pred[5,3] broadcast(inside), dimensions={0}
  nothing = f32[] constant(0)
  nothings = f32[5,3] broadcast(nothing), dimensions={}
  found = f32[5,3] select(mask, rows, nothings)
  ROOT all = f32[5,3] all-reduce(found), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true,
    to_apply=add
}"""
)
PARTS = {
    "the number of the only replica": ("u32[] partition-id()", "u32[] replica-id()", ("here",)),
    "an offset from the other end": ("subtract(ids, offsets)", "subtract(offsets, ids)", ("own",)),
    "a sum over other devices": ("replica_groups={{0,1,2,3}}", "replica_groups={{0,1},{2,3}}", ("all",)),
    "another reduction": ("  ROOT c = f32[] add(a, b)", "  ROOT c = f32[] maximum(a, b)", ("all",)),
    "no sum, where the index arithmetic is right": (
        "all-reduce(found), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true,\n    to_apply=add",
        "copy(found)", ("all",)),
}  # fmt: skip


@pytest.mark.parametrize("case", PARTS)
def test_the_changed_line_of_a_partitioned_program_is_named(case: str) -> None:
    old, new, names = PARTS[case]
    assert LOOKUP_IN_PARTS.count(old) == 1
    assert xb.equivalent(LOOKUP, LOOKUP_IN_PARTS, domain={1: (0, 15)})
    found = xb.equivalent(LOOKUP, LOOKUP_IN_PARTS.replace(old, new), domain={1: (0, 15)})
    assert found.kind == "different"
    assert found.difference is not None
    assert found.difference.other is not None
    assert found.difference.other.name in names


NEIGHBOURS = """HloModule neighbours
ENTRY main {
  x = f32[8,3] parameter(0)
  zero = f32[] constant(0)
  long = f32[10,3] pad(x, zero), padding=1_1x0_0
  left = f32[8,3] slice(long), slice={[0:8], [0:3]}
  right = f32[8,3] slice(long), slice={[2:10], [0:3]}
  ROOT sum = f32[8,3] add(left, right)
}"""
NEIGHBOURS_IN_PARTS = (
    HEADER % "devices=[4,1]<=[4]"
    + """
ENTRY main {
  x = f32[2,3] parameter(0), sharding={devices=[4,1]<=[4]}
  last = f32[1,3] slice(x), slice={[1:2], [0:3]}
  above = f32[1,3] collective-permute(last), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3}}
  first = f32[1,3] slice(x), slice={[0:1], [0:3]}
  below = f32[1,3] collective-permute(first), channel_id=2, source_target_pairs={{1,0},{2,1},{3,2}}
  long = f32[4,3] concatenate(above, x, below), dimensions={0}
  left = f32[2,3] slice(long), slice={[0:2], [0:3]}
  right = f32[2,3] slice(long), slice={[2:4], [0:3]}
  ROOT sum = f32[2,3] add(left, right)
}"""
)
HALOS = {
    "the second exchange": ("{{1,0},{2,1},{3,2}}", "{{1,0},{2,1}}", ("below",)),
    "the first exchange": ("{{0,1},{1,2},{2,3}}", "{{1,0},{2,1},{3,2}}", ("above",)),
    "what the second exchange sends": ("slice(x), slice={[0:1], [0:3]}", "slice(x), slice={[1:2], [0:3]}",
                                       ("first", "below")),
    "the order": ("concatenate(above, x, below)", "concatenate(x, above, below)", ("long",)),
}  # fmt: skip


@pytest.mark.parametrize("case", HALOS)
def test_the_wrong_one_of_several_exchanges_is_named(case: str) -> None:
    old, new, names = HALOS[case]
    assert NEIGHBOURS_IN_PARTS.count(old) == 1
    assert xb.equivalent(NEIGHBOURS, NEIGHBOURS_IN_PARTS)
    found = xb.equivalent(NEIGHBOURS, NEIGHBOURS_IN_PARTS.replace(old, new))
    assert found.kind == "different"
    assert found.difference is not None
    assert found.difference.other is not None
    assert found.difference.other.name in names


EXPERTS = """HloModule experts
ENTRY main {
  x = f32[32,8] parameter(0)
  w = f32[4,8,8] parameter(1)
  chunks = f32[8,4,8] reshape(x)
  products = f32[4,8,8] dot(w, chunks), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={1}, \
rhs_contracting_dims={2}
  turned = f32[8,4,8] transpose(products), dimensions={2,0,1}
  ROOT result = f32[32,8] reshape(turned)
}"""
SENT = """HloModule sent, num_partitions=4
ENTRY main_spmd {
  x = f32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}
  w = f32[1,8,8] parameter(1), sharding={devices=[4,1,1]<=[4]}
  send = f32[2,4,8] reshape(x)
  got = f32[2,4,8] all-to-all(send), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={1}
  turned = f32[4,2,8] transpose(got), dimensions={1,0,2}
  tokens = f32[8,8] reshape(turned)
  weights = f32[8,8] reshape(w)
  products = f32[8,8] dot(tokens, weights), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  split = f32[2,4,8] reshape(products)
  back = f32[2,4,8] all-to-all(split), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={1}
  ROOT result = f32[8,8] reshape(back)
}"""


def test_a_right_part_with_other_dimensions_of_extent_1_is_not_named() -> None:
    found = xb.equivalent(xb.parse_hlo(EXPERTS), xb.parse_hlo(SENT))
    assert found.kind == "different"
    assert found.difference is not None
    assert found.difference.other is not None
    assert found.difference.other.name in ("split", "back")


def test_what_the_check_refuses_is_named() -> None:
    whole = xb.computation(xb.f32[4])(lambda x: x + x)
    found = xb.equivalent(whole, xb.parse_hlo(ALONE), inputs=[None], outputs=[None])
    assert found.kind == "different"
    assert found.difference is not None
    assert found.difference.other is not None
    assert found.difference.other.name == "all"
    assert "is refused at all-reduce %all" in " ".join(str(found).split())


@pytest.mark.slow
def test_planted_faults_are_named() -> None:
    """Of all faults in a few programs, at least nine in ten, at the changed instruction or its user."""
    places: Counter[str] = Counter()
    for pair in PAIRS:
        if pair.name in ("tensor_and_data", "with_bias", "embedding", "softmax", "attention", "mean_square_gradient"):
            for each in judged(pair):
                difference = each.verdict.difference
                if each.verdict.kind == "different":
                    places[place_of(each.mutant, difference.other, difference.value)] += 1
    assert places.total() > 50
    assert places["the changed one"] + places["its user"] >= 0.9 * places.total()
