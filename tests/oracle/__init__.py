"""Real XLA as a second opinion: HLO text runs in a child process, which may die without taking the tests along."""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen

SECONDS = 120
DEVICES = 8


@frozen
class Job:
    """A program as HLO text and, for each device (replica * num_partitions + partition), its arguments."""

    text: str
    arguments: Sequence[Sequence[Any]] = field(default=((),))
    num_replicas: int = 1
    num_partitions: int = 1


@frozen
class Failure:
    """What came instead of results: XLA's refusal, or how the child ended."""

    message: str


Outcome = list[list[Any]] | Failure


def run(jobs: Iterable[Job], seconds: float = SECONDS) -> list[Outcome]:
    """For each job, for each device, the leaves of its result; or the failure. One child runs all that it survives."""
    outcomes: list[Outcome] = []
    child = None
    for job in jobs:
        child = child or _Child()
        outcomes.append(child.run(job, seconds))
        if child.is_dead:
            child = None
    if child:
        child.stop()
    return outcomes


def run_one(text: str, *arguments: Any) -> list[Any]:
    """The leaves of one program's result on one device; RuntimeError where XLA refuses."""
    (outcome,) = run([Job(text, (arguments,))])
    if isinstance(outcome, Failure):
        raise RuntimeError(outcome.message)
    return outcome[0]


class _Child:
    def __init__(self) -> None:
        flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={DEVICES}".strip()
        root = str(Path(__file__).parents[2])
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.oracle.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={
                **os.environ,
                "JAX_PLATFORMS": "cpu",
                "XLA_FLAGS": flags,
                "PYTHONPATH": path,
                "TF_CPP_MIN_LOG_LEVEL": "3",
            },
        )
        self.answers: queue.Queue[Any] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.is_dead = False

    def _listen(self) -> None:
        try:
            while True:
                self.answers.put(pickle.load(self.process.stdout))  # type: ignore[arg-type]
        except (EOFError, pickle.UnpicklingError, OSError, ValueError):
            self.answers.put(None)

    def run(self, job: Job, seconds: float) -> Outcome:
        assert self.process.stdin is not None
        try:
            pickle.dump((job.text, job.arguments, job.num_replicas, job.num_partitions), self.process.stdin)
            self.process.stdin.flush()
            answer = self.answers.get(timeout=seconds)
        except queue.Empty:
            self.stop()
            return Failure(f"no answer within {seconds:g} s")
        except OSError:
            answer = None
        if answer is None:
            self.stop()
            return Failure(f"the process died with status {self.process.returncode}")
        return Failure(answer) if isinstance(answer, str) else answer

    def stop(self) -> None:
        self.is_dead = True
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                if pipe:
                    pipe.close()
            except OSError:  # what was not sent cannot be flushed
                pass
