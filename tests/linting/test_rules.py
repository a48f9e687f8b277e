"""Each rule finds its fault, at its instruction, and nothing in the same program without the fault."""

from __future__ import annotations

import re

import pytest

import xbuild as xb

ADD = """add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
"""
ALL = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true"
SUM = f"{ALL}, to_apply=add"


def program(entry: str, *computations: str, results: str = "") -> str:
    """The text of a module for four partitions."""
    return "\n".join(["HloModule m, num_partitions=4", "", ADD, *computations, "ENTRY e {", entry, "}"])


def permuted(pairs: str, use: str = "ROOT y = f32[8] add(p, x)") -> str:
    return program(
        f"""  x = f32[8] parameter(0)
  p = f32[8] collective-permute(x), channel_id=1, source_target_pairs={pairs}
  {use}"""
    )


MASKED = """i = u32[] partition-id()
  z = u32[] constant(0)
  c = pred[] compare(i, z), direction=EQ
  b = pred[8] broadcast(c), dimensions={}
  ROOT y = f32[8] select(b, x, p)"""


def reduced(again: str) -> str:
    return program(
        f"""  x = f32[8] parameter(0)
  once = f32[8] all-reduce(x), {SUM}
  two = f32[] constant(2)
  twos = f32[8] broadcast(two), dimensions={{}}
  scaled = f32[8] multiply(once, twos)
  {again}"""
    )


def step(gradient: str, sharding: str = "sharding={replicated}") -> str:
    return program(
        f"""  w = f32[8,8] parameter(0), {sharding}
  v = f32[8,8] parameter(1), {sharding}
  x = f32[8,8] parameter(2), sharding={{devices=[4,1]<=[4]}}
  g = f32[8,8] tanh(x)
  gw = f32[8,8] all-reduce(g), {SUM}
  {gradient}
  new_w = f32[8,8] subtract(w, gw)
  new_v = f32[8,8] subtract(v, gv)
  ROOT r = (f32[8,8], f32[8,8]) tuple(new_w, new_v)"""
    )


def of_replicas(text: str) -> str:
    """The program for four replicas, whose parameters have no annotations."""
    named = text.replace("channel_id=1, ", "").replace(", use_global_device_ids=true", "")
    return re.sub(r", sharding=\{.*\}", "", named).replace("num_partitions=4", "replica_count=4")


PART = "ROOT part = f32[8] dynamic-slice(psum.1, start), dynamic_slice_sizes={8}"


TWO = f"""psum.1 = f32[32] get-tuple-element(psum.2), index=0
  loss = f32[] get-tuple-element(psum.2), index=1
  {PART}"""


def sliced(use: str) -> str:
    return program(
        f"""  x = f32[32] parameter(0)
  l = f32[] parameter(1)
  psum.1 = f32[32] all-reduce(x), {SUM}
  me = u32[] partition-id()
  same = u32[] constant(8)
  start = u32[] multiply(me, same)
  {use}"""
    )


def adam(state: str) -> str:
    return program(
        f"""  w = f32[64,64] parameter(0), sharding={{replicated}}
  m = f32[64,64] parameter(1), sharding={state}
  x = f32[64,64] parameter(2), sharding={{devices=[4,1]<=[4]}}
  h = f32[64,64] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  g = f32[64,64] dot(x, h), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  gw = f32[64,64] all-reduce(g), {SUM}
  new_m = f32[64,64] add(m, gw)
  new_w = f32[64,64] subtract(w, new_m)
  ROOT r = (f32[64,64], f32[64,64]) tuple(new_w, new_m)"""
    )


