"""Pairs as people write them: equal, equal on a domain, or different, with an input that shows it."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from interpreter.fields import comparison, witness
from interpreter.fields.draws import NAMED, Domain, domain_of
from interpreter.fields.probes import probes
from interpreter.fields.rules import literals, residues
from interpreter.fields.rules.laws import OrderChoices, TowerLevel, evaluating, is_negative, root
from interpreter.fields.rules.places import drawing, known
from interpreter.fields.rules.primes import SIGNED, over
from interpreter.fields.variants import move_literals
from shape_inference import XbuildError
from tests.equivalence.everyday import DIFFERENT, EQUAL, ON_A_DOMAIN, Everyday

f = xb.f32
V = f[4]


@pytest.mark.parametrize("name", EQUAL)
def test_everyday_pairs_are_decided(name: str) -> None:
    found = EQUAL[name].verdict()
    assert found, str(found)
    assert found.log2_error < -60
    assert {"ordinary", "negative", "zero", "tied"} <= set(found.kinds)


@pytest.mark.parametrize("name", ON_A_DOMAIN)
def test_a_domain_restricts_arguments(name: str) -> None:
    pair, domain = ON_A_DOMAIN[name]
    found = evolve(pair, domain=domain).verdict()
    assert found, str(found)
    assert dict(found.assumed)["domain"] == len(domain)
    assert pair.verdict().kind == "different"


@pytest.mark.parametrize("name", DIFFERENT)
def test_other_functions_are_different(name: str) -> None:
    found = DIFFERENT[name].verdict()
    assert found.kind == "different", str(found)
    assert json.loads(json.dumps(found.to_dict()))["kind"] == "different"


@pytest.mark.parametrize("name", [name for name, pair in DIFFERENT.items() if pair.verdict().example is not None])
def test_the_input_that_is_named_shows_the_difference(name: str) -> None:
    pair = DIFFERENT[name]
    found = pair.verdict().example
    left, right = (
        np.asarray(xb.evaluate(xb.computation(*pair.shapes)(each), *found.arguments[0])[found.element])
        for each in (pair.one, pair.other)
    )
    assert not np.array_equal(left, right, equal_nan=True)
    assert str(found.left) in str(found)


@pytest.mark.parametrize("dtype", [xb.f16, xb.bf16, xb.f32, xb.f64], ids=str)
def test_literals_that_are_one_number_up_to_rounding(dtype: Any) -> None:
    shape = dtype[4]

    def number(x: Any, value: float) -> Any:
        return xb.broadcast_in_dim(xb.constant(x.builder, np.asarray(value, dtype.dtype)), [4], [])

    def verdict(one: float, other: float) -> Any:
        left = xb.computation(shape)(lambda x: x * number(x, one))
        return xb.equivalent(left, xb.computation(shape)(lambda x: x / number(x, other)))

    for one, other in ((0.1, 10.0), (1e-4, 1e4), (1 / 3, 3.0), (0.05, 20.0)):
        found = verdict(one, other)
        assert found, str(found)
        assert dict(found.assumed)["literals"] >= 1
    assert "literals" not in dict(verdict(0.5, 2.0).assumed)
    assert verdict(0.1, 11.0).kind == "different"


def test_literals_of_two_types_are_one_number() -> None:
    pi = [np.asarray(np.pi, dtype) for dtype in (np.float32, np.float64, xb.bf16.dtype)]
    found = literals.reading_of((float(each), each.dtype) for each in pi)
    assert len({found.fraction(float(each), each.dtype) for each in pi}) == 1
    assert found.fraction(2.0, np.dtype(np.float32)) == 2


def test_literals_move_within_their_rounding() -> None:
    text = "  c = f32[] constant(0.1)\n  d = bf16[2]{0} constant({0.334, 2})\n  n = s32[] constant(7)\n"
    random = np.random.default_rng(0)
    for _ in range(20):
        first, second, third = move_literals(text, random).splitlines()
        assert np.float32(first.split("(")[1][:-1]) == np.float32(0.1)
        assert first != text.splitlines()[0]
        assert second.endswith(", 2})")
        assert third == text.splitlines()[2]


RANGE = {
    "logistic": Everyday(lambda x: xb.exp(x) / (xb.exp(x) + 1.0), lambda x: 1.0 / (1.0 + xb.exp(-x)), (V,)),
    "square": Everyday(lambda x: x * x * 0.25, lambda x: (x * 0.5) * (x * 0.5), (V,)),
    "root of a square": Everyday(lambda x: xb.sqrt(x * x), xb.abs, (V,)),
    "log1p": Everyday(xb.log1p, lambda x: xb.log(1.0 + x), (V,)),
}


@pytest.mark.parametrize("name", RANGE)
def test_large_and_tiny_inputs_are_named_and_never_different(name: str) -> None:
    found = RANGE[name].verdict()
    assert found, str(found)
    if name == "square":
        return
    assert dict(found.assumed)["range"] >= 1
    assert found.example.kind in ("large", "tiny", "larger", "near literals")
    assert found.example.kind in str(found)


def test_random_numbers_of_other_distributions_are_different() -> None:
    def program(low: float, high: float, kind: str) -> xb.Module:
        return xb.parse_hlo(
            f"HloModule m\nENTRY e {{\n z = f32[] constant({low})\n o = f32[] constant({high})\n"
            f" ROOT a = f32[5] rng(z, o), distribution={kind}\n}}"
        )

    one = program(0, 1, "rng_uniform")
    assert xb.equivalent(one, one)
    for other in ((0, 1, "rng_normal"), (0, 2, "rng_uniform"), (5, 9, "rng_uniform")):
        assert xb.equivalent(one, program(*other)).kind == "different"


@pytest.mark.parametrize(("left", "right"), [(xb.pred, xb.s32), (xb.s32, xb.u32), (xb.s32, xb.s64), (xb.s32, xb.f32)])
def test_results_of_other_types_are_different(left: Any, right: Any) -> None:
    one, other = (xb.computation(V)(lambda x, t=t: xb.convert(x > 0.0, t)) for t in (left, right))
    found = xb.equivalent(one, other)
    assert found.kind == "different"
    assert f"output 0 is {left}[4] in one program and {right}[4] in the other" in found.reason


def test_floats_of_another_width_are_named() -> None:
    one = xb.computation(V)(lambda x: x + x)
    found = xb.equivalent(one, xb.computation(V)(lambda x: xb.convert(x * 2.0, xb.f64)))
    assert found, str(found)
    assert dict(found.assumed)["types"] == 1
    with pytest.raises(XbuildError, match=r"input 0 is f32\[4\] in one program and s32\[4\]"):
        xb.equivalent(one, xb.computation(xb.s32[4])(lambda x: x + x))


@pytest.mark.parametrize(
    ("domain", "told"),
    [({0: "small"}, "is 'small'; expected one of positive"), ({0: (2, 1)}, r"is \(2, 1\)"), ({3: "unit"}, "has only 2"),
     ({1: "unit"}, "have no order"), ({0: (0, float("nan"))}, "low < high")],
)  # fmt: skip
def test_domains_that_are_none_are_refused(domain: Any, told: str) -> None:
    program = xb.computation(V, xb.pred[4])(lambda x, p: xb.select(p, x, x + x))
    with pytest.raises(XbuildError, match=told) as caught:
        xb.equivalent(program, program, domain=domain)
    assert caught.value.kind == "invalid_attribute"


@pytest.mark.parametrize("given_", [*NAMED, (-3, 2), (0.25, 0.5), (5, float("inf")), (-1000, -10)], ids=str)
@pytest.mark.parametrize("dtype", [xb.f32, xb.f16, xb.bf16, xb.f8e4m3fn, xb.s32, xb.s4], ids=str)
def test_inputs_are_of_their_domain(given_: Any, dtype: Any) -> None:
    domain = domain_of(given_, "argument 0")
    low, high = (
        float(np.asarray(each).astype(dtype.dtype)) if abs(each) < 8 else each for each in (domain.low, domain.high)
    )
    random = np.random.default_rng(0)
    for probe in probes([dtype[50]], [1.0, 2.0]):
        with np.errstate(all="ignore"):
            found = domain.numbers(probe.draw(dtype[50], random)).astype(np.float64)
        if abs(domain.low) < 8 or domain.low == -np.inf:
            assert np.all((found >= low) & (found <= high)), probe.name
        assert domain.has_zero or np.all(found != 0)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**62 - 1), st.sampled_from([(0.0, 1.0), (-2.0, 3.0), (-500.0, 100.0), (10.0, np.inf)]))
def test_known_numbers_of_a_domain(seed: int, ends: tuple[float, float]) -> None:
    domain = Domain("d", *ends)
    with drawing(1, []):
        value = known(domain.words(np.array([seed], np.uint64), known=True))
    assert ends[0] <= value[0] <= ends[1]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, SIGNED[1].primes[0] - 1))
def test_signs_and_roots_obey_their_laws(number: int) -> None:
    word = np.array([number | 5 << 31], np.uint64)
    level = TowerLevel((1, 1), OrderChoices(), by_signs=True)
    with over(SIGNED[1]), evaluating(level):
        assert is_negative(word) != is_negative(residues.negate(word))
        square = residues.multiply(word, word)
        assert not is_negative(square)
        found = root(square)
        assert residues.halves(residues.multiply(found, found))[0] == residues.halves(square)[0]
        assert not is_negative(found)
        for small in (2, 3, 5, 7, 10):
            assert is_negative(residues.multiply(word, residues.of_integers(np.array(small)))) == is_negative(word)


def test_a_run_that_takes_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "LONGEST", 0.0)
    monkeypatch.setattr(comparison, "run_probes", lambda compared, seconds: witness.run_probes(compared, 0.0))

    def loop(step: Any) -> xb.Computation:
        return xb.computation(f[4])(
            lambda x: xb.while_((0, x), lambda each: each[0] < 20, lambda each: (each[0] + 1, step(each[1])))[1]
        )

    one, other = loop(lambda x: x + x), loop(lambda x: x * 2.0)
    found = xb.equivalent(one, other)
    assert found, str(found)
    assert found.kinds == ()
    assert "not run in floating point: every run stopped, at an error or after 0 s" in str(found)


def test_large_programs_are_searched_at_smaller_extents(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = (witness.LEAST_SECONDS * (1 - 0.5**number) for number in itertools.count())  # the first run takes most
    monkeypatch.setattr(witness, "time", SimpleNamespace(process_time=readings.__next__))
    shapes = f[256, 256], f[256, 256]

    def product(x: Any, y: Any) -> Any:
        return xb.dot_general(x, y, [1], [0])

    def turned(x: Any, y: Any) -> Any:
        return xb.transpose(product(xb.transpose(y, [1, 0]), xb.transpose(x, [1, 0])), [1, 0])

    one, other = (xb.computation(*shapes)(each) for each in (product, turned))
    found = xb.equivalent(one, other)
    assert found, str(found)
    assert "with large extents divided by 16" in str(found)
    wrong = xb.computation(*shapes)(lambda x, y: turned(x, y) + xb.sqrt(x) * 0.0)
    assert xb.equivalent(one, wrong).kind == "different"
