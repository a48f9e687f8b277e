"""`xb.check_all`: proofs for all sizes, the smallest size that hangs, and what is outside the theorem."""

from __future__ import annotations

import json
from typing import Any

import pytest

import xbuild as xb
from tests.all_sizes.cases import HANGING, OUTSIDE, SAFE, Build, ring, token_ring, tree_all_reduce
from tests.all_sizes.random_schemes import compare
from xbuild.all_sizes.linear import LinearSum
from xbuild.all_sizes.ranking import Prover, instances_of, members_of
from xbuild.all_sizes.schemes import SchemeDevice, events_of
from xbuild.all_sizes.sizes import OutsideTheorem
from xbuild.all_sizes.waits import describe, families_of

MOST_EVENTS = 400  # of a size that is compared with the check


@pytest.mark.slow
@pytest.mark.parametrize("name", SAFE)
def test_a_proof_for_all_sizes_agrees_with_the_check_of_each_size_up_to_32(name: str) -> None:
    verdict = xb.check_all(SAFE[name], max_seconds=None)
    assert verdict.kind == "all", str(verdict)
    assert verdict
    assert verdict.proof is not None
    assert verdict.proof.cutoff == 2
    assert set(verdict.checked) >= {size for size in range(2, 10) if SAFE[name](size) is not None}
    for size in range(10, 33):
        scheme = SAFE[name](size)
        if scheme is not None and sum(map(len, events_of(scheme).values())) <= MOST_EVENTS:
            assert xb.check(scheme).kind == "ok", size


@pytest.mark.parametrize("name", HANGING)
def test_the_smallest_size_that_hangs_is_found(name: str) -> None:
    build, smallest = HANGING[name]
    verdict = xb.check_all(build, max_seconds=None)
    assert (verdict.kind, verdict.size) == ("hangs", smallest)
    assert verdict.checked == tuple(range(2, smallest))
    assert verdict.refused is not None
    assert verdict.refused.refused
    assert str(verdict).startswith(f"hangs: with {smallest} devices, and with no smaller number from 2 on\n")
    assert str(verdict.refused) in str(verdict)
    assert not verdict


@pytest.mark.parametrize("name", HANGING)
def test_no_scheme_that_hangs_is_proved(name: str) -> None:
    description = describe(HANGING[name][0], 2)
    with pytest.raises(OutsideTheorem):
        Prover(description, families_of(description)).prove()


@pytest.mark.slow
@pytest.mark.parametrize("name", OUTSIDE)
def test_outside_the_theorem_the_reason_is_named(name: str) -> None:
    build, words = OUTSIDE[name]
    verdict = xb.check_all(build, max_seconds=None)
    assert verdict.kind == "undecided"
    assert words in verdict.reason
    assert not verdict


@pytest.mark.parametrize("name", SAFE)
def test_the_events_for_all_sizes_are_those_of_each_size(name: str) -> None:
    description = describe(SAFE[name], 2)
    for size in (2, 3, 5, 8, 13):
        scheme, found = SAFE[name](size), instances_of(description, size)
        if scheme is None or found is None:
            assert scheme is found
            continue
        assert found.events == events_of(scheme)
        assert members_of(description, size, found) == scheme.members()


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 8, 9, 11, 12, 13, 14, 15, 16, 18])
def test_a_proof_alone_never_contradicts_the_check(seed: int) -> None:
    compare(seed)


def test_a_ranking_that_a_wait_increases_proves_nothing() -> None:
    description = describe(token_ring, 2)
    families = families_of(description)
    prover = Prover(description, families)
    up = {node: LinearSum((("d", 1),)) for node in prover.features}
    constant = dict.fromkeys(prover.features, LinearSum())
    assert prover._remaining(families, up) is None
    assert prover._remaining(families, constant) == families


# ----------------------------------------------------------------------------
# Builds that break the contract, and arguments.


def test_a_build_that_depends_on_the_type_of_its_argument_is_noticed() -> None:
    def build(n: Any) -> xb.Scheme:
        def program(device: Any) -> None:
            left, right = (device.index - 1) % n, (device.index + 1) % n
            if isinstance(n, xb.Size) or n < 25:
                device.exchange(right, left)
            else:
                device.send(right)
                device.recv(left)

        return xb.Scheme(n, program)

    verdict = xb.check_all(build)
    assert (verdict.kind, verdict.size) == ("hangs", 25)