def looped(collective: str, carried: str = "s", trips: int = 5) -> str:
    return program(
        """  zero = s32[] constant(0)
  x = f32[64] parameter(0)
  w = f32[64] parameter(1)
  init = (s32[], f32[64], f32[64]) tuple(zero, x, w)
  l = (s32[], f32[64], f32[64]) while(init), condition=cond, body=body
  ROOT r = f32[64] get-tuple-element(l), index=1""",
        f"""cond {{ p = (s32[], f32[64], f32[64]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant({trips})  ROOT less = pred[] compare(i, n), direction=LT }}
""",
        f"""body {{
  p = (s32[], f32[64], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[64] get-tuple-element(p), index=1
  w = f32[64] get-tuple-element(p), index=2
  {collective}
  ROOT q = (s32[], f32[64], f32[64]) tuple(j, {carried}, w)
}}
""",
    )


OF_TRIP = """k = f32[] convert(i)
  ks = f32[64] broadcast(k), dimensions={}
  t = f32[64] multiply(w, ks)"""


def gathered(user: str) -> str:
    return program(
        f"""  x = f32[4,8] parameter(0)
  g = f32[16,8] all-gather(x), {ALL}, dimensions={{0}}
  id = u32[] partition-id()
  two = u32[] constant(2)
  start = u32[] multiply(id, two)
  zero = u32[] constant(0)
  {user}"""
    )


def product(lhs: str, rhs: str) -> str:
    return program(
        f"""  x = bf16[256,256] parameter(0)
  w = f32[256,256] parameter(1)
  v = bf16[256,256] parameter(2)
  wide = f32[256,256] convert(x)
  wider = f32[256,256] convert(v)
  soft = f32[256,256] exponential(w)
  narrow = bf16[256,256] convert(w)
  ROOT d = f32[256,256] dot({lhs}, {rhs}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"""
    )


def called(target: str, name: str) -> str:
    return program(
        f"""  x = f32[8] parameter(0)
  ROOT {name} = f32[8] custom-call(x), custom_call_target="{target}", api_version=API_VERSION_TYPED_FFI"""
    )


BRANCHED = """HloModule m, num_partitions=4

one { p = f32[1024] parameter(0)
      ROOT pure_callback.1 = f32[1024] custom-call(p), custom_call_target="xla_ffi_python_cpu_callback",
        metadata={op_name="pure_callback"} }

other { p = f32[1024] parameter(0)  ROOT e = f32[1024] exponential(p) }

ENTRY e {
  x = f32[1024] parameter(0)
  id = u32[] partition-id()
  zero = u32[] constant(0)
  is_zero = pred[] compare(id, zero), direction=EQ
  ROOT r = f32[1024] conditional(is_zero, x, x), true_computation=one, false_computation=other
}
"""


