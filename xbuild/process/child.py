"""One call of a child process that gets bytes and gives bytes, with bounds on its time, its output and its memory."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import IO, Any, Protocol

from attrs import frozen

from .limits import bound_child

_CHUNK = 1 << 16
_MOST_STDERR = 1 << 16  # bytes of stderr that are kept, the last ones
_LONGEST = 86_400.0  # seconds; operating systems refuse a timeout that overflows their counters


class TooMuchOutputError(Exception):
    """The error for a child process that wrote more than it may."""


class Process(Protocol):
    """A child process that has started: a Popen, or one that another process started."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> Any: ...
    @property
    def stdin(self) -> IO[bytes] | None: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    @property
    def stderr(self) -> IO[bytes] | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def kill(self) -> None: ...


@frozen
class Ended:
    """A process that has ended: its exit status, what it wrote to stdout, and the end of what it wrote to stderr."""

    status: int
    output: bytes
    said: bytes


def run_bounded(
    command: Sequence[str],
    given: bytes,
    *,
    seconds: float,
    most: int,
    memory: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a command with `given` on stdin; at most `most` bytes of output are read, and the process is then killed.

    `memory` limits the data of the process in bytes, on Linux. `environment` replaces the variables. Raises
    subprocess.TimeoutExpired after too many seconds, TooMuchOutputError for too much output, OSError where the command
    cannot be started, MemoryError where no thread can be.
    """
    return finish_bounded(start(command, environment), given, seconds=seconds, most=most, memory=memory)


def start(command: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a command that `finish_bounded` will give its input; raises OSError where it cannot be started."""
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )


def finish_bounded(process: Process, given: bytes, *, seconds: float, most: int, memory: int | None = None) -> Ended:
    """Give a started process its input, and wait for its end; the bounds and errors are those of `run_bounded`."""
    output, said = bytearray(), bytearray()
    threads = [
        threading.Thread(target=_write_input, args=(process.stdin, given), daemon=True),
        threading.Thread(target=_read_output, args=(process, output, most), daemon=True),
        threading.Thread(target=_read_stderr, args=(process.stderr, said), daemon=True),
    ]
    try:
        if memory is not None:
            bound_child(process.pid, memory)
        try:
            for thread in threads:
                thread.start()
        except RuntimeError as error:  # there is no memory for its stack
            raise MemoryError(str(error)) from None
        process.wait(min(seconds, _LONGEST))
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()
    if len(output) > most:
        raise TooMuchOutputError
    return Ended(process.returncode, bytes(output), bytes(said))


def _write_input(pipe: IO[bytes] | None, given: bytes) -> None:
    assert pipe is not None
    try:
        with pipe:
            pipe.write(given)
    except OSError:  # the process ended before it read everything
        return


def _read_output(process: Process, output: bytearray, most: int) -> None:
    """Read stdout to its end, or until it is longer than allowed; then the process is killed."""
    assert process.stdout is not None
    while chunk := process.stdout.read1(_CHUNK):  # type: ignore[attr-defined]
        output += chunk
        if len(output) > most:
            process.kill()
            return


def _read_stderr(pipe: IO[bytes] | None, said: bytearray) -> None:
    """Read stderr to its end, and keep the last bytes."""
    assert pipe is not None
    while chunk := pipe.read1(_CHUNK):  # type: ignore[attr-defined]
        said += chunk
        del said[:-_MOST_STDERR]
