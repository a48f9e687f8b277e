"""The child process of a worker: reads questions from stdin, tests the condition on each, answers on stdout."""

from __future__ import annotations

import json
import os
import signal
import sys

from .conditions import read_condition


def main(spelled: str, expected: str) -> None:
    """Answer questions on stdin until its end; the process that asks handles interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a condition prints must not come between the answers
    condition = read_condition(spelled)
    condition.expected, condition.as_text = json.loads(expected)
    try:
        for line in sys.stdin:
            question = json.loads(line)
            print(json.dumps(condition.holds(question["texts"], question["seconds"])), file=answers, flush=True)
    finally:
        condition.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