# The rule, the program, and the instruction that is reported; an empty name if nothing is.
CASES: dict[str, tuple[str, str, str]] = {
    "a shift": ("permutation_zeros", permuted("{{0,1},{1,2},{2,3}}"), "p"),
    "no pairs": ("permutation_zeros", permuted("{}"), "p"),
    "a ring": ("permutation_zeros", permuted("{{0,1},{1,2},{2,3},{3,0}}"), ""),
    "a shift, then a select by the device": ("permutation_zeros", permuted("{{0,1},{1,2},{2,3}}", MASKED), ""),
    "a sum of a sum": ("reduced_twice", reduced(f"ROOT y = f32[8] all-reduce(scaled), {SUM}"), "y"),
    "a sum of a product with data": (
        "reduced_twice",
        reduced(f"mixed = f32[8] multiply(scaled, x)\n  ROOT y = f32[8] all-reduce(mixed), {SUM}"),
        "",
    ),
    "a sum of ones": (
        "reduced_twice",
        program(f"  one = f32[] constant(1)\n  ROOT y = f32[] all-reduce(one), {SUM}"),
        "",
    ),
    "a sum over groups, then over all": (
        "reduced_twice",
        program(
            f"""  x = f32[8] parameter(0)
  once = f32[8] all-reduce(x), {SUM.replace("{{0,1,2,3}}", "{{0,1},{2,3}}")}
  ROOT y = f32[8] all-reduce(once), {SUM.replace("{{0,1,2,3}}", "{{0,2},{1,3}}").replace("id=1", "id=2")}"""
        ),
        "",
    ),
    "a gradient that is not summed": ("not_reduced", step("gv = f32[8,8] sine(x)"), "new_v"),
    "gradients that are summed": ("not_reduced", step(f"gv = f32[8,8] all-reduce(x), {SUM}"), ""),
    "state that is split": (
        "not_reduced",
        step("gv = f32[8,8] sine(x)", "sharding={devices=[4,1]<=[4]}"),
        "",
    ),
    "a gradient of a mean over part of the devices": (
        "not_reduced",
        step(f"gv = f32[8,8] all-reduce(x), {SUM.replace('{{0,1,2,3}}', '{{0,1},{2,3}}')}"),
        "new_v",
    ),
    "a gradient of replicas that is not summed": ("not_reduced", of_replicas(step("gv = f32[8,8] sine(x)")), "new_v"),
    "gradients of replicas that are summed": (
        "not_reduced",
        of_replicas(step(f"gv = f32[8,8] all-reduce(x), {SUM}")),
        "",
    ),
    "replicas without a step": (
        "not_reduced",
        of_replicas(
            program(
                f"""  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  total = f32[8] all-reduce(y), {SUM}
  own = f32[8] add(x, y)
  ROOT r = (f32[8], f32[8]) tuple(own, total)"""
            )
        ),
        "",
    ),
    "a sum of replicas' own values": (
        "reduced_twice",
        of_replicas(
            program(
                f"""  x = f32[8] parameter(0)
  total = f32[8] all-reduce(x), {SUM}
  ROOT r = f32[8] add(x, total)"""
            )
        ),
        "",
    ),
    "state that is equal": ("replicated_state", adam("{replicated}"), "m"),
    "state that is split along the axis": ("replicated_state", adam("{devices=[4,1]<=[4]}"), ""),
    "a sum of which each device keeps its part": ("sliced_reduction", sliced(PART), "psum.1"),
    "a compiled sum of which each device keeps its part": (
        "sliced_reduction",
        sliced(PART).replace("psum.1", "total").replace("m,", "m, is_scheduled=true,"),
        "total",
    ),
    "two sums, of one of which each device keeps its part": (
        "sliced_reduction",
        sliced(f"{TWO}\n  ROOT r = (f32[8], f32[]) tuple(part, loss)")
        .replace("ROOT part", "part")
        .replace("psum.1 = f32[32] all-reduce(x)", "psum.2 = (f32[32], f32[]) all-reduce(x, l)"),
        "psum.2",
    ),
    "a sum that the partitioner inserts and XLA may change": (
        "sliced_reduction",
        sliced(PART).replace("psum.1", "total"),
        "",
    ),
    "a sum of which each device keeps its part and that is used": (
        "sliced_reduction",
        sliced(f"{PART}\n  ROOT r = (f32[8], f32[32]) tuple(part, psum.1)").replace("ROOT part", "part"),
        "",
    ),
    "a sum of which all devices keep the same part": (
        "sliced_reduction",
        sliced(PART.replace("(psum.1, start", "(psum.1, same")),
        "",
    ),
    "a sum of which each device keeps more than its part": (
        "sliced_reduction",
        sliced(PART.replace("[8]", "[16]").replace("{8}", "{16}")),
        "",
    ),
    "a sum of what no trip changes": ("hoistable_collective", looped(f"s = f32[64] all-reduce(w), {SUM}"), "s"),
    "a sum that is only added": (
        "hoistable_collective",
        looped(f"{OF_TRIP}\n  g = f32[64] all-reduce(t), {SUM}\n  s = f32[64] add(x, g)"),
        "g",
    ),
    "a sum that is added and used": (
        "hoistable_collective",
        looped(f"{OF_TRIP}\n  g = f32[64] all-reduce(t), {SUM}\n  h = f32[64] add(x, g)\n  s = f32[64] multiply(h, g)"),
        "",
    ),
    "a sum of the state": ("hoistable_collective", looped(f"s = f32[64] all-reduce(x), {SUM}"), ""),
    "a loop of one trip": ("hoistable_collective", looped(f"s = f32[64] all-reduce(w), {SUM}", trips=1), ""),
    "gathered to be split": (
        "full_rematerialization",
        gathered("ROOT s = f32[16,2] dynamic-slice(g, zero, start), dynamic_slice_sizes={16,2}"),
        "g",
    ),
    "gathered and used": ("full_rematerialization", gathered("ROOT s = f32[16,8] exponential(g)"), ""),
    "a product of converted operands": ("f32_from_bf16", product("wide", "wider"), "d"),
    "a product of a converted and a wide parameter": ("f32_from_bf16", product("wide", "w"), "d"),
    "a product with a value computed in f32": ("f32_from_bf16", product("wide", "soft"), ""),
    "a product of narrow operands": ("f32_from_bf16", product("x", "narrow"), ""),
    "a gather of what was converted": (
        "f32_from_bf16",
        program(
            f"""  x = bf16[1024] parameter(0)
  wide = f32[1024] convert(x)
  ROOT g = f32[4096] all-gather(wide), {ALL}, dimensions={{0}}"""
        ),
        "g",
    ),
    "a sum in f32, as it should be": (
        "f32_from_bf16",
        program(
            f"""  x = bf16[1024] parameter(0)
  wide = f32[1024] convert(x)
  ROOT g = f32[1024] all-reduce(wide), {SUM}"""
        ),
        "",
    ),
    "a callback": ("blocking_callback", called("xla_ffi_python_cpu_callback", "pure_callback.1"), "pure_callback.1"),
    "a callback in the cheaper branch": ("blocking_callback", BRANCHED, "pure_callback.1"),
    "a print": ("blocking_callback", called("xla_ffi_python_cpu_callback", "debug_callback.1"), ""),
    "a library": ("blocking_callback", called("lapack_sgetrf", "getrf.1"), ""),
}


