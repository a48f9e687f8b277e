"""Rules over prime fields: every op has one or is named, and on numbers that the fields know they give its values."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tests.cases
import xbuild as xb
from interpreter.fields import draws
from interpreter.fields.rules import literals, products, residues
from interpreter.fields.rules.evaluation import literal_words
from interpreter.fields.rules.places import drawing, known, places
from interpreter.fields.rules.primes import PLAIN
from interpreter.fields.rules.tables import MOVED, REFUSED, Undecidable, fields, treatment
from interpreter.fields.run import Subject
from tests.cases.case import Case
from xbuild.checking.model.program import as_module
from xbuild.core.op import OPS

FAMILIES = [info.name for info in pkgutil.iter_modules(tests.cases.__path__) if info.name != "case"]
EXACT = ("f32", "f64")
ROUNDS = (
    "reduce-", "convert-", "stochastic", "bitcast", "map-bits", "TOTALORDER", "sort-total", "topk", "computed-nan",
    "comfortable-floats", "nan-last", "indefinite", "cholesky-nan", "rsqrt-f32", "power-f32",
)  # fmt: skip
"""Cases whose numbers are rounded, whose bits are looked at, or that tell signs of zeros and NaN."""


@pytest.mark.parametrize("opcode", OPS)
def test_every_op_has_a_rule_or_is_named(opcode: str) -> None:
    found = treatment(opcode)
    if found == "undecided":
        assert opcode in REFUSED, f"{opcode} has no rule, and no class that a verdict names"
    if found == "rule":
        assert opcode in fields
    if opcode in MOVED:
        assert found in ("moved", "undecided", "rule", "walked")


def over_fields(computation: Any, arguments: Any) -> tuple[list[Any], list[Any]]:
    """The words of the results, and the numbers of them that the fields know."""
    subject = Subject(as_module(computation))
    flat = [
        each for a, p in zip(arguments, computation.parameters, strict=True) for each in draws.flat_arrays(a, p.shape)
    ]
    shapes = subject.inputs(0)
    words = [literal_words(each, shape) for each, shape in zip(flat, shapes, strict=True)]
    given = [each for each, shape in zip(flat, shapes, strict=True) if shape.dtype.kind == "float"]
    finite = [each[np.isfinite(each.astype(np.float64))] for each in given]
    with np.errstate(all="ignore"), drawing(1, [*subject.literals(), *finite]):
        (results,) = subject.run([words], None, xb.Limits())
        return results, [known(each) if each.dtype == np.uint64 else each for each in results]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("family", FAMILIES)
def test_known_numbers_are_those_of_a_run(family: str) -> None:
    for case in importlib.import_module(f"tests.cases.{family}").CASES:
        if not any(word in case.id for word in ROUNDS):
            check(case)


def check(case: Case) -> None:
    computation = case.computation()
    try:
        words, numbers = over_fields(computation, case.arguments)
    except (Undecidable, xb.Refused):
        return
    wanted = draws.flat_arrays(xb.evaluate(computation, *case.arguments), computation.root.shape)
    for word, number, want, shape in zip(words, numbers, wanted, draws.shapes_of([computation.root]), strict=True):
        assert word.shape == want.shape
        if str(shape.dtype) in EXACT:
            at = np.isfinite(number) & np.isfinite(want)
            np.testing.assert_allclose(number[at], want[at], rtol=1e-4, atol=1e-6, err_msg=case.id)
        elif shape.dtype.is_integer or shape.dtype.kind == "pred":
            assert np.array_equal(word, want), case.id


words = st.integers(0, PLAIN.primes[0] - 1).flatmap(
    lambda first: st.integers(0, PLAIN.primes[1] - 1).map(lambda second: np.array([first | second << 31], np.uint64))
)


@settings(max_examples=100, deadline=None)
@given(words, words, words)
def test_the_words_are_a_field(a: Any, b: Any, c: Any) -> None:
    add, multiply = residues.add, residues.multiply
    assert multiply(a, add(b, c)) == add(multiply(a, b), multiply(a, c))
    assert add(a, residues.negate(a)) == 0
    assert add(add(a, b), c) == add(a, add(b, c))
    if all((a & 0x7FFFFFFF) != 0) and all(a >> np.uint64(31) != 0):
        assert multiply(a, residues.inverse(a)) == residues.of_integers(np.array([1]))


@settings(max_examples=100, deadline=None)
@given(st.integers(-(2**21), 2**21), st.sampled_from([1, 2, 64, 256]))
def test_small_numbers_stand_at_their_place(numerator: int, denominator: int) -> None:
    value = np.array([numerator / denominator])
    assert known(residues.of_reals(value)) == value
    assert places(residues.of_reals(value)) == value


@settings(max_examples=100, deadline=None)
@given(words)
def test_the_place_of_the_opposite_is_the_opposite(word: Any) -> None:
    assert places(residues.negate(word)) == -places(word)


@pytest.mark.parametrize(
    ("value", "dtype", "fraction"),
    [(0.1, xb.bf16, "1/10"), (0.1, xb.f32, "1/10"), (1 / 3, xb.f32, "1/3"), (0.75, xb.f16, "3/4"), (3.0, xb.f32, "3"),
     (3.14159274101257, xb.f32, "13176795/4194304")],
)  # fmt: skip
def test_a_literal_is_the_simplest_fraction_that_rounds_to_it(value: float, dtype: Any, fraction: str) -> None:
    rounded = np.asarray(value, dtype.dtype)
    assert str(literals.simplest(float(rounded), dtype.dtype)) == fraction


@pytest.mark.parametrize("terms", [1, 1000, 70000])
def test_products_are_exact(terms: int) -> None:
    random = np.random.default_rng(0)
    left, right = (random.integers(0, PLAIN.primes[1], terms).astype(np.uint64) for _ in range(2))
    shape = xb.f32[terms]
    computation = xb.computation(shape, shape)(lambda x, y: xb.dot_general(x, y, [0], [0]))
    subject = Subject(as_module(computation))
    ((found,),) = subject.run([[residues.packed(left, left), residues.packed(right, right)]], None, xb.Limits())
    total = sum(a * b for a, b in zip(left.tolist(), right.tolist(), strict=True))
    assert [int(half) for half in residues.halves(found)] == [total % prime for prime in PLAIN.primes]


@pytest.mark.parametrize("shapes", [((3, 5, 4), (3, 4, 7)), ((2, 9, 4), (6, 4, 2)), ((4,), (4,)), ((1, 4), (4, 0))])
def test_dots_in_blocks(monkeypatch: pytest.MonkeyPatch, shapes: Any) -> None:
    """A large dot is computed block by block, along a free dimension of either operand."""
    batch = [0] if shapes[0][0] == shapes[1][0] == 3 else []
    contracted = ([len(shapes[0]) - 1], [max(len(shapes[1]) - 2, 0)])
    program = xb.computation(*(xb.f32[each] for each in shapes))(
        lambda x, y: xb.dot_general(x, y, *contracted, batch, batch)
    )
    subject = Subject(xb.Module("m", program))
    random = np.random.default_rng(1)
    arrays = [[draws.field_array(shape, random) for shape in subject.inputs(0)]]
    found = []
    for block in (1 << 23, 3):
        monkeypatch.setattr(products, "BLOCK", block)
        with drawing(0, []):
            found.append(subject.run(arrays, None, xb.Limits())[0][0])
    assert np.array_equal(*found)
    assert found[0].shape == program.root.shape.dims
