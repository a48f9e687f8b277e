"""Jobs that hung, as small programs; `python -m examples.hangs NAME` shows one with its verdict and both runs."""

from __future__ import annotations

import argparse

import xbuild as xb
from examples.hangs.catalog import STORIES
from examples.hangs.story import Told


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.hangs", description=__doc__)
    parser.add_argument("name", nargs="?", choices=[told.name for told in STORIES], metavar="NAME", help="a story")
    arguments = parser.parse_args()
    for told in STORIES:
        if arguments.name is None:
            print(f"{told.name:24} {told.story.title}")
        elif told.name == arguments.name:
            tell(told)


def tell(told: Told) -> None:
    """Print the story, the verdict and the run of the broken program, and those of the fixed one."""
    story = told.story
    print(f"{story.title} ({', '.join(story.threads)})\n\n{story.symptom} {story.cause}\n")
    print(f"--- {told.file}:broken, checked\n{told.check(told.broken())}\n")
    try:
        print(told.run_broken())
    except xb.Stopped as stopped:
        print(f"--- run with {story.hanging.words}\n{stopped}\n")
    if story.harmless is not None:
        print(f"--- run with {story.harmless.words}\nit completes: {told.run_broken(story.harmless)}\n")
    print(f"--- {told.file}:fixed, checked\n{told.check(told.fixed())}\n\n{story.fix}\n")
    print(f"--- run\nit completes: {told.run_fixed()}")


if __name__ == "__main__":
    main()
