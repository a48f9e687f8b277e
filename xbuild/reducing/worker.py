"""Workers of a reduction: processes that test whether the condition holds."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from .conditions import Condition

_GRACE = 5.0
"""The seconds after its limit in which a worker must answer."""


class Here:
    """A tester in this process: it tests one state at a time."""

    slots = 1

    def __init__(self, holds: Callable[[Sequence[str], float], bool]) -> None:
        self.holds = holds

    def submit(self, texts: tuple[str, ...], seconds: float) -> Future[bool]:
        answer: Future[bool] = Future()
        answer.set_result(self.holds(texts, seconds))
        return answer


class Workers:
    """Testers in processes of their own, which end with the `with` block."""

    def __init__(self, condition: Condition, slots: int) -> None:
        self.slots = slots
        self._condition = condition
        self._idle: queue.SimpleQueue[_Worker | None] = queue.SimpleQueue()
        self._all: list[_Worker] = []
        self._lock, self._is_closed = threading.Lock(), False
        for _ in range(slots):
            self._idle.put(None)
        self._threads = ThreadPoolExecutor(slots, "reduction")

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._is_closed = True
            for worker in self._all:
                worker.stop()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for worker in self._all:
            worker.close()

    def submit(self, texts: tuple[str, ...], seconds: float) -> Future[bool]:
        return self._threads.submit(self._test, texts, seconds)

    def _test(self, texts: tuple[str, ...], seconds: float) -> bool:
        worker = self._idle.get()
        try:
            with self._lock:
                if self._is_closed:
                    return False
                if worker is None or worker.is_dead:
                    worker = _Worker(self._condition)
                    self._all.append(worker)
            return worker.ask(texts, seconds)
        finally:
            self._idle.put(worker)


class _Worker:
    """One process, which answers one question after the other."""

    def __init__(self, condition: Condition) -> None:
        root = str(Path(__file__).parents[2])
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        expected = json.dumps([condition.expected, condition.as_text])
        self.is_dead = False
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "xbuild.reducing.child", condition.spelled, expected],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            text=True,
            encoding="utf-8",
        )

    def ask(self, texts: Sequence[str], seconds: float) -> bool:
        """Whether the condition holds; not if the worker ends, or does not answer in time."""
        timer = threading.Timer(seconds + _GRACE, self.stop)
        timer.daemon = True
        timer.start()
        try:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            print(json.dumps({"texts": list(texts), "seconds": seconds}), file=self._process.stdin, flush=True)
            answer = self._process.stdout.readline()
        except (OSError, ValueError):  # it has ended
            answer = ""
        finally:
            timer.cancel()
        if not answer:
            self.stop()
        return answer.strip() == "true"

    def stop(self) -> None:
        self.is_dead = True
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Close the pipes of the process, which has ended."""
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # what was not sent cannot be flushed
                if pipe:
                    pipe.close()
