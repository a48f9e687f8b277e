"""What is inferred of each op and each kind of control flow, and that it is so in runs."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import field, frozen

import xbuild as xb
from tests.replication.runs import breaches, random_inputs

SUM = "sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }"
SUMF = "sumf { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
MINUS = "minus { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] subtract(a, b) }"
ALL, EACH = [[0, 1, 2, 3]], [[0], [1], [2], [3]]
PAIRS, CROSS = [[0, 1], [2, 3]], [[0, 2], [1, 3]]


@frozen
class Case:
    """The entry of a program with a parameter x that differs and a parameter w that is equal; the groups of `y`."""

    id: str
    entry: str
    groups: list[list[int]]
    leaf: tuple[int, ...] = ()
    replicas: int = 4
    partitions: int = 1
    others: str = ""
    parameters: str = "x = s32[4] parameter(0) w = s32[4] parameter(1)"
    replicated: dict[int, Any] = field(factory=lambda: {1: True})

    @property
    def module(self) -> xb.Module:
        header = f"HloModule m, replica_count={self.replicas}, num_partitions={self.partitions}"
        text = f"{header}\n{SUM}\n{SUMF}\n{MINUS}\n{self.others}\nENTRY main {{ {self.parameters} {self.entry} }}"
        return xb.parse_hlo(text)


GRID: dict[str, Any] = {"replicas": 2, "partitions": 2}
ID = "r = u32[] replica-id() i = s32[] convert(r)"
LOOP = """
under { s = (s32[], s32[], s32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
        n = s32[] get-tuple-element(s), index=1 ROOT l = pred[] compare(i, n), direction=LT }
body { s = (s32[], s32[], s32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
       n = s32[] get-tuple-element(s), index=1 v = s32[4] get-tuple-element(s), index=2
       one = s32[] constant(1) j = s32[] add(i, one) %s ROOT t = (s32[], s32[], s32[4]) tuple(j, n, u) }
"""
START = "zero = s32[] constant(0) s = (s32[], s32[], s32[4]) tuple(zero, n, w) y = s32[4] add(x, x)"
RUN = f"{START} ROOT l = (s32[], s32[], s32[4]) while(s), condition=under, body=body"
TWICE = "u = s32[4] add(v, v)"
BRANCHES = """
double { v = s32[4] parameter(0) ROOT d = s32[4] add(v, v) }
same { ROOT v = s32[4] parameter(0) }
meets { v = s32[4] parameter(0) ROOT m = s32[4] all-reduce(v), to_apply=sum, replica_groups={{0,1},{2,3}} }
"""
TABLE = "t = s32[4] constant({%s}) z = s32[1] dynamic-slice(t, i), dynamic_slice_sizes={1} ROOT y = s32[] reshape(z)"

CASES = [
    Case("parameter-differs", "ROOT y = s32[4] copy(x)", EACH),
    Case("parameter-given-equal", "ROOT y = s32[4] negate(w)", ALL),
    Case("replica-id", "ROOT y = u32[] replica-id()", PAIRS, **GRID),
    Case("partition-id", "ROOT y = u32[] partition-id()", CROSS, **GRID),
    Case("quotient-of-id", f"{ID} two = s32[] constant(2) ROOT y = s32[] divide(i, two)", PAIRS),
    Case("remainder-of-id", f"{ID} two = s32[] constant(2) ROOT y = s32[] remainder(i, two)", CROSS),
    Case("table-by-id", f"{ID} {TABLE % '5,7,7,5'}", [[0, 3], [1, 2]]),
    Case("table-by-id-clamped", f"{ID} five = s32[] constant(5) j = s32[] multiply(i, five) "
         "t = s32[4] constant({1,2,3,4}) ROOT y = s32[1] dynamic-slice(t, j), dynamic_slice_sizes={1}",
         [[0], [1, 2, 3]]),
    Case("all-reduce", "ROOT y = s32[4] all-reduce(x), to_apply=sum", ALL),
    Case("all-reduce-of-each-partition", "ROOT y = s32[4] all-reduce(x), to_apply=sum", CROSS, **GRID),
    Case("all-reduce-global", "ROOT y = s32[4] all-reduce(x), to_apply=sum, channel_id=1, "
         "use_global_device_ids=true, replica_groups={{0,3},{1,2}}", [[0, 3], [1, 2]], **GRID),
    Case("all-reduce-of-equals", "ROOT y = s32[4] all-reduce(w), to_apply=sum, replica_groups={{0,1},{2,3}}", ALL),
    Case("all-reduce-any-order", f"{ID} two = s32[] constant(2) h = s32[] remainder(i, two) "
         "ROOT y = s32[] all-reduce(h), to_apply=sum, replica_groups={{0,1},{3,2}}", ALL),
    Case("all-reduce-in-order", f"{ID} two = s32[] constant(2) h = s32[] remainder(i, two) "
         "ROOT y = s32[] all-reduce(h), to_apply=minus, replica_groups={{0,1},{3,2}}", PAIRS),
    Case("all-reduce-of-several", "a = (s32[4], s32[4]) all-reduce(x, w), to_apply=sum, "
         "replica_groups={{0,1},{2,3}} ROOT y = s32[4] get-tuple-element(a), index=1", ALL),
    Case("all-reduce-started", "a = s32[4] all-reduce-start(x), to_apply=sum, replica_groups={{0,2},{1,3}} "
         "ROOT y = s32[4] all-reduce-done(a)", CROSS),
    Case("all-gather", "ROOT y = s32[8] all-gather(x), dimensions={0}, replica_groups={{0,1},{2,3}}", PAIRS),
    Case("reduce-scatter", "ROOT y = s32[2] reduce-scatter(x), dimensions={0}, to_apply=sum, "
         "replica_groups={{0,1},{2,3}}", EACH),
    Case("reduce-scatter-of-equals", "ROOT y = s32[2] reduce-scatter(w), dimensions={0}, to_apply=sum, "
         "replica_groups={{0,1},{2,3}}", CROSS),
    Case("all-to-all-of-equals", "ROOT y = s32[4] all-to-all(w), dimensions={0}, replica_groups={{0,1},{3,2}}",
         [[0, 3], [1, 2]]),
    Case("permute-of-equals", "ROOT y = s32[4] collective-permute(w), source_target_pairs={{0,1},{1,0},{2,3}}",
         [[0, 1, 3], [2]]),
    Case("permute-of-pairs", "g = s32[4] all-reduce(x), to_apply=sum, replica_groups={{0,1},{2,3}} "
         "ROOT y = s32[4] collective-permute(g), source_target_pairs={{0,2},{1,0},{2,1},{3,3}}", [[0, 2], [1, 3]]),
    Case("broadcast", "ROOT y = s32[4] collective-broadcast(x), replica_groups={{0,1},{2,3}}", PAIRS),
    Case("broadcast-in-no-group", "ROOT y = s32[4] collective-broadcast(x), replica_groups={{0,1}}", PAIRS),
    Case("tuple", "t = (s32[4], (s32[4], s32[4])) tuple(x, y2) ROOT y = (s32[4], (s32[4], s32[4])) opt-barrier(t)",
         ALL, (1, 0), parameters="x = s32[4] parameter(0) w = s32[4] parameter(1) y2 = (s32[4], s32[4]) tuple(w, x)"),
    Case("rng", "a = f32[] constant(0) b = f32[] constant(1) ROOT y = f32[4] rng(a, b), distribution=rng_uniform",
         EACH),
    Case("bits-of-equal-states", "s = u64[2] constant({1,2}) g = (u64[2], u32[4]) rng-bit-generator(s), "
         "algorithm=rng_three_fry ROOT y = u32[4] get-tuple-element(g), index=1", ALL),
    Case("sort", "ROOT y = s32[4] sort(w), dimensions={0}, to_apply=less", ALL,
         others="less { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }"),
    Case("region-asks-who", "ROOT y = s32[4] map(w), dimensions={0}, to_apply=who", EACH,
         others="who { a = s32[] parameter(0) r = u32[] replica-id() i = s32[] convert(r) ROOT c = s32[] add(a, i) }"),
    Case("while-equal-trips", f"n = s32[] constant(3) {RUN}", ALL, (2,), others=LOOP % TWICE),
    Case("while-trips-of-id", f"{ID} two = s32[] constant(2) n = s32[] divide(i, two) {RUN}", PAIRS, (2,),
         others=LOOP % TWICE),
    Case("while-unchanged", f"{ID} n = s32[] negate(i) {RUN}", ALL, (2,), others=LOOP % "u = s32[4] copy(v)"),
    Case("while-made-equal-in-trips", f"n = s32[] constant(3) {RUN.replace('n, w', 'n, x')}", EACH, (2,),
         others=LOOP % "u = s32[4] all-reduce(v), to_apply=sum"),
    Case("while-made-apart-in-trips", f"n = s32[] constant(3) {RUN}", EACH, (2,),
         others=LOOP % "r = u32[] replica-id() k = s32[] convert(r) q = s32[4] broadcast(k), dimensions={} "
                       "u = s32[4] add(v, q)"),
    Case("while-known-trips", f"{ID} n = s32[] remainder(i, i) {RUN}, "
         'backend_config={"known_trip_count":{"n":"0"}}', ALL, (2,), others=LOOP % TWICE),
    Case("conditional-by-data", "e = s32[1] slice(x), slice={[0:1]} p = s32[] reshape(e) "
         "ROOT y = s32[4] conditional(p, w, w), branch_computations={double, same}", EACH, others=BRANCHES),
    Case("conditional-of-one-value", "e = s32[1] slice(x), slice={[0:1]} p = s32[] reshape(e) "
         "ROOT y = s32[4] conditional(p, w, w), branch_computations={same, same}", ALL, others=BRANCHES),
    Case("conditional-by-id", f"{ID} two = s32[] constant(2) h = s32[] divide(i, two) "
         "ROOT y = s32[4] conditional(h, w, w), branch_computations={double, same}", PAIRS, others=BRANCHES),
    Case("conditional-known", "one = s32[] constant(1) "
         "ROOT y = s32[4] conditional(one, x, w), branch_computations={double, same}", ALL, others=BRANCHES),
    Case("conditional-that-meets", f"{ID} two = s32[] constant(2) h = s32[] divide(i, two) "
         "ROOT y = s32[4] conditional(h, x, w), branch_computations={meets, same}", PAIRS, others=BRANCHES),
    Case("calls-with-different-values", "a = s32[4] call(x), to_apply=same b = s32[4] call(w), to_apply=same "
         "ROOT y = s32[4] copy(b)", ALL, others=BRANCHES),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_groups(case: Case) -> None:
    module = case.module
    values = xb.replication(module, case.replicated)
    assert sorted(map(list, values.groups(module.entry.root, case.leaf))) == case.groups


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_they_are_equal_in_runs(case: Case) -> None:
    module = case.module
    values = xb.replication(module, case.replicated)
    for seed in range(3):
        assert breaches(module, values, *random_inputs(module, values, seed)) == []


MEETS_AT_TWO_PLACES = """HloModule m, replica_count=4
sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
meets { v = s32[] parameter(0) ROOT m = s32[] all-reduce(v), to_apply=sum, replica_groups={{0,1},{2,3}} }
first { v = s32[] parameter(0) ROOT c = s32[] call(v), to_apply=meets }
ENTRY main {
  r = u32[] replica-id()  i = s32[] convert(r)  two = s32[] constant(2)  k = s32[] remainder(i, two)
  one = s32[] constant(1)
  ROOT y = s32[] conditional(k, one, i), branch_computations={first, first}
}"""


def test_members_that_come_from_elsewhere_bring_what_they_have_there() -> None:
    """Replicas 0 and 2 bring one number to this place; what 1 and 3 bring comes from another branch."""
    values = xb.replication(xb.parse_hlo(MEETS_AT_TWO_PLACES))
    assert values.groups("m") == ((0,), (1,), (2,), (3,))


def test_what_a_device_comes_to_at_other_times_is_not_compared() -> None:
    """In trip 1 replica 0 meets for the second time, and replica 1 for the first."""
    text = """HloModule m, replica_count=2
    sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
    go { n = s32[] parameter(0) ROOT m = s32[] all-reduce(n), to_apply=sum }
    stay { ROOT n = s32[] parameter(0) }
    under { n = s32[] parameter(0) three = s32[] constant(3) ROOT l = pred[] compare(n, three), direction=LT }
    body { n = s32[] parameter(0) r = u32[] replica-id() i = s32[] convert(r) u = s32[] subtract(n, i)
           zero = s32[] constant(0) two = s32[] constant(2) one = s32[] constant(1)
           a = pred[] compare(u, zero), direction=GE b = pred[] compare(u, two), direction=LT p = pred[] and(a, b)
           c = s32[] conditional(p, n, n), true_computation=go, false_computation=stay
           ROOT next = s32[] add(n, one) }
    ENTRY main { zero = s32[] constant(0) ROOT w = s32[] while(zero), condition=under, body=body }"""
    module = xb.parse_hlo(text)
    values = xb.replication(module)
    assert values.groups("m") == ((0,), (1,))
    assert values.groups("next") == ((0, 1),)
    assert breaches(module, values, [[], []]) == []


def test_calls_of_calls_are_read_in_time() -> None:
    """Each computation calls the one before twice, with constants of its own: 2^40 places."""
    lines = [
        "HloModule m, replica_count=4", SUM,
        "g0 { x = s32[] parameter(0) y = s32[] parameter(1) ROOT r = s32[] all-reduce(x), to_apply=sum }",
    ]  # fmt: skip
    for n in range(1, 41):
        lines.append(
            f"g{n} {{ x = s32[] parameter(0) y = s32[] parameter(1) c = s32[] constant({n}) d = s32[] constant({-n}) "
            f"a = s32[] call(y, c), to_apply=g{n - 1} b = s32[] call(a, d), to_apply=g{n - 1} "
            "ROOT r = s32[] add(a, b) }"
        )
    lines.append("ENTRY main { x = s32[] parameter(0) ROOT y = s32[] call(x, x), to_apply=g40 }")
    module = xb.parse_hlo("\n".join(lines))
    assert xb.replication(module).groups(module.entry.root) == ((0, 1, 2, 3),)
