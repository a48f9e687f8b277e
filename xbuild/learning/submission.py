"""A learner's solution of a puzzle: it runs in a process that returns a text, which this process parses and judges."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import Any

from shape_inference import XbuildError

from .. import running
from ..process.child import Ended, TooMuchOutputError, run_bounded
from ..process.limits import DeadlineError, within
from .puzzle import Puzzle, PuzzleJudgement, Unsolved, error_text
from .sandbox import TRUSTED, Sandbox, python_words

SECONDS = 20.0
"""The seconds that a solution may take by the clock."""

PROCESSOR_SECONDS = 10
"""The seconds that a solution may take on the processor."""

MEMORY = 2 << 30
"""The bytes of address space of the process of a solution."""

MOST_OUTPUT = 1 << 20
"""The bytes of the text that a solution may return."""

MOST_SOURCE = 1 << 20
"""The bytes of the code of a solution."""

JUDGING_SECONDS = 30.0
"""The seconds that judging the text of a solution may take."""


def judge_source(puzzle: Puzzle, source: str, file: str, sandbox: Sandbox = TRUSTED) -> PuzzleJudgement:
    """Grade the code of a solution; the code runs in a process of its own, within limits, and only returns a text."""
    try:
        text = _write_in_child(puzzle, source, file, sandbox)
        with within(JUDGING_SECONDS):
            return puzzle.judge_text(text, running.Limits(seconds=JUDGING_SECONDS, bytes=MEMORY // 8))
    except (Unsolved, XbuildError) as fault:
        return PuzzleJudgement(str(fault))
    except Exception as error:  # the other solutions of a class are still graded
        return PuzzleJudgement(f"the program of the solution cannot be judged: {error_text(error)}")
    except DeadlineError:
        return PuzzleJudgement(f"judging the program of the solution takes more than {JUDGING_SECONDS:.0f} s")


def _write_in_child(puzzle: Puzzle, source: str, file: str, sandbox: Sandbox) -> str:
    """The text of a solution, written by its process; raises Unsolved with the reason if it returns no text."""
    if len(source) > MOST_SOURCE:
        raise Unsolved(f"the code of the solution has {len(source):,} characters; at most {MOST_SOURCE:,} are allowed")
    limits = {"seconds": PROCESSOR_SECONDS, "memory": MEMORY}
    request = {"source": source, "file": file, "task": puzzle.task.to_dict(), "limits": limits}
    command = sandbox.command(python_words("from xbuild.learning.child import main; main()"))
    try:
        ended = run_bounded(
            command, json.dumps(request).encode(), seconds=SECONDS, most=MOST_OUTPUT, environment=_ENVIRONMENT
        )
    except subprocess.TimeoutExpired:
        raise Unsolved(f"the solution did not finish within {SECONDS:.0f} s") from None
    except TooMuchOutputError:
        raise Unsolved(f"the solution returned more than {MOST_OUTPUT:,} bytes") from None
    return _text_of(ended)


_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}


def _text_of(ended: Ended) -> str:
    """The text that a process returned; raises Unsolved with its fault, or with the reason for its end."""
    try:
        answer: Any = json.loads(ended.output)
    except (ValueError, RecursionError):
        raise Unsolved(_reason_of_end(ended.status)) from None
    if isinstance(answer, dict) and isinstance(answer.get("text"), str):
        return str(answer["text"])
    fault = answer.get("fault") if isinstance(answer, dict) else None
    raise Unsolved(fault if isinstance(fault, str) and fault else _reason_of_end(ended.status))


def _reason_of_end(status: int) -> str:
    """Why a process returned nothing; bubblewrap adds the number of a signal to 128."""
    number = -status if status < 0 else status - 128
    if number == getattr(signal, "SIGXCPU", 0):
        return f"the solution took more than {PROCESSOR_SECONDS} s on the processor"
    if number == getattr(signal, "SIGKILL", 0):
        return "the process of the solution was killed"
    return f"the process of the solution ended without a result (exit status {status})"
