"""Runs of an engine in a child process: a refusal, the death of the process and a run past its time are told apart."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from attrs import field, frozen

STARTING = 120.0
_LINES, _WIDTH = 12, 300
_FORCED = "--xla_force_host_platform_device_count"


@frozen
class Job:
    """A program as text and, for each device (replica * num_partitions + partition), the leaves of its arguments.

    The engine is "xla", which takes HLO text, or "stablehlo", which takes StableHLO. `platform` is a platform of JAX;
    None is the platform that JAX prefers.
    """

    text: str
    arguments: Sequence[Sequence[Any]] = field(default=((),))
    num_replicas: int = 1
    num_partitions: int = 1
    platform: str | None = "cpu"
    engine: str = "xla"


MOST_BYTES = "XBUILD_MOST_BYTES"
"""The environment variable that tells the child how many bytes a job may take."""


@frozen
class Failure:
    """The outcome of a job without results: `kind` is refused, died or late."""

    kind: str
    message: str


Outcome = list[list[Any]] | Failure


class Child:
    """A child process that runs one job after the other; `stop`, or the end of a `with` block, ends it."""

    def __init__(
        self, devices: int, platform: str | None = "cpu", most: int | None = None, engine: str = "xla"
    ) -> None:
        self.is_dead = self._is_ready = False
        self._sender: threading.Thread | None = None
        self._said = tempfile.TemporaryFile()  # noqa: SIM115, open for as long as the child
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "interpreter.engines.child", engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env=_environment(devices, platform) | ({} if most is None else {MOST_BYTES: str(most)}),
        )
        self._answers: queue.Queue[Any] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _listen(self) -> None:
        try:
            while True:
                self._answers.put(pickle.load(self.process.stdout))  # type: ignore[arg-type]
        except Exception:  # it has died, perhaps within an answer, or what it sends is no pickle
            self._answers.put(None)

    def run(self, job: Job, seconds: float | None = None) -> Outcome:
        """The leaves of the results by device, or a Failure; after the failures `died` and `late` the child is dead.

        The limit of seconds begins when the child has started.
        """
        try:
            answer: Any = self._asked(job, seconds) if self._has_started() else None
        except queue.Empty:
            self.stop()
            return Failure("late", f"no answer within {seconds:g} s")
        except BaseException:
            self.stop()
            raise
        if not _is_answer(answer):
            return self._death(5 if answer is None else 0)
        return Failure("refused", answer) if isinstance(answer, str) else [answer[each] for each in sorted(answer)]

    def _has_started(self) -> bool:
        """Whether the child has imported its engine; the child's first message states this."""
        if not self._is_ready:
            with contextlib.suppress(queue.Empty):
                self._is_ready = self._answers.get(timeout=STARTING) is not None
        return self._is_ready

    def _asked(self, job: Job, seconds: float | None) -> Any:
        """The child's answer to a job, None where the child has died; raises queue.Empty after too many seconds."""
        self._sender = threading.Thread(target=self._send, args=(job,), daemon=True)
        self._sender.start()
        answer = self._answers.get(timeout=None if seconds is None else min(seconds, threading.TIMEOUT_MAX))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _send(self, job: Job) -> None:
        """Send a job; this runs on a thread, since writing large arguments blocks until the child reads them."""
        assert self.process.stdin is not None
        arguments = dict(enumerate(job.arguments))
        try:
            told = job.text, arguments, job.num_replicas, job.num_partitions, job.platform
            pickle.dump(told, self.process.stdin)
            self.process.stdin.flush()
        except OSError:  # it is dead, as the listener tells
            return
        except BaseException as error:
            self._answers.put(error)

    def _death(self, seconds: float) -> Failure:
        """The failure of a child without an answer; the process has `seconds` to end by itself."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        status = self.process.poll()
        if status is not None:
            message = f"the process died with {_status(status)}"
        else:
            message = "the process sent something that is no answer" if self._is_ready else "the process does not start"
        last = self._last_words()
        self.stop()
        return Failure("died", "\n  ".join([message, *last]))

    def _last_words(self) -> list[str]:
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").splitlines()
        return [line[:_WIDTH].rstrip() for line in lines if line.strip()][-_LINES:]

    def stop(self) -> None:
        """End the process, whatever it does."""
        self.is_dead = True
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._listener.join()
        if self._sender:
            self._sender.join()
        for pipe in (self.process.stdin, self.process.stdout, self._said):
            with contextlib.suppress(OSError):  # what was not sent cannot be flushed
                if pipe:
                    pipe.close()


def _is_answer(answer: Any) -> bool:
    """Whether a message is an answer to a job: the text of a refusal, or a list of leaves for each device."""
    if isinstance(answer, dict):
        return all(isinstance(device, int) and isinstance(leaves, list) for device, leaves in answer.items())
    return isinstance(answer, str)


def _status(code: int) -> str:
    if code >= 0:
        return f"status {code}"
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"


def _environment(devices: int, platform: str | None) -> dict[str, str]:
    """The child's environment: the import path of these packages, and as many host devices as the program wants."""
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    flags = f"{os.environ.get('XLA_FLAGS', '')} {_FORCED}={devices}".strip()
    platforms = {"JAX_PLATFORMS": platform} if platform else {}
    return {**os.environ, **platforms, "XLA_FLAGS": flags, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}
