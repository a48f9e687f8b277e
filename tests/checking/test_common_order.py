"""One order for all devices of one program, where the order that was found differs between them."""

from __future__ import annotations

import pytest

import xbuild as xb
from tests.exhaustive.compare import _order, check
from tests.exhaustive.generator import random_program
from tests.exhaustive.model.judge import outcomes
from tests.exhaustive.text import parsed
from tests.support.random_programs import random_program as program_of
from xbuild.checking import stages

OWN = "the devices run different orders"


def orders_of(verdict: xb.Verdict) -> set[object]:
    return {verdict.orders(device) for device in verdict.schedule}


@pytest.mark.parametrize("seed", [*range(400, 420), 905])
def test_devices_of_one_program_have_one_order_or_the_verdict_says_so(seed: int) -> None:
    found = program_of(seed)
    verdict = xb.check(found.module)
    if isinstance(found.module, xb.Module) and verdict.kind == "ok":
        assert (len(orders_of(verdict)) > 1) == (OWN in str(verdict))


def test_where_no_common_order_is_there_the_verdict_says_so_and_its_orders_run() -> None:
    program = random_program(3406331)
    verdict = check(program, parsed(program))
    assert verdict.kind == "ok"
    assert OWN in str(verdict)
    orders = tuple(_order(program.entries[d], verdict.orders(d)) for d in range(program.devices))
    assert outcomes(program, orders) == {True}


def test_without_candidates_the_orders_stay_as_they_were_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for a common order is needed: one program at least has one order for its devices by it alone."""
    with_it = [str(xb.check(program_of(seed).module)) for seed in range(380, 480)]
    monkeypatch.setattr(stages, "_common_candidates", lambda orders: iter(()))
    without = [str(xb.check(program_of(seed).module)) for seed in range(380, 480)]
    assert sum(OWN in each for each in without) > sum(OWN in each for each in with_it)
