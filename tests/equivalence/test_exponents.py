"""Laws of exponentials and logarithms: pairs that are equal by them alone, and pairs that are near and are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from interpreter.fields.rules import powers, residues
from interpreter.fields.rules.laws import OrderChoices
from interpreter.fields.rules.primes import PLAIN, TOWER, over
from interpreter.fields.rules.tables import Undecidable
from tests.equivalence.test_laws import spread, total

f = xb.f32
V, M, HEADS = f[8], f[4, 6], [f[4, 3], f[6, 3], f[6, 3]]


def plain(x: Any) -> Any:
    weights = xb.exp(x)
    return weights / spread(total(weights, 1), x, 0)


def log_sum(x: Any) -> Any:
    return xb.log(total(xb.exp(x), 1))


def rows_largest(x: Any) -> Any:
    return xb.reduce(x, -np.inf, xb.maximum, (1,))


def shifted_log_sum(x: Any) -> Any:
    top = rows_largest(x)
    return top + xb.log(total(xb.exp(x - spread(top, x, 0)), 1))


def shifted_log_softmax(x: Any) -> Any:
    shifted = x - spread(rows_largest(x), x, 0)
    return shifted - spread(xb.log(total(xb.exp(shifted), 1)), x, 0)


def attention(q: Any, k: Any, v: Any) -> Any:
    return xb.dot_general(xb.softmax(xb.dot_general(q, k, [1], [1])), v, [1], [0])


def online(q: Any, k: Any, v: Any, factor: float = 1.0) -> Any:
    """Attention block by block, with the largest score so far taken out; `factor` is a fault."""
    scores = xb.dot_general(q, k, [1], [1])
    top = weights = found = None
    for n in range(0, 6, 2):
        block, values = scores[:, n : n + 2], v[n : n + 2]
        new = rows_largest(block) if top is None else xb.max(top, rows_largest(block))
        own = xb.exp(block - spread(new, block, 0))
        sums, products = total(own, 1), xb.dot_general(own, values, [1], [0])
        if top is not None:
            old = xb.exp(top - new) * factor
            sums, products = weights * old + sums, found * spread(old, found, 0) + products
        top, weights, found = new, sums, products
    return found / spread(weights, found, 0)


def in_parts(x: Any) -> Any:
    """The logarithm of a sum over a vocabulary of two parts."""
    top = xb.max(rows_largest(x[:, :3]), rows_largest(x[:, 3:]))
    sums = [total(xb.exp(part - spread(top, part, 0)), 1) for part in (x[:, :3], x[:, 3:])]
    return top + xb.log(sums[0] + sums[1])


def tanh_by_exponentials(x: Any) -> Any:
    return (xb.exp(x) - xb.exp(-x)) / (xb.exp(x) + xb.exp(-x))


def twice(layer: Callable[..., Any]) -> Callable[..., Any]:
    return lambda q, k, v: layer(layer(q, k, v), k, v)


EQUAL: dict[str, tuple[list[Any], Callable[..., Any], Callable[..., Any]]] = {
    "sum": ([V, V], lambda x, y: xb.exp(x + y), lambda x, y: xb.exp(x) * xb.exp(y)),
    "softmax": ([M], plain, xb.softmax),
    "logarithm of a sum": ([M], log_sum, shifted_log_sum),
    "logarithm of a sum, in parts": ([M], log_sum, in_parts),
    "logarithm of softmax": ([M], lambda x: xb.log(plain(x)), shifted_log_softmax),
    "inverse": ([V], lambda x: xb.log(xb.exp(x)), lambda x: x),
    "logarithm of a product": ([V, V], lambda x, y: xb.log(xb.exp(x) * xb.exp(y)), lambda x, y: x + y),
    "attention by blocks": (HEADS, attention, online),
    "two layers": (HEADS, twice(attention), twice(online)),
    "logistic": ([V], xb.logistic, lambda x: 1.0 / (1.0 + xb.exp(-x))),
    "tanh": ([V], xb.tanh, tanh_by_exponentials),
    "log1p": ([V], lambda x: xb.log1p(xb.exp(x)), lambda x: xb.max(x, 0.0) + xb.log1p(xb.exp(-xb.abs(x)))),
    "logarithm of logistic": ([V], lambda x: xb.log(xb.logistic(x)), lambda x: -xb.log1p(xb.exp(-x))),
    "exponentials of exponentials": ([V, V], lambda x, y: xb.exp(xb.exp(x + y)),
                                     lambda x, y: xb.exp(xb.exp(x) * xb.exp(y))),
    "choices of what a law changes": ([M], lambda x: xb.max(rows_largest(x), log_sum(x)),
                                      lambda x: xb.max(rows_largest(x), shifted_log_sum(x))),
    "masked by minus infinity": ([V], lambda x: xb.log(total(xb.exp(x[:4]))),
                                 lambda x: xb.log(total(xb.exp(xb.pad(x[:4], -np.inf, [(0, 4)]) - 1.0))) + 1.0),
}  # fmt: skip

DIFFERENT: dict[str, tuple[list[Any], Callable[..., Any], Callable[..., Any]]] = {
    "product": ([V, V], lambda x, y: xb.exp(x * y), lambda x, y: xb.exp(x) * xb.exp(y)),
    "no shift back": ([M], log_sum, lambda x: shifted_log_sum(x) - rows_largest(x)),
    "softmax of another axis": ([f[6, 6]], plain, lambda x: xb.exp(x) / spread(total(xb.exp(x), 0), x, 1)),
    "block by block, one not scaled": (HEADS, attention, lambda q, k, v: online(q, k, v, 1.001)),
    "a little more": ([M], log_sum, lambda x: shifted_log_sum(x) + 1e-5),
    "logistic": ([V], xb.logistic, lambda x: 1.0 / (1.0 + xb.exp(x))),
}


def verdict(case: tuple[list[Any], Callable[..., Any], Callable[..., Any]]) -> Any:
    shapes, left, right = case
    return xb.equivalent(*(xb.computation(*shapes)(each) for each in (left, right)))


@pytest.mark.parametrize("name", EQUAL)
def test_programs_that_are_equal_by_a_law_are_accepted(name: str) -> None:
    found = verdict(EQUAL[name])
    assert found, str(found)
    assert found.log2_error < -60
    assert "exponents" in dict(found.assumed)
    assert "as powers with exponents in a second field" in str(found)


@pytest.mark.parametrize("name", DIFFERENT)
def test_programs_that_no_law_makes_equal_are_refused(name: str) -> None:
    assert verdict(DIFFERENT[name]).kind == "different"


def test_what_overflows_in_the_types_of_the_programs_is_different() -> None:
    found = verdict(([M], lambda x: plain(x * 60.0), lambda x: xb.softmax(x * 60.0)))
    assert found.kind == "different"
    assert found.example is not None
    assert np.isfinite(found.example.left) != np.isfinite(found.example.right)


def test_a_softmax_over_a_cut_dimension_by_its_parts() -> None:
    def parts(x: Any) -> Any:
        weights = xb.exp(x)
        return weights / spread(xb.mesh.psum(total(weights, 1), "j"), x, 0)

    whole = xb.computation(f[3, 8])(xb.softmax)
    cut = xb.shard_map(parts, xb.Mesh(j=4), (xb.P(None, "j"),), xb.P(None, "j")).program(f[3, 8])
    found = xb.equivalent(whole, cut)
    assert found, str(found)


exponents = st.integers(0, TOWER[2].primes[0] - 1)


@settings(max_examples=50, deadline=None)
@given(exponents, exponents, st.integers(1, 2**27))
def test_powers_and_logarithms_are_inverse(a: int, b: int, scale: int) -> None:
    order, prime = TOWER[2].primes[0], TOWER[3].primes[0]
    given_ = np.array([a, b, (a + b) % order], np.uint64)
    found = powers.power(given_, prime, scale)
    assert found[0] * found[1] % np.uint64(prime) == found[2]
    assert np.array_equal(powers.logarithm(found, prime, scale), given_)


@pytest.mark.parametrize("level", range(1, len(TOWER)))
def test_each_prime_is_twice_that_of_the_level_below_and_one(level: int) -> None:
    for prime, below in zip(TOWER[level].primes, TOWER[level - 1].primes, strict=True):
        assert prime == 2 * below + 1 < 2**31
        assert pow(3, below - 1, below) == 1
        assert pow(3, prime - 1, prime) == 1


def test_words_are_of_the_fields_inside() -> None:
    one = residues.of_integers(np.array([-1]))
    with over(TOWER[0]):
        assert residues.of_integers(np.array([-1])) != one
        assert residues.add(residues.of_integers(np.array([-1])), residues.of_integers(np.array([1]))) == 0
    assert residues.halves(one)[0] == PLAIN.primes[0] - 1


def test_choices_are_repeated_and_none_is_left_out() -> None:
    first = OrderChoices()
    assert first.taken((2,), lambda: np.array([1.0, 2.0])).tolist() == [1.0, 2.0]
    again = first.repeated(proposes=True)
    with pytest.raises(Undecidable):
        again.check_ended()
    assert again.taken((2,), lambda: np.array([3.0, 4.0])).tolist() == [1.0, 2.0]
    assert again.proposed[0].tolist() == [3.0, 4.0]
    again.check_ended()
    with pytest.raises(Undecidable):
        again.taken((2,), lambda: np.zeros(2))


def test_too_many_logarithms_are_left_open() -> None:
    values = np.arange(1, powers.MOST_LOGARITHMS + 3, dtype=np.uint64)
    with pytest.raises(Undecidable, match="logarithms of more than"):
        powers.logarithm(values, TOWER[3].primes[0], 1)
