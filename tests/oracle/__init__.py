"""Real XLA as a second opinion: HLO text runs in a child process, which may die without taking the tests along."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interpreter.engines.process import Child as Child
from interpreter.engines.process import Failure as Failure
from interpreter.engines.process import Job as Job
from interpreter.engines.process import Outcome as Outcome

SECONDS = 120
DEVICES = 8


def run(jobs: Iterable[Job], seconds: float = SECONDS) -> list[Outcome]:
    """For each job, for each device, the leaves of its result; or the failure. One child runs all that it survives."""
    with Oracle(seconds) as oracle:
        return [oracle.run(job) for job in jobs]


class Oracle:
    """Real XLA for one job after the other; a child that has died, or has run `jobs_of_one`, has a successor."""

    def __init__(self, seconds: float = SECONDS, jobs_of_one: int = 400) -> None:
        self.seconds, self.jobs_of_one = seconds, jobs_of_one
        self._child: Child | None = None
        self._done = 0

    def run(self, job: Job) -> Outcome:
        if self._done == self.jobs_of_one:
            self.stop()
        child = self._child = self._child or Child(DEVICES)
        self._done += 1
        outcome = child.run(job, self.seconds)
        if child.is_dead:
            self.stop()
        return outcome

    def stop(self) -> None:
        if self._child:
            self._child.stop()
        self._child, self._done = None, 0

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()


def run_one(text: str, *arguments: Any) -> list[Any]:
    """The leaves of one program's result on one device; RuntimeError where XLA refuses."""
    (outcome,) = run([Job(text, (arguments,))])
    if isinstance(outcome, Failure):
        raise RuntimeError(outcome.message)
    return outcome[0]
