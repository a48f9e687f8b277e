"""The child process of an engine: reads jobs from stdin, runs each on what jaxlib has, answers on stdout."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import IO

from . import client, reference
from .client import Leaves
from .process import DONE, READY, receive, send


def main(engine: str) -> None:
    parent = os.getppid()
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
    while True:
        try:
            words, arguments = receive(sys.stdin.buffer)
        except (EOFError, KeyboardInterrupt):
            return
        _attempt(answers, engine, arguments, **words)


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
