"""A child process: prepares programs for one engine and runs them on command, by lines of JSON on stdin."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from engines import ENGINES, lowered, program

Runs = dict[str, tuple[Callable[[], Any], int]]


def answer(engine: str, prepared: Runs, asked: dict[str, Any]) -> Any:
    name = asked["name"]
    if asked["do"] == "lower":
        Path(asked["text"]).write_text(lowered(program(name, asked.get("scale", "full"))))
        return True
    if asked["do"] == "prepare":
        given = program(name, asked.get("scale", "full"))
        run = ENGINES[engine](given, Path(asked["text"]).read_text())
        if run is None:
            return None
        results = [np.asarray(each) for each in run()]
        np.savez(asked["results"], *[each.astype(np.float64) for each in results])
        prepared[name] = run, given["inner"]
        return given["tol"]
    run, inner = prepared[name]
    if asked["do"] == "forget":
        del prepared[name]
        return True
    start = time.process_time()
    for _ in range(inner * asked["count"]):
        run()
    return (time.process_time() - start) / inner / asked["count"]


def main() -> None:
    engine, tree = sys.argv[1:]
    if engine == "xbuild":
        import xbuild

        assert Path(xbuild.__file__).parents[1] == Path(tree), xbuild.__file__
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    prepared: Runs = {}
    for line in sys.stdin:
        out.write(json.dumps(answer(engine, prepared, json.loads(line))) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