@pytest.mark.parametrize(
    "use",
    [
        lambda n: list(range(n)),
        lambda n: [0] * n,
        lambda n: {n: 1},
        lambda n: n == 2.0,
        lambda n: n is not None and n / 2 > 1,
        lambda n: f"{n}",
        lambda n: n * n > 5,
        lambda n: 100 // n,
        lambda n: n**2,
        lambda n: {1: 2}.get(n),
        lambda n: float(n),
        lambda n: n in (None,),
    ],
)
def test_what_a_size_cannot_do_is_never_decided(use: Any) -> None:
    def build(n: Any) -> xb.Scheme:
        use(n)
        return ring(n)

    assert xb.check_all(build).kind == "undecided"


def test_a_program_of_one_size_that_hangs_is_found() -> None:
    def build(n: int) -> xb.Module:
        pairs = [(d, (d + 1) % n) for d in range(n)]

        @xb.computation(xb.f32[2])
        def program(x: xb.Value) -> xb.Value:
            if n != 20:
                return xb.collective_permute(x, pairs)
            token = xb.send_sync(x, 1, pairs)
            return xb.recv_sync(xb.f32[2], 1, pairs, token=token)

        return xb.Module("program", program, num_replicas=n)

    verdict = xb.check_all(build)
    assert (verdict.kind, verdict.size) == ("hangs", 20)


def test_the_verdict_is_plain_data() -> None:
    data = json.loads(json.dumps(xb.check_all(tree_all_reduce).to_dict()))
    assert data["kind"] == "all"
    assert data["checked"] == list(range(2, 10))
    assert data["proof"]["cutoff"] == 2
    assert len(data["proof"]["roles"]) == 5
    assert data["refused"] is None


def test_the_report_names_theorem_cutoff_and_sizes() -> None:
    verdict = xb.check_all(ring, at_least=3)
    assert str(verdict).splitlines()[0] == "all: no number of devices from 3 on can deadlock"
    for words in ("Karp, Miller and Winograd", "from 3 on (the cutoff): 3 kinds of devices", "3-10 were checked"):
        assert words in str(verdict)
    assert "d - 1 >= 0" in verdict.report(all=True)


def test_without_time_the_verdict_is_undecided() -> None:
    verdict = xb.check_all(tree_all_reduce, max_seconds=0)
    assert verdict.kind == "undecided"
    assert "0 seconds" in verdict.reason


@pytest.mark.parametrize("at_least", [0, -1, True, 2.0])
def test_the_first_size_is_positive(at_least: Any) -> None:
    with pytest.raises(ValueError, match="at_least must be a positive int"):
        xb.check_all(ring, at_least)


def _scheme(program: Any, n: Any = 3, groups: Any = None) -> xb.Scheme:
    return xb.Scheme(n, program, groups)


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: _scheme(lambda p: None, 0), ValueError, "at least 1, got 0"),
        (lambda: _scheme(lambda p: None, 2.5), TypeError, "got 2.5"),
        (lambda: _scheme(3), TypeError, "a function of a device"),
        (lambda: _scheme(lambda p: p.send(p.index)).module, ValueError, "device 0 communicates with itself"),
        (lambda: _scheme(lambda p: p.send(3)).module, ValueError, "communicates with 3, and there are 3 devices"),
        (lambda: _scheme(lambda p: p.send((0, 1))).module, TypeError, "is not an index of a device"),
        (lambda: _scheme(lambda p: p.send(1, channel=0)).module, TypeError, "a positive int as a channel"),
        (lambda: _scheme(lambda p: p.index or p.wait(1)).module, ValueError, "has posted no recv"),
        (lambda: _scheme(lambda p: p.index or p.post(1)).module, ValueError, "never waits for it"),
        (lambda: _scheme(lambda p: p.all_reduce("a")).module, ValueError, "'a' is not one of its groups"),
        (
            lambda: _scheme(lambda p: p.all_reduce("a"), 3, {"a": lambda index: None}).module,
            ValueError,
            "whose key for it is None",
        ),
    ],
)
def test_a_scheme_says_what_is_wrong_with_it(make: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words.replace("(", r"\(")):
        make()


def test_an_error_of_build_names_the_size() -> None:
    def build(n: Any) -> xb.Scheme:
        return _scheme(lambda p: p.send(n), n)

    with pytest.raises(ValueError, match="communicates with 2, and there are 2 devices") as raised:
        xb.check_all(build)
    assert "build(2)" in "".join(raised.value.__notes__)


def test_reports_of_schemes_name_the_lines_of_the_scheme() -> None:
    build: Build = HANGING["meeting without the last device"][0]
    assert "cases.py" in str(xb.check(build(5)))


def test_every_method_of_a_device_is_documented() -> None:
    assert all(getattr(SchemeDevice, name).__doc__ for name in vars(SchemeDevice) if not name.startswith("_"))