@pytest.mark.parametrize("case", CASES)
def test_a_rule_finds_its_fault_and_nothing_else(case: str) -> None:
    rule, text, name = CASES[case]
    found = [each.instructions[0] for each in xb.lint(text).issues if each.rule == rule]
    assert found == ([name] if name else [])
    others = {each.rule for each in xb.lint(text).issues} - {rule}
    assert not others or name == ""


def test_a_product_in_one_precision_of_a_machine_costs_nothing_more() -> None:
    machine = xb.Machine(flops={"f32": 1e14}, memory_bandwidth=1e12)
    assert xb.lint(product("wide", "wider"), machine)


MESH = xb.Mesh(x=2)


def multiplied(*specs: xb.P) -> xb.Module:
    module = xb.Module("product", xb.computation(xb.f32[64, 64], xb.f32[64, 64])(xb.dot))
    return xb.shard.annotated(module, dict(enumerate(specs)), mesh=MESH)


def test_a_gather_that_a_sharding_avoids() -> None:
    report = xb.lint(multiplied(xb.P("x", None), xb.P("x", None)))
    (issue,) = report.issues
    assert issue.rule == "avoidable_gather"
    assert "state parameter.2 as replicated" in issue.fix
    assert "which xbuild's partitioner inserts" in issue.message
    assert issue.facts["bytes"] == 8192
    assert issue.facts["seconds"] > 0
    assert xb.lint(multiplied(xb.P("x", None), xb.P(None, None)))


