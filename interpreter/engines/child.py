"""The child process of an engine: reads jobs from stdin, runs each on what jaxlib has, answers on stdout.

With `forks`, jobs run in a copy of this process: if one ends the copy, the next copy need not import the engine again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from typing import IO

from . import client, reference
from .client import Leaves
from .process import DONE, READY, receive, send


def main(engine: str, forks: str = "") -> None:
    parent = os.getppid()
    if not forks:  # a process with threads must not be copied
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    # What the engine prints must not come between the messages.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        if engine == "xla":
            client.require()
            client.ready_lapack()
        else:
            reference.context()
    except (ImportError, AttributeError) as error:
        send(answers, {"misfit": str(error)})
        return
    send(answers, READY)
    if not forks:
        _serve(answers, engine)
        return
    while (status := _serve_in_a_copy(answers, engine, parent)) != 0:
        send(answers, {"died": status})


def _serve(answers: IO[bytes], engine: str) -> None:
    """Answer jobs until there are no more."""
    while True:
        try:
            words, arguments = receive(sys.stdin.buffer)
        except (EOFError, KeyboardInterrupt):
            return
        _attempt(answers, engine, arguments, **words)


def _serve_in_a_copy(answers: IO[bytes], engine: str, parent: int) -> int:
    """Answer jobs in a copy of this process; returns how the copy ended: 0 when there are no more jobs."""
    own = os.getpid()
    copy = os.fork()
    if not copy:
        with contextlib.suppress(OSError, AttributeError):  # the C library of Linux has it
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        threading.Thread(target=_end_with, args=(own,), daemon=True).start()
        _serve(answers, engine)
        answers.flush()
        os._exit(0)
    while True:
        ended, status = os.waitpid(copy, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if os.getppid() != parent:
            os._exit(1)  # the copy ends with this process
        time.sleep(_POLL)


_PR_SET_PDEATHSIG = 1
_POLL = 0.005


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, even while a program runs that never returns."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _attempt(
    answers: IO[bytes],
    engine: str,
    arguments: Leaves,
    *,
    text: str,
    num_replicas: int,
    num_partitions: int,
    platform: str | None,
) -> None:
    """Send the results by device, the engine's refusal, or in what jaxlib's internals differ."""
    try:
        if engine == "xla":
            results = client.run_text(text, arguments, num_replicas, num_partitions, platform)
        else:
            results = reference.run_text(text, arguments, num_replicas, num_partitions)
    except (ImportError, AttributeError) as error:
        send(answers, {"misfit": str(error)})
        return
    except Exception as error:
        send(answers, {"refused": f"{type(error).__name__}: {error}"})
        return
    send(answers, DONE, results)


if __name__ == "__main__":
    main(*sys.argv[1:])
