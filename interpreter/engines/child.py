"""The child process of an engine: reads jobs from stdin, runs each on what jaxlib has, answers on stdout."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from typing import IO, Any

from xbuild.process.memory import held_bytes

from . import client, reference

READY = "ready"
OWN = 1 << 30
"""Bytes for the compiler and for threads, in addition to the program's values."""


def main(engine: str) -> None:
    parent = os.getppid()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    # What the engine prints must not stand between the pickles.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    if engine == "xla":
        client.ready_lapack()
    else:
        reference.context()
    bound_memory(os.environ.get("XBUILD_MOST_BYTES"))
    _answer(answers, READY)
    while True:
        try:
            job = pickle.load(sys.stdin.buffer)
        except (EOFError, KeyboardInterrupt):
            return
        _answer(answers, _attempt(engine, *job))


def bound_memory(most: str | None) -> None:
    """Limit the data segment of this process to `most` more bytes than it holds now; only on Linux."""
    held = held_bytes()
    if not most or held is None:
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = min(held + OWN + int(most), 2**63 - 1)
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _answer(answers: IO[bytes], answer: Any) -> None:
    pickle.dump(answer, answers)
    answers.flush()


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, even while a program runs that never returns."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _attempt(
    engine: str, text: str, arguments: Any, num_replicas: int, num_partitions: int, platform: str | None
) -> Any:
    """The results by device, or the message of the engine's refusal."""
    try:
        if engine == "xla":
            return client.run_text(text, arguments, num_replicas, num_partitions, platform)
        return reference.run_text(text, arguments, num_replicas, num_partitions)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main(*sys.argv[1:])
