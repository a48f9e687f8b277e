"""Smaller extents: which dimensions can be reduced, that the verdict stays, and what it says."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import xbuild as xb
from interpreter.fields.extents import Atom, flat, unify
from shape_inference import Shape
from tests.equivalence import reductions
from tests.equivalence.mutations import mutants
from tests.equivalence.planted import Changed
from tests.equivalence.programs import PAIRS

f = xb.f32


def both(one: Any, other: Any, *shapes: Any, **given: Any) -> tuple[str, tuple[str, ...]]:
    """The verdict at smaller extents, which is that at full ones, and the texts of the extents."""
    pair = [xb.computation(*shapes)(each) for each in (one, other)]
    full, small = (xb.equivalent(*pair, reduce_extents=smaller, **given) for smaller in (False, True))
    assert full.kind == small.kind, f"{full}\n{small}"
    return small.kind, small.details.get("extents", ())


@pytest.mark.parametrize("seed", [*range(1, 9), 13])
def test_verdicts_at_smaller_and_full_extents_agree(seed: int) -> None:
    found = reductions.judged(seed)
    assert found is None or not found.is_apart, f"{reductions.random_pair(seed)}\n{found.full}\n{found.small}"


@pytest.mark.parametrize("name", ["tensor_parallel", "layer_norm", "momentum"])
def test_partitioned_programs_are_reduced(name: str) -> None:
    (pair,) = (pair for pair in PAIRS if pair.name == name)
    large = evolve(pair, shapes=[Shape(s.dtype, tuple(8 * n for n in s.dims)) for s in pair.shapes])
    verdict = xb.equivalent(large.whole, large.cut, reduce_extents=True)
    assert verdict, str(verdict)
    assert dict(verdict.assumed)["extents"] >= 1
    cut = large.cut
    wrong = next(mutant for mutant in mutants(cut.module) if "all-reduce" in mutant.line).module
    changed = Changed(wrong, cut.mesh, cut.in_specs, cut.out_specs)
    assert xb.equivalent(large.whole, changed, reduce_extents=True).kind == "different"


def hankel(size: int, sign: int) -> Any:
    """The terms of one sign of the determinant of the power sums of x, which is 0 for fewer than `size` numbers."""

    def body(x: Any) -> Any:
        powers: dict[int, Any] = {}

        def power_sum(n: int) -> Any:
            if n not in powers:
                power = xb.broadcast(xb.constant(x.builder, np.float32(1)), x.shape.dims, [])
                for _ in range(n):
                    power = power * x
                powers[n] = xb.reduce(power, 0.0, xb.add, (0,))
            return powers[n]

        total = power_sum(0) * 0.0
        for order in itertools.permutations(range(size)):
            turned = sum(order[i] > order[j] for i in range(size) for j in range(i + 1, size))
            if turned % 2 == sign:
                term = power_sum(order[0])
                for row in range(1, size):
                    term = term * power_sum(row + order[row])
                total = total + term
        return total

    return body


@pytest.mark.parametrize("size", [2, 3, 4])
def test_polynomials_that_vanish_for_few_different_elements(size: int) -> None:
    kind, texts = both(hankel(size, 0), hankel(size, 1), f[48])
    assert kind == "different"
    assert int(texts[0].split(" to ")[1].split(",")[0]) > size


def mean(x: Any, by: float) -> Any:
    return xb.reduce(x, 0.0, xb.add, (0,)) * by


@pytest.mark.parametrize("by", [1 / 64, 1 / 8, 1 / 4])
def test_sums_count_all_elements(by: float) -> None:
    """A mean by a literal is one of the given extent only, not of the smaller one."""
    kind, texts = both(
        lambda x: mean(x - x + xb.broadcast(xb.constant(x.builder, np.float32(1)), [64], []), by),
        lambda x: mean(x - x, 1.0) + 1.0, f[64],
    )  # fmt: skip
    assert kind == ("equal" if by == 1 / 64 else "different")
    assert texts


KEPT = {
    "iota": lambda x: x * xb.convert(xb.iota(x.builder, xb.s32[64, 3], 0), f),
    "reverse": lambda x: xb.reverse(x, [0]),
    "sort": lambda x: xb.sort(x, dimension=0),
    "slice": lambda x: xb.slice(x, [1, 0], [64, 3], [1, 1]),
    "strided": lambda x: xb.slice(x, [0, 0], [64, 3], [2, 1]),
    "pad": lambda x: xb.pad(x, 0.0, [(1, 0, 0), (0, 0, 0)]),
    "largest": lambda x: xb.reduce(x, -np.inf, xb.maximum, (0,)),
    "product": lambda x: xb.reduce(x, 1.0, xb.multiply, (0,)),
    "from one": lambda x: xb.reduce(x, 1.0, xb.add, (0,)),
    "constant": lambda x: x + xb.constant(x.builder, np.arange(192, dtype=np.float32).reshape(64, 3)),
    "quotients by sums": lambda x: xb.reduce(1.0 / (x + xb.broadcast(xb.reduce(x, 0.0, xb.add, (0,)), [64, 3], [1])),
                                            0.0, xb.add, (0,)),
    "dynamic slice": lambda x: xb.dynamic_slice(x, [np.int32(1), np.int32(0)], [5, 3]),
    "update": lambda x: xb.dynamic_update_slice(x, xb.slice(x, [0, 0], [2, 3], [1, 1]), [np.int32(5), np.int32(0)]),
    "places by order": lambda x: xb.reduce(
        xb.convert(xb.compare(xb.broadcast(x, [64, 64, 3], [0, 2]), xb.broadcast(x, [64, 64, 3], [1, 2]), "LT"), f),
        0.0, xb.add, (0, 1)),
}  # fmt: skip


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_extents_on_which_an_op_depends_stay(body: Any) -> None:
    kind, texts = both(body, body, f[64, 3])
    assert kind == "equal"
    assert not texts


def halves(x: Any, order: int = 1) -> Any:
    """The two halves of each half as large as they are, in order or exchanged."""
    parts = [xb.slice(x, [0, 0], [32, 3], [1, 1]) * 2.0, xb.slice(x, [32, 0], [64, 3], [1, 1])]
    return xb.concatenate(parts[::order], 0)


def counted(x: Any) -> Any:
    return xb.constant(x.builder, np.int32(0))


def less_than_three(state: Any) -> Any:
    return state[0] < np.int32(3)


def next_state(state: Any) -> Any:
    return state[0] + np.int32(1), xb.tanh(state[1])


def positive(x: Any) -> Any:
    return xb.reduce(x, 0.0, xb.add, (0, 1)) > 0.0


REDUCED = {
    "quotients": (lambda x: xb.reduce(1.0 / x, 0.0, xb.add, (0,)), "dimension 0"),
    "halves": (halves, "a factor of dimension 0"),
    "reshape": (lambda x: xb.reshape(xb.reshape(x, [4, 48]) * 2.0, [64, 3]), "a factor of dimension 0"),
    "softmax of columns": (lambda x: xb.exp(x) / xb.broadcast(
        xb.reduce(xb.exp(x), 0.0, xb.add, (0,)), [64, 3], [1]), "dimension 0"),
    "call": (lambda x: xb.computation(f[64, 3])(xb.tanh)(x), "dimension 0"),
    "loop": (lambda x: xb.while_((counted(x), x), less_than_three, next_state)[1], "dimension 0"),
    "branches": (lambda x: xb.conditional(positive(x), x, xb.tanh, x, xb.exp), "dimension 0"),
    "integers": (lambda x: xb.reduce(xb.convert(x, xb.s32), np.int32(0), xb.add, (0,)), "dimension 0"),
    "tuple": (lambda x: (x + x, xb.reduce(x, 0.0, xb.add, (0,))), "dimension 0"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "told"), REDUCED.values(), ids=REDUCED)
def test_extents_that_are_reduced(body: Any, told: str) -> None:
    kind, texts = both(body, body, f[64, 3])
    assert kind == "equal"
    assert len(texts) == 1
    assert told in texts[0]


def test_halves_that_are_exchanged_differ() -> None:
    assert both(halves, lambda x: halves(x, -1), f[64, 3])[0] == "different"


def test_a_difference_names_the_given_programs() -> None:
    """Names, shapes, places and inputs are those of the programs that were given, not of the smaller ones."""
    shapes = f[64, 32], f[32, 48]
    one = xb.computation(*shapes)(lambda x, w: xb.tanh(xb.dot(x, w)))
    other = xb.computation(*shapes)(lambda x, w: xb.tanh(xb.dot(x, w) * 1.5))
    verdict = xb.equivalent(one, other, reduce_extents=True)
    assert verdict.kind == "different"
    assert verdict.difference is not None
    assert verdict.difference.other in other.instructions
    assert verdict.difference.value in one.instructions
    assert verdict.example is not None
    arguments = verdict.example.arguments[0]
    assert [np.shape(each) for each in arguments] == [(64, 32), (32, 48)]
    left, right = (xb.evaluate(each, *arguments)[verdict.example.element] for each in (one, other))
    np.testing.assert_allclose((left, right), (verdict.example.left, verdict.example.right), rtol=1e-3)


def test_functions_of_other_extents_stay_others() -> None:
    """Two calls of one target at 64 and at 32 elements are not the same function, though both become smaller."""
    text = """HloModule m
    ENTRY e {
      x = f32[64] parameter(0)
      y = f32[32] parameter(1)
      a = f32[64] custom-call(x), custom_call_target="Norm"
      b = f32[32] custom-call(y), custom_call_target="Norm"
      z = f32[] constant(0)
      s = f32[] reduce(a, z), dimensions={0}, to_apply=add
      t = f32[] reduce(b, z), dimensions={0}, to_apply=add
      ROOT r = f32[] add(s, t)
    }"""
    text = text.replace("HloModule m", "HloModule m\nadd { p = f32[] parameter(0)\n q = f32[] parameter(1)\n"
                        "ROOT r = f32[] add(p, q) }")  # fmt: skip
    verdict = xb.equivalent(text, text, reduce_extents=True)
    assert verdict, str(verdict)
    assert len(verdict.details["extents"]) == 4
    weighed = text.replace("add(s, t)", "subtract(s, t)")
    assert xb.equivalent(text, weighed, reduce_extents=True).kind == "different"


def test_factors_of_extents() -> None:
    whole, parts = [Atom(24)], [Atom(2), Atom(3), Atom(4)]
    unify(whole, parts)
    assert [atom.size for atom in flat(whole)] == [2, 3, 4]
    unify(whole, [Atom(6), Atom(4, is_fixed=True)])
    assert [atom.is_fixed for atom in flat(parts)] == [False, False, True]
    odd = [Atom(4), Atom(9)]
    unify(odd, [Atom(9), Atom(4)])
    assert all(atom.is_fixed for atom in flat(odd))
    unify([Atom(0)], [Atom(0), Atom(5)])


ASYNC = """HloModule m, replica_count=2
add {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = f32[] add(p, q)
}
doubled {
  p = f32[8,64] parameter(0)
  ROOT r = f32[8,64] add(p, p)
}
ENTRY e {
  x = f32[8,64] parameter(0)
  s = (f32[8,64], f32[16,64]) all-gather-start(x), dimensions={0}, replica_groups={{0,1}}
  g = f32[16,64] all-gather-done(s)
  t = f32[16,64] all-reduce-start(g), to_apply=add, replica_groups={{0,1}}
  a = f32[16,64] all-reduce-done(t)
  k = f32[8,64] slice(a), slice={[0:8], [0:64]}
  u = (f32[8,64], f32[8,64]) collective-permute-start(k), source_target_pairs={{0,1},{1,0}}
  c = f32[8,64] collective-permute-done(u)
  v = ((f32[8,64]), f32[8,64], u32[]) async-start(c), calls=doubled
  d = f32[8,64] async-done(v), calls=doubled
  w = (f32[8,64], f32[8,64], u32[]) copy-start(d)
  ROOT h = f32[8,64] copy-done(w)
}"""


def test_extents_of_asynchronous_ops() -> None:
    other = ASYNC.replace("add(p, p)", "subtract(p, p)")
    for text, kind in ((ASYNC, "equal"), (other, "different")):
        verdict = xb.equivalent(ASYNC, text, reduce_extents=True)
        assert verdict.kind == kind, str(verdict)
        assert any("64 to 3" in extent or "64 to 4" in extent for extent in verdict.details["extents"]), str(verdict)


SCAN = """HloModule m
body {
  x = f32[64] parameter(0)
  s = f32[64] parameter(1)
  t = f32[64] add(x, s)
  ROOT r = (f32[64], f32[64]) tuple(t, t)
}
ENTRY e {
  x = f32[5,64] parameter(0)
  y = f32[32] parameter(1)
  s = f32[64] parameter(2)
  r = (f32[5,64], f32[64]) scan(x, s), dimensions={0}, num_carries=1, to_apply=body
  a = f32[64] get-tuple-element(r), index=1
  ROOT t = (f32[64], f32[32]) tuple(a, y)
}"""


def test_the_dimensions_of_a_scan_stay() -> None:
    verdict = xb.equivalent(SCAN, SCAN, reduce_extents=True)
    assert verdict, str(verdict)
    assert verdict.details["extents"] == ("32 to 4, dimension 0 of %y: f32[32]",)
