"""Draw, run and judge the trials; the docstring of the package shows how."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from . import __doc__ as description
from .judging import ask, ask_torch, compare, rate
from .running import draw, read, run


def main(given: list[str]) -> int:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("draw", "run", "judge", "beside"))
    parser.add_argument("jobs", type=Path, nargs="?")
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--python", default=sys.executable, help="the Python of an environment with torch")
    parser.add_argument("--only", default="", help="the trials whose names contain this")
    options = parser.parse_args(given)
    if options.what == "draw":
        print("\n".join(json.dumps(trial) for trial in draw(options.seed)))
        return 0
    rights, ratings = [], Counter()
    for trial in read(options.jobs):
        folder = options.folder.resolve() / trial["name"]
        if options.only not in trial["name"]:
            continue
        if options.what == "run":
            if not folder.exists():
                print(trial["name"], run(trial, folder, options.python), flush=True)
        elif options.what == "judge":
            answer = ask(folder)
            verdict = compare(trial["truth"], answer)
            rights.append(verdict["right"])
            print(
                trial["name"],
                "right" if verdict["right"] else "WRONG",
                trial["truth"],
                verdict,
                answer["sentence"],
                sep=" | ",
            )
        else:
            found = ask_torch(trial, folder, options.python)
            (folder / "torch.txt").write_text(found["output"])
            rating = rate(trial["truth"], found)
            ratings[rating] += 1
            print(trial["name"], rating, trial["truth"]["ranks"], found["named"], sep=" | ", flush=True)
    if ratings:
        print(dict(ratings))
    if rights:
        print(f"{sum(rights)} of {len(rights)} right")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
