"""The orders in which programs are simulated, and the best of them: that in which they end in most scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from attrs import define, evolve, frozen

from ..deadlock.level_run import Context
from ..deadlock.levels import LevelStage
from ..model.verdict import Orders
from .choices import Scenario
from .scenarios import Outcomes, Scenarios
from .search import Search

MOST_ORDERS = 8  # scenarios of which the levels are asked for an order


@frozen(eq=False)
class Candidate:
    """Orders of the programs, and how the programs end in them."""

    orders: Mapping[int, Orders]
    context: Context
    outcomes: Outcomes


@define(eq=False, slots=False)
class Candidates:
    """The orders of programs that are simulated, one after the other until the programs end in all scenarios."""

    context: Context
    levels: LevelStage
    scenarios: Scenarios

    @cached_property
    def search(self) -> Search:
        return Search(self.context)

    @property
    def gave_up(self) -> bool:
        """Whether there are orders that were not searched."""
        return not self.context.program.given and self.search.gave_up

    def best(self) -> Candidate | None:
        """The orders in which the programs end in most scenarios; None where simulation would take too long."""
        best: Candidate | None = None
        for orders in self._listed():
            candidate = self._candidate(orders)
            if candidate is None:
                return None
            if best is None or candidate.outcomes.rank > best.outcomes.rank:
                best = candidate
            if best.outcomes.rank == 2:
                return best
        return best and self._searched(best)

    def _candidate(self, orders: Mapping[int, Orders]) -> Candidate | None:
        context = evolve(self.context, program=self.context.program.ordered(orders))
        outcomes = self.scenarios.outcomes(context)
        return None if outcomes is None else Candidate(orders, context, outcomes)

    def _listed(self) -> Iterator[Mapping[int, Orders]]:
        """The order that binds or that the levels found; where they are stuck, those that run in some scenario."""
        found = self.levels.recorder.orders()
        yield found
        if self.context.program.given or not self.levels.is_refused:
            return
        seen = [found]
        for scenario in self.scenarios.enumerated[:MOST_ORDERS]:
            assumed = self.levels.assuming(self.context, self.scenarios.assumed(scenario))
            if not assumed.stuck and assumed.recorder.torn is None:
                orders = _merged(found, assumed.recorder.orders())
                if orders not in seen:
                    seen.append(orders)
                    yield orders
        if {} not in seen:
            yield {}

    def _searched(self, best: Candidate) -> Candidate:
        """The first orders of the search in which the programs end in more scenarios; else these."""
        if self.context.program.given:
            return best
        for some in self._wanted(best.outcomes):
            orders = self.search.order([self.scenarios.decide(scenario) for scenario in some])
            candidate = None if orders is None else self._candidate(orders)
            if candidate is not None and candidate.outcomes.rank > best.outcomes.rank:
                return candidate
        return best

    def _wanted(self, outcomes: Outcomes) -> Iterator[list[Scenario]]:
        """The scenarios of which an order is searched in which they end: all, or where none ends, each by itself."""
        scenarios, hopeless = self.scenarios.enumerated, self.scenarios.is_hopeless
        is_hopeless = outcomes.bad is not None and hopeless(outcomes.bad)
        if not is_hopeless and not any(map(hopeless, scenarios)):
            yield [*scenarios]
        if not outcomes.rank:
            yield from ([scenario] for scenario in scenarios if not hopeless(scenario))


def _merged(first: Mapping[int, Orders], second: Mapping[int, Orders]) -> Mapping[int, Orders]:
    """The orders of both; where both have one of a computation, that of the second."""
    return {d: tuple({**dict(first.get(d, ())), **dict(second.get(d, ()))}.items()) for d in {**first, **second}}
