"""A process that has imported everything and forks for each request, so that code runs without waiting for imports.

The parent sends the ends of five pipes through a Unix socket: stdin, stdout and stderr of the fork, its exit status,
and a pipe whose end kills the fork. The forking process reads no request, so it keeps nothing of the learner's code.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from typing import IO

from attrs import define, field

from .sandbox import TRUSTED, Sandbox, environment, python_words

_STATUS = struct.Struct("i")
_PIPES = 5

CAN_FORK = sys.platform == "linux"
"""Whether forks are safe after the imports; on other systems, libraries start threads that a fork lacks."""


# ----------------------------------------------------------------------------
# The forking process


def fork_for_requests(prepare: Callable[[], None], answer: Callable[[], None]) -> None:
    """Fork for each message on the Unix socket that is stdin; the fork runs `answer`. Returns when the socket ends."""
    prepare()
    gc.freeze()
    channel = socket.socket(fileno=os.dup(0))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system discards the supervisors that have ended
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt in the terminal is for the parent
    while True:
        message, pipes, _, _ = socket.recv_fds(channel, 1, _PIPES)
        if not message:
            return
        if os.fork() == 0:
            with contextlib.suppress(BaseException):
                channel.close()
                _supervise(answer, *pipes)
            os._exit(0)
        for pipe in pipes:
            os.close(pipe)


def _supervise(answer: Callable[[], None], given: int, output: int, said: int, status: int, control: int) -> None:
    """Fork once more, wait for the fork, and write its exit status; kill it when the control pipe ends."""
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    worker = os.fork()
    if worker == 0:
        signal.set_wakeup_fd(-1)
        _work(answer, (given, output, said))
    for pipe in (given, output, said):
        os.close(pipe)
    if ended not in select.select([ended, control], [], [])[0]:
        os.kill(worker, signal.SIGKILL)
    os.write(status, _STATUS.pack(os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])))


def _work(answer: Callable[[], None], pipes: tuple[int, int, int]) -> None:
    """Answer a request and end; no other descriptor stays open."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor, pipe in enumerate(pipes):
            os.dup2(pipe, descriptor)
        os.closerange(3, 1024)
        answer()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


# ----------------------------------------------------------------------------
# Its parent


@define(eq=False)
class Fork:
    """A fork of the forking process, with what `finish_bounded` uses of a process."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None
    _status: int
    _control: int
    returncode: int | None = field(default=None, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("the fork", timeout or 0)
            written = os.read(self._status, _STATUS.size)
            self.returncode = _STATUS.unpack(written)[0] if written else -signal.SIGKILL
            os.close(self._status)
            self.kill()
        return self.returncode

    def kill(self) -> None:
        """Close the control pipe, once: the thread that reads too much output may kill, too."""
        with self._lock:
            control, self._control = self._control, -1
        if control >= 0:
            os.close(control)


@define(eq=False)
class ForkingProcess:
    """The forking process, started at first use and again if it has ended."""

    sandbox: Sandbox = TRUSTED
    _started: tuple[subprocess.Popen[bytes], socket.socket] | None = field(default=None, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def start(self) -> None:
        """Start the process, if it does not run."""
        with self._lock:
            self._channel()

    def process(self) -> Fork:
        """A fork that waits for a request."""
        pairs = [os.pipe() for _ in range(_PIPES)]
        theirs = [pair[n in (1, 2, 3)] for n, pair in enumerate(pairs)]
        given, output, said, status, control = (pair[n not in (1, 2, 3)] for n, pair in enumerate(pairs))
        try:
            with self._lock:
                socket.send_fds(self._channel(), [b"x"], theirs)
        finally:
            for pipe in theirs:
                os.close(pipe)
        return Fork(0, os.fdopen(given, "wb"), os.fdopen(output, "rb"), os.fdopen(said, "rb"), status, control)

    def _channel(self) -> socket.socket:
        if self._started is None or self._started[0].poll() is not None:
            if self._started is not None:
                self._started[1].close()
            ours, theirs = socket.socketpair()
            command = self.sandbox.command(python_words("from xbuild.learning.child import fork; fork()"))
            started = subprocess.Popen(
                command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()
            )
            theirs.close()
            self._started = started, ours
        return self._started[1]

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._started is not None:
                process, channel = self._started
                channel.close()
                process.kill()
                process.wait()
                self._started = None
