"""The process that runs a learner's solution: `python -m xbuild.learning.child` reads a request and writes its text.

The request on stdin is JSON: the text of the learner's file, its name, the task of the puzzle, and the limits. The
answer on stdout is JSON: `text`, which the parent parses and judges, or `fault`, the reason why it has no text.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from shape_inference import XbuildError

from .confinement import confine
from .puzzle import PuzzleTask, Unsolved
from .shelf import LessonError, solution_of_text

_MOST_FAULT = 4000  # characters


def main() -> None:
    """Answer one request; what the learner's code prints is discarded."""
    request = json.loads(sys.stdin.buffer.read())
    result = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    confine(**request["limits"])
    answer = json.dumps(_answer(request)).encode()
    while answer:
        answer = answer[os.write(result, answer) :]


def _answer(request: Mapping[str, Any]) -> dict[str, str]:
    try:
        solution = solution_of_text(request["source"], request["file"])
        return {"text": PuzzleTask.from_dict(request["task"]).write(solution)}
    except (Unsolved, XbuildError, LessonError) as fault:
        return {"fault": str(fault)[:_MOST_FAULT]}
    except (MemoryError, RecursionError) as error:
        return {"fault": f"{type(error).__name__} in the solution"}


if __name__ == "__main__":
    main()