def updated(before: str, after: str, *, is_tuple: bool, op: str = "subtract") -> str:
    """The text of a step on a mesh x=2, y=2 that updates w, which enters and leaves in these shardings."""
    mesh = "mesh['x'=2,'y'=2]"
    result = f"{{{mesh}, [{after}, {{}}]}}"
    scalar = f"{{{mesh}, []}}"
    root = (
        f"new = f32[64,64] {op}(w, g)\n  n = f32[] constant(1)\n  ROOT r = (f32[64,64], f32[]) tuple(new, n), "
        f"sharding={{{result}, {scalar}}}"
        if is_tuple
        else f"ROOT new = f32[64,64] {op}(w, g), sharding={result}"
    )
    if op == "dot":
        root = root.replace("dot(w, g)", "dot(w, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    return f"""HloModule step
ENTRY e {{
  w = f32[64,64] parameter(0), sharding={{{mesh}, [{before}, {{}}]}}, metadata={{op_name="p['w']"}}
  g = f32[64,64] parameter(1), sharding={{{mesh}, [{before}, {{}}]}}
  {root}
}}"""


@pytest.mark.parametrize("is_tuple", [False, True])
@pytest.mark.parametrize(
    ("before", "after", "ends"),
    [
        ("{'x','y'}", "{}", "enters in shards and leaves replicated"),
        ("{'x','y'}", "{'x'}", "enters in shards and leaves in larger shards"),
        ("{'x'}", "{'x'}", ""),
        ("{'x'}", "{'y'}", ""),
        ("{}", "{'x'}", ""),
    ],
)
def test_state_that_a_step_returns_in_larger_shards(before: str, after: str, ends: str, is_tuple: bool) -> None:
    report = xb.lint(updated(before, after, is_tuple=is_tuple), rules=["gathered_state"])
    assert bool(ends) == len(report.issues)
    if ends:
        (issue,) = report.issues
        assert issue.message.startswith(f"p['w'] {ends}: each step gathers it, and a device holds ")
        sizes = {"{}": 16384, "{'x'}": 8192, "{'x','y'}": 4096}
        assert issue.facts["bytes"] == sizes[after] - sizes[before]
        assert issue.facts["seconds"] > 0


def momentum(before: str, after: str, weight: str = "{'x','y'}") -> str:
    """The text of a step on a mesh x=2, y=2 whose momentum m enters and leaves in these shardings."""
    mesh = "mesh['x'=2,'y'=2]"
    w, m, n = (f"{{{mesh}, [{each}, {{}}]}}" for each in (weight, before, after))
    return f"""HloModule step
ENTRY e {{
  w = f32[64,64] parameter(0), sharding={w}, metadata={{op_name="w"}}
  m = f32[64,64] parameter(1), sharding={m}, metadata={{op_name="m"}}
  b = f32[8,64] parameter(2), sharding={{{mesh}, [{{}}, {{}}]}}
  y = f32[8,64] dot(b, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  g = f32[64,64] dot(b, y), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  new_m = f32[64,64] add(m, g)
  new_w = f32[64,64] subtract(w, new_m)
  ROOT r = (f32[64,64], f32[64,64]) tuple(new_w, new_m), sharding={{{w}, {n}}}
}}"""


@pytest.mark.parametrize(
    ("before", "after", "weight", "saved"),
    [
        ("{}", "{}", "{'x','y'}", 12288),
        ("{'x'}", "{}", "{'x','y'}", 4096),
        ("{}", "{}", "{'x'}", 8192),
        ("{'x','y'}", "{}", "{'x','y'}", 0),  # gathered_state reports this one
        ("{'x','y'}", "{'x','y'}", "{'x','y'}", 0),
        ("{'y'}", "{'y'}", "{'x'}", 0),
        ("{}", "{}", "{}", 0),
        ("{'x'}", "{'x'}", "{}", 0),
    ],
)
def test_state_that_is_split_less_than_its_weight(before: str, after: str, weight: str, saved: int) -> None:
    issues = xb.lint(momentum(before, after, weight), rules=["replicated_state"]).issues
    found = [
        each for each in issues if each.message.startswith("m is optimizer state that is split less than the weight")
    ]
    assert [each.facts["bytes"] for each in found] == [saved] * bool(saved)


def test_a_product_of_a_weight_is_no_state() -> None:
    assert xb.lint(updated("{'x','y'}", "{}", is_tuple=False, op="dot"), rules=["gathered_state"])


def test_every_rule_has_a_case() -> None:
    own = {"avoidable_gather", "gathered_state"}
    assert {rule for rule, _, name in CASES.values() if name} | own == {*xb.linting.RULES}
