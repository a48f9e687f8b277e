"""Runs of an engine in a child process, and the messages between the child and its parent.

A refusal, the death of the process and a run past its time limit are distinct failures.

Sections:

    Messages: JSON, then arrays in the format npy, never pickles
    The child process, and the outcomes of its jobs
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np
from attrs import field, frozen

from shape_inference import PRIMITIVES, PrimitiveType, primitive_type
from xbuild.process.limits import bound_child

from .client import Leaves

# ----------------------------------------------------------------------------
# Messages: JSON, then arrays in the format npy, never pickles.

DONE = {"outcome": "done"}
"""The words of an answer with results."""
READY = {"outcome": "ready"}
"""The words of a child that has imported its engine."""
MAGIC = b"xbuild-1"
"""How a message begins; then come 8 bytes, a little-endian number: the length of the JSON."""
_LONGEST = 1 << 32  # bytes of the JSON, which contains the program


def send(pipe: IO[bytes], words: dict[str, Any], leaves: Leaves | None = None) -> None:
    """Write a message: words that JSON has, and the leaves of devices as arrays.

    Raises TypeError for an array of an element type that XLA lacks.
    """
    arrays = [] if leaves is None else [(device, np.asarray(leaf)) for device in leaves for leaf in leaves[device]]
    types = [(device, primitive_type(array.dtype).name) for device, array in arrays]
    header = json.dumps({"words": words, "devices": [*(leaves or ())], "types": types}).encode("ascii")
    pipe.write(MAGIC + len(header).to_bytes(8, "little") + header)
    for _, array in arrays:
        dtype = primitive_type(array.dtype)
        plain = array if dtype.is_native else array.view(_bits(dtype))
        np.lib.format.write_array(_Stream(pipe), plain, allow_pickle=False)
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[dict[str, Any], dict[int, list[Any]]]:
    """Read a message; raises EOFError at the end of the pipe, ValueError or KeyError for anything but a message."""
    if _exactly(pipe, len(MAGIC)) != MAGIC:
        raise ValueError("the data do not start with a message header")
    length = int.from_bytes(_exactly(pipe, 8), "little")
    if length > _LONGEST:
        raise ValueError(f"the message has {length:,} bytes, which exceeds the limit")
    header = json.loads(_exactly(pipe, length))
    leaves: dict[int, list[Any]] = {int(device): [] for device in header["devices"]}
    for device, name in header["types"]:
        dtype, row = PRIMITIVES[name], leaves[device]
        array = np.lib.format.read_array(_Stream(pipe), allow_pickle=False)
        if array.dtype != (dtype.dtype if dtype.is_native else _bits(dtype)):
            raise ValueError(f"expected an array of {name}, got {array.dtype}")
        row.append(array.view(dtype.dtype))
    words = header["words"]
    if not isinstance(words, dict):
        raise ValueError("expected the message text to be a JSON object")
    return words, leaves


def _bits(dtype: PrimitiveType) -> np.dtype[Any]:
    """The unsigned type of the same width: npy has no types of ml_dtypes."""
    return np.dtype(f"u{dtype.dtype.itemsize}")


class _Stream:
    """A pipe as NumPy's format functions take it: they ask a file for its position, which a pipe lacks."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self.pipe = pipe

    def read(self, count: int = -1, /) -> bytes:
        return self.pipe.read(count)

    def write(self, data: bytes, /) -> int:
        return self.pipe.write(data)


def _exactly(pipe: IO[bytes], count: int) -> bytes:
    data = pipe.read(count)
    if len(data) < count:
        raise EOFError
    return data


# ----------------------------------------------------------------------------
# The child process, and the outcomes of its jobs.

STARTING = 120.0
_LINES, _WIDTH = 12, 300
_FATAL = re.compile(r"F\d{4} ")  # as Abseil begins it
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


_CAN_FORK = hasattr(os, "fork")
OWN = 1 << 30
"""Bytes for the compiler and for threads, in addition to the program's values."""


@frozen
class Failure:
    """The outcome of a job without results: `kind` is refused, died, late or misfit.

    In a misfit, jaxlib's internals differ from those that the engine knows; the message is Python's.
    """

    kind: str
    message: str


Outcome = list[list[Any]] | Failure


