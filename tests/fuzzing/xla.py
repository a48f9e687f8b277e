"""Refusals of HLO texts by real XLA, in child processes that bad texts may end; used by `disagreements`.

Each line of stdin is JSON, a text with its counts of replicas and partitions; each of stdout says, as JSON, what is
wrong with it: "" where it compiles. JAX is imported once, and forked for the texts after one that was deadly.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import IO, Any

from interpreter.engines import client

SECONDS = 60
"""How long one text may take: of some, XLA's inference comes to no end."""


def judged(line: str) -> str:
    import jax

    text, replicas, partitions = json.loads(line)
    stage = "read"
    try:
        with jax.enable_x64(True):
            client._text_module(text)
            stage = "compiled"
            client._compiled(text, replicas, partitions, "cpu")
    except Exception as error:
        return f"{stage}: {error}"[:1500]
    return ""


def forked(lines: Sequence[str], answers: IO[str], judge: Callable[[str], Any]) -> int:
    """Judge these in a process of their own, up to the one that it dies of; how many were answered."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        os.close(out)
        with os.fdopen(into, "w") as pipe:
            for line in lines:
                signal.alarm(SECONDS)
                print(json.dumps(judge(line)), file=pipe, flush=True)
        os._exit(0)
    os.close(into)
    count = 0
    with os.fdopen(out) as pipe:
        for line in pipe:
            answers.write(line)
            count += 1
    _, status = os.waitpid(child, 0)
    if count < len(lines):
        answers.write(f"{json.dumps(f'died: {os.waitstatus_to_exitcode(status)}')}\n")
        count += 1
    answers.flush()
    return count


def main(judge: Callable[[str], Any] = judged) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what XLA prints must not stand between the answers
    client.ready_lapack()
    lines = sys.stdin.readlines()
    while lines:
        lines = lines[forked(lines, answers, judge) :]


if __name__ == "__main__":
    main()
