"""Memory of programs: what shares memory, callees, donation, the curve, and what real XLA sets aside."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from shape_inference import XbuildError
from xbuild.core.graph import Computation, Instruction
from xbuild.costs.memory import memory_of

from .memory_table import rows

K = 4096
"""Bytes of f32[1024], the array of the cases."""

HEAD = "f32[1024]"

# name: (text of the entry and what it calls, header attributes, arrays at the peak, temporaries among them)
CASES: dict[str, tuple[str, str, int, int]] = {
    "an elementwise result takes over an operand that is read last": (
        "a = T negate(p)\n b = T exponential(a)\n ROOT c = T sine(b)", "", 2, 0,
    ),
    "an argument is not overwritten": ("a = T negate(p)\n ROOT c = T add(a, p)", "", 2, 0),
    "an operand that is read again is not overwritten": (
        "a = T negate(p)\n b = T exponential(a)\n ROOT c = T subtract(a, b)", "", 3, 1,
    ),
    "a reversed operand is not overwritten": ("a = T negate(p)\n ROOT b = T reverse(a), dimensions={0}", "", 3, 1),
    "tuples and bitcasts take nothing": (
        "a = T negate(p)\n b = f32[32,32] bitcast(a)\n c = (f32[32,32]) tuple(b)\n"
        " ROOT d = f32[32,32] get-tuple-element(c), index=0", "", 2, 0,
    ),
    "a reshape is a bitcast": ("a = T negate(p)\n ROOT b = f32[32,32] reshape(a)", "", 2, 0),
    "a donated argument is written over": (
        "ROOT a = T negate(p)", "input_output_alias={ {}: (0, {}, may-alias) }", 1, 0,
    ),
    "a donor gives its memory to a result like it": ("ROOT a = T negate(p)", "buffer_donor={ (0, {}) }", 1, 0),
    "a donated argument that is read again needs a temporary": (
        "a = T reverse(p), dimensions={0}\n ROOT b = T add(a, p)",
        "input_output_alias={ {}: (0, {}, may-alias) }", 2, 1,
    ),
    "an argument that is the result is copied": ("ROOT a = (T) tuple(p)", "", 2, 0),
    "one value that is two results is copied": ("a = T negate(p)\n ROOT b = (T, T) tuple(a, a)", "", 3, 0),
    "what nobody reads dies at once": ("a = T negate(p)\n ROOT b = T reverse(p), dimensions={0}", "", 2, 0),
    "a slice is updated in place": (
        "a = T negate(p)\n z = s32[] constant(0)\n u = f32[1] constant({1})\n"
        " ROOT b = T dynamic-update-slice(a, u, z)", "", 2, 0,
    ),
    "a call gives what its callee gives": ("ROOT a = T call(p), to_apply=twice", "", 2, 0),
    "a callee takes memory beside its caller's": ("ROOT a = T call(p), to_apply=turned", "", 3, 1),
    "of branches the one that takes most": (
        "z = s32[] constant(0)\n ROOT a = T conditional(z, p, p), branch_computations={twice, turned}", "", 3, 1,
    ),
    "a fusion holds nothing inside": ("ROOT a = T fusion(p), kind=kLoop, calls=turned", "", 2, 0),
    "a fusion that reads in place writes over an operand": (
        "a = T negate(p)\n ROOT b = T fusion(a), kind=kLoop, calls=twice", "", 2, 0,
    ),
    "a fusion that turns does not": ("a = T negate(p)\n ROOT b = T fusion(a), kind=kLoop, calls=turned", "", 3, 1),
    "the state of a loop lies in one place": ("ROOT a = T while(p), condition=never, body=twice", "", 2, 0),
    "a trip that turns its state needs another": ("ROOT a = T while(p), condition=never, body=turned", "", 3, 1),
    "what a loop hands on stays an argument": (
        "b = (T) tuple(p)\n c = (T) while(b), condition=never1, body=same\n d = T get-tuple-element(c), index=0\n"
        " ROOT e = T negate(d)", "", 2, 0,
    ),
    "an operand in flight is held until the done": (
        "a = T negate(p)\n s = (T, T, u32[], u32[]) collective-permute-start(a), source_target_pairs={{0,0}}\n"
        " n = T negate(p)\n d = T collective-permute-done(s)\n ROOT e = T add(d, n)", "", 4, 2,
    ),
    "memory of the host is not the device's": ("a = f32[1024]{0:S(5)} copy(p)\n ROOT b = T copy(a)", "", 2, 0),
    "a note of a sharding takes nothing": (
        'a = T negate(p)\n b = T custom-call(a), custom_call_target="Sharding"\n ROOT c = T exponential(b)', "", 2, 0,
    ),
    "what is moved to the host is not the device's": (
        'a = T custom-call(p), custom_call_target="MoveToHost"\n ROOT b = T reverse(a), dimensions={0}', "", 2, 0,
    ),
    "an op on a donated operand, as a compiler notes": (
        'a = T reverse(p), dimensions={0}\n ROOT b = T custom-call(a), custom_call_target="f", '
        "output_to_operand_aliasing={{}: (0, {})}", "", 2, 0,
    ),
}  # fmt: skip

CALLED = """
twice { x = T parameter(0) ROOT y = T add(x, x) }
turned { x = T parameter(0) y = T reverse(x), dimensions={0} z = T add(x, y) ROOT w = T reverse(z), dimensions={0} }
same { s = (T) parameter(0) x = T get-tuple-element(s), index=0 ROOT r = (T) tuple(x) }
never { x = T parameter(0) ROOT f = pred[] constant(false) }
never1 { x = (T) parameter(0) ROOT f = pred[] constant(false) }
"""


def program(entry: str, header: str) -> xb.Module:
    text = f"HloModule m, is_scheduled=true{', ' if header else ''}{header}\n{CALLED}\n"
    text += f"ENTRY main {{\n p = T parameter(0)\n {entry}\n}}\n"
    return xb.parse_hlo(re.sub(r"\bT\b", HEAD, text))


@pytest.mark.parametrize("name", CASES)
def test_peak(name: str) -> None:
    entry, header, arrays, temporaries = CASES[name]
    memory = xb.cost(program(entry, header)).memory
    assert (memory.peak // K, memory.temporaries // K) == (arrays, temporaries)
    assert memory.is_scheduled


@pytest.mark.parametrize("name", CASES)
def test_the_figures_agree(name: str) -> None:
    entry, header, *_ = CASES[name]
    cost = xb.cost(program(entry, header))
    memory = cost.memory
    assert memory.peak == max(memory.curve.bytes) == sum(each.bytes for each in memory.alive) == cost.peak_memory
    assert memory.curve.bytes[memory.peak_position] == memory.peak
    assert memory.peak == memory.arguments + memory.outputs - memory.aliased + memory.temporaries
    assert memory.reserved == memory.arguments + memory.outputs - memory.aliased + memory.apart >= memory.peak
    assert memory.to_dict()["curve"]["positions"] == list(range(len(memory.curve.instructions)))
    assert cost.to_dict()["memory"] == memory.to_dict()


# name: (body, arrays reserved, temporaries apart); each has a temporary t that ends before the result is written
RESERVED: dict[str, tuple[str, int, int]] = {
    "a temporary lies in a result that is written later": (
        "t = T reverse(p), dimensions={0}\n u = T reverse(t), dimensions={0}\n ROOT r = T reverse(u), dimensions={0}",
        3, 1,
    ),
    "a temporary does not fit into a smaller result": (
        "t = T reverse(p), dimensions={0}\n u = T reverse(t), dimensions={0}\n ROOT r = f32[4] slice(u), slice={[0:4]}",
        3, 2,
    ),
    "two temporaries, one after the other, lie in one result": (
        "t = T reverse(p), dimensions={0}\n a = f32[1] slice(t), slice={[0:1]}\n c = f32[] reshape(a)\n"
        " u = T broadcast(c), dimensions={}\n b = f32[1] slice(u), slice={[0:1]}\n d = f32[] reshape(b)\n"
        " ROOT r = T broadcast(d), dimensions={}",
        2, 0,
    ),
    "a temporary of a callee lies in a result of the entry": (
        "a = T call(p), to_apply=turned\n b = f32[1] slice(a), slice={[0:1]}\n c = f32[] reshape(b)\n"
        " ROOT r = T broadcast(c), dimensions={}",
        3, 1,
    ),
    "a result that is live with every temporary keeps none": (
        "r = T reverse(p), dimensions={0}\n t = T exponential(r)\n s = f32[1] slice(t), slice={[0:1]}\n"
        " ROOT o = (T, f32[1]) tuple(r, s)",
        3, 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RESERVED)
def test_what_xla_reserves(name: str) -> None:
    entry, arrays, apart = RESERVED[name]
    memory = xb.cost(program(entry, "")).memory
    assert (memory.reserved // K, memory.apart // K) == (arrays, apart)
    assert f"{memory.reserved / 1000:.3g} kB of memory" in str(xb.cost(program(entry, "")))


def test_a_source_line_is_told() -> None:
    alive = xb.cost(program(*CASES["a slice is updated in place"][:2])).memory.alive
    assert {each.instruction.name for each in alive if each.source} == {"p", "a"}


def test_constants_are_apart() -> None:
    assert memory_of(program(*CASES["a slice is updated in place"][:2])).constants == 8


def test_a_program_that_is_none_is_refused() -> None:
    outside, inside = (
        Instruction(opcode, name, xb.f32[2], operands)
        for opcode, name, operands in (("negate", "far", ()), ("negate", "near", ()))
    )
    user = Instruction("negate", "user", xb.f32[2], (outside,))
    with pytest.raises(XbuildError, match="operand %far of %user is not an instruction"):
        memory_of(xb.Module("m", Computation("c", (inside, user), user)))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=20))
def test_what_must_be_there_is_counted(steps: list[tuple[int, int, int]]) -> None:
    """No order of ops takes less than operands and result of any one instruction; none more than all arrays."""

    def body(x: xb.Value) -> xb.Value:
        values = [x]
        for kind, first, second in steps:
            a, b = values[first % len(values)], values[second % len(values)]
            values.append((a + b, xb.rev(a, (0,)), xb.exp(a), xb.select(xb.lt(a, b), a, b))[kind])
        return values[-1]

    computation = xb.computation(xb.f32[256])(body)
    memory = xb.cost(computation).memory
    arrays = {each for each in computation.instructions if each.opcode != "constant"}
    assert memory.peak <= sum(each.shape.bytes for each in arrays) + 1024  # type: ignore[union-attr]
    for at, each in zip(memory.curve.bytes, memory.curve.instructions, strict=True):
        held = {operand for operand in each.operands if operand.opcode != "constant"}
        assert at >= sum(operand.shape.bytes for operand in held)  # type: ignore[union-attr]


def test_callees_of_many_callers_are_laid_out_once() -> None:
    inner = xb.computation(xb.f32[8])(lambda x: xb.rev(xb.exp(xb.rev(x, (0,))), (0,)))
    for _ in range(40):
        called = inner
        inner = xb.computation(xb.f32[8])(lambda x, f=called: xb.call(xb.call(x, to_apply=f), to_apply=f))
    memory = xb.cost(inner).memory
    assert len(memory.curve.positions) < 300
    assert memory.peak == max(memory.curve.bytes)
    assert sum(each.bytes for each in memory.alive) == memory.peak


@pytest.mark.slow
def test_xla_reserves_as_much() -> None:
    pytest.importorskip("jax")
    found = list(rows())
    assert len(found) > 20
    assert [row for row in found if (row.arguments, row.aliased) != (row.xla_arguments, row.xla_aliased)] == []
    assert [str(row) for row in found if row.rule] == []


def test_more_bytes_than_an_int64_counts() -> None:
    text = """ENTRY e {
      x = f32[2305843009213693952] parameter(0)
      y = f32[2305843009213693952] reverse(x), dimensions={0}
      ROOT z = f32[] dot(y, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
    }"""
    assert xb.cost(xb.parse_hlo(text)).memory.apart == 1 << 63