class Child:
    """A child process that runs one job after the other; `stop`, or the end of a `with` block, ends it.

    With `forks`, where the system can copy processes, the child survives jobs that end the process of the engine.
    """

    def __init__(
        self,
        devices: int,
        platform: str | None = "cpu",
        most: int | None = None,
        engine: str = "xla",
        *,
        forks: bool = False,
    ) -> None:
        self.is_dead = self._is_ready = False
        self._unready: Any = None
        self._sender: threading.Thread | None = None
        # Open as long as the child, which shares its position, so this process must not read ahead.
        self._stderr = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "interpreter.engines.child", engine, *(["forks"] * (forks and _CAN_FORK))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=_environment(devices, platform),
        )
        self._most = most
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
                self._answers.put(receive(self.process.stdout))  # type: ignore[arg-type]
        except EOFError:  # it has died, perhaps within an answer
            self._answers.put(None)
        except Exception:  # what it sends is no message, or it has died within an array
            self._answers.put(({}, {}))

    def run(self, job: Job, seconds: float | None = None) -> Outcome:
        """The leaves of the results by device, or a Failure; after the failures `died` and `late` the child is dead.

        The limit of seconds begins when the child has started. A child that forks survives the failure `died`.
        """
        said = self._said()
        try:
            answer: Any = self._run_job(job, seconds) if self._has_started() else self._unready
        except queue.Empty:
            self.stop()
            return Failure("late", f"no answer within {seconds:g} s")
        except BaseException:
            self.stop()
            raise
        words: dict[str, Any] = answer[0] if answer else {}
        if words == DONE:
            return [leaves for _, leaves in sorted(answer[1].items())]
        if isinstance(words.get("refused"), str):
            return Failure("refused", words["refused"])
        if isinstance(words.get("misfit"), str):
            self.stop()
            return Failure("misfit", words["misfit"])
        if isinstance(words.get("died"), int):
            message = f"the process died with {_status(words['died'])}"
            return Failure("died", "\n  ".join([message, *self._last_words(said)]))
        return self._death(5 if answer is None else 0.5)

    def _has_started(self) -> bool:
        """Whether the child has imported its engine; the child's first message states this."""
        if not self._is_ready:
            with contextlib.suppress(queue.Empty):
                first = self._answers.get(timeout=STARTING)
                self._is_ready = first is not None and first[0] == READY
                self._unready = None if self._is_ready else first
            if self._is_ready and self._most is not None:
                bound_child(self.process.pid, OWN + self._most)
        return self._is_ready

    def _run_job(self, job: Job, seconds: float | None) -> Any:
        """The child's answer to a job, None if the child has died; raises queue.Empty after too many seconds."""
        self._sender = threading.Thread(target=self._send, args=(job,), daemon=True)
        self._sender.start()
        answer = self._answers.get(timeout=None if seconds is None else min(seconds, threading.TIMEOUT_MAX))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _send(self, job: Job) -> None:
        """Send a job; this runs on a thread, since writing large arguments blocks until the child reads them."""
        assert self.process.stdin is not None
        words = {name: getattr(job, name) for name in ("text", "num_replicas", "num_partitions", "platform")}
        try:
            send(self.process.stdin, words, dict(enumerate(job.arguments)))
        except OSError:  # it is dead, as the listener reports
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
            message = "the process sent an invalid answer" if self._is_ready else "the process did not start"
        message = "\n  ".join([message, *self._last_words()])
        self.stop()
        return Failure("died", message)

    def _said(self) -> int:
        """The bytes that the child has written to stderr."""
        return os.fstat(self._stderr.fileno()).st_size

    def _last_words(self, begin: int = 0) -> list[str]:
        """The line on stderr that states a failed check of the engine, and the last lines, from this byte on."""
        self._stderr.seek(begin)
        lines = self._stderr.read().decode(errors="replace").splitlines()
        words = [line[:_WIDTH].rstrip() for line in lines if line.strip()]
        fatal = [line for line in words[:-_LINES] if _FATAL.match(line)]
        return [*fatal[:1], *words[-_LINES:]]

    def stop(self) -> None:
        """End the process, whatever it does."""
        self.is_dead = True
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._listener.join()
        if self._sender:
            self._sender.join()
        for pipe in (self.process.stdin, self.process.stdout, self._stderr):
            with contextlib.suppress(OSError):  # what was not sent cannot be flushed
                if pipe:
                    pipe.close()


def _status(code: int) -> str:
    if code >= 0:
        return f"status {code}"
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"


def _environment(devices: int, platform: str | None) -> dict[str, str]:
    """The child's environment: the import path of these packages, and as many host devices as the program has."""
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    flags = f"{os.environ.get('XLA_FLAGS', '')} {_FORCED}={devices}".strip()
    platforms = {"JAX_PLATFORMS": platform} if platform else {}
    return {**os.environ, **platforms, "XLA_FLAGS": flags, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}
