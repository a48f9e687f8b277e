"""That every op counts its operations or is stated to do none, and that a cost is that of its parts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from xbuild.core.op import OPS, opcodes
from xbuild.costs.work import work_rules


def test_an_op_has_a_rule_where_its_declaration_says_so() -> None:
    assert opcodes(lambda op: op.work == "rule") == work_rules.keys()


@pytest.mark.parametrize("opcode", sorted(OPS))
def test_the_work_of_an_op_is_stated(opcode: str) -> None:
    """Ops that compute are counted; what moves, makes or passes values does no work, and says so."""
    properties = OPS[opcode].properties
    assert properties.work in ("none", "each", "transcendental", "rule")
    if properties.work in ("each", "transcendental"):
        assert properties.elements == "same_place" or opcode == "bitcast_convert"
    if properties.elements == "same_place":
        assert (properties.work == "none") == properties.is_identity
    if properties.elements == "moved":
        assert properties.work == "none"


def text(body: str, header: str = "") -> xb.Module:
    reducer = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }"
    return xb.parse_hlo(f"HloModule m{header}\n{reducer}\nENTRY main {{\n p = f32[8] parameter(0)\n {body}\n}}")


PAIRS = "source_target_pairs={{0,1},{1,2},{2,3},{3,0}}"
STARTS: dict[str, tuple[str, str]] = {
    "all-reduce": (
        "ROOT r = f32[8] all-reduce(p), to_apply=add",
        "s = f32[8] all-reduce-start(p), to_apply=add\n ROOT r = f32[8] all-reduce-done(s)",
    ),
    "all-gather": (
        "ROOT r = f32[32] all-gather(p), dimensions={0}",
        "s = (f32[8], f32[32]) all-gather-start(p), dimensions={0}\n ROOT r = f32[32] all-gather-done(s)",
    ),
    "collective-permute": (
        f"ROOT r = f32[8] collective-permute(p), {PAIRS}",
        f"s = (f32[8], f32[8]) collective-permute-start(p), {PAIRS}\n ROOT r = f32[8] collective-permute-done(s)",
    ),
}


@pytest.mark.parametrize("name", STARTS)
def test_a_start_costs_what_its_collective_does(name: str) -> None:
    """Operations and links; the done does nothing more."""
    plain, started = (xb.cost(text(body, ", replica_count=4")) for body in STARTS[name])
    for figure in ("flops", "transcendentals", "link_bytes", "steps"):
        assert getattr(plain, figure) == getattr(started, figure)
    (row,) = started.collectives
    assert row.op == f"{name}-start"
    assert row.link_bytes > 0


@pytest.mark.parametrize("op", ["send", "recv"])
def test_a_transfer_counts_once_at_its_send(op: str) -> None:
    given = "p, t" if op == "send" else "t"
    done = "token[]" if op == "send" else "(f32[8], token[])"
    pairs = "channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}"
    body = (
        f"t = token[] after-all()\n s = (f32[8], u32[], token[]) {op}({given}), {pairs}\n"
        f" ROOT d = {done} {op}-done(s), channel_id=1"
    )
    (row,) = xb.cost(text(body, ", replica_count=2")).collectives
    assert (row.link_bytes, row.steps, row.flops) == ((32, 1, 0) if op == "send" else (0, 0, 0))
    assert row.collective is not None
    assert row.collective.total_bytes == row.link_bytes


STEPS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=12)


def recorded(steps: list[tuple[int, int, int]], x: xb.Value) -> xb.Value:
    values = [x]
    for kind, first, second in steps:
        a, b = values[first % len(values)], values[second % len(values)]
        values.append((a + b, xb.exp(a), xb.dot(a, b), xb.transpose(a, (1, 0)), a[:4, :4] @ b[:4, :])[kind])
        if kind == 4:
            values[-1] = xb.concatenate([values[-1], values[-1]], 0)
    return values[-1]


@settings(deadline=None, max_examples=40)
@given(STEPS, STEPS)
def test_a_program_costs_what_its_parts_do(
    first: list[tuple[int, int, int]], second: list[tuple[int, int, int]]
) -> None:
    parts = [xb.computation(xb.f32[8, 8])(lambda x, s=steps: recorded(s, x)) for steps in (first, second)]
    whole = xb.computation(xb.f32[8, 8])(lambda x: recorded(second, recorded(first, x)))
    called = xb.computation(xb.f32[8, 8])(lambda x: xb.call(xb.call(x, to_apply=parts[0]), to_apply=parts[1]))
    for figure in ("flops", "transcendentals", "bytes"):
        expected = sum(getattr(xb.cost(part), figure) for part in parts)
        assert getattr(xb.cost(whole), figure) == getattr(xb.cost(called), figure) == expected


@settings(deadline=None, max_examples=40)
@given(STEPS)
def test_a_fused_program_moves_no_more_bytes(steps: list[tuple[int, int, int]]) -> None:
    plain = xb.computation(xb.f32[8, 8])(lambda x: recorded(steps, x))
    fused = xb.computation(xb.f32[8, 8])(lambda x: xb.fusion(x, lambda y: recorded(steps, y)))
    assert xb.cost(fused).bytes <= xb.cost(plain).bytes
    assert xb.cost(fused).flops == xb.cost(plain).flops
    assert xb.cost(fused).peak_memory <= xb.cost(plain).peak_memory
