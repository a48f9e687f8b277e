"""The page docs/hang_stories.md, from the stories of examples/hangs: `python -m examples.gallery.stories` writes it."""

from __future__ import annotations

import contextlib
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import xbuild as xb
from examples.hangs.catalog import LEFT_OUT, SECTIONS, STORIES
from examples.hangs.story import Inputs, Told
from xbuild.checking.model.program import devices_text

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "hang_stories.md"
WIDTH = 88
"""The columns of a terminal whose lines fit on the page."""
_HEAD = """# Why jobs hang: {stories} stories

Each story is a public thread about a job that hung, as a small program: what people saw, why, what `xbuild check`
says before a run, and a program that runs to completion. xbuild also runs both: the run of the broken program stops on
the devices that the verdict names. In a clone, or in a folder that `xbuild examples --copy DIR` made,
`python -m examples.hangs NAME` shows a story with both runs.

If your job is stuck now, start at [A job is stuck](hangs.md), which reads its dumps. [The guard](guard.md) checks each
program of a JAX script before it runs.
"""
_WRITTEN_OUT = """xbuild does not know what these runtimes do on their own. The programs write it out as instructions:
they show why the order is a deadlock, but `xbuild check` does not find it in a program that lacks these instructions.
"""
_LEFT_OUT = """## Threads that no program expresses today

{count} of the 38 reports that we read need something that xbuild does not model, or are not hangs.
"""


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The text of the page."""
    with contextlib.chdir(ROOT):  # reports name lines of the programs relative to this folder
        return "\n".join(_parts())


def _parts() -> Iterator[str]:
    yield _HEAD.format(stories=len(STORIES))
    yield "| what you see | verdict |\n|---|---|"
    for told in STORIES:
        yield f"| [{told.story.title}](#{_slug(told.story.title)}) | {told.check(told.broken()).kind} |"
    yield ""
    for section, modules in SECTIONS.items():
        yield f"## {section}\n"
        stories = [told for told in STORIES if told.module in modules]
        if all(told.story.written_out for told in stories):
            yield _WRITTEN_OUT
        for told in stories:
            yield from _tell(told)
    yield _LEFT_OUT.format(count=len(LEFT_OUT))
    for each in LEFT_OUT:
        missing = each.missing if each.missing.startswith("Not a hang") else f"Missing: {each.missing}"
        yield f"- {each.cause} ({links(each.threads)}). *{missing}.*"
    yield ""


def _tell(told: Told) -> Iterator[str]:
    story = told.story
    yield f"### {story.title}\n"
    yield f"{story.symptom} ({links(story.threads)})\n"
    yield f"**Cause.** {story.cause}\n"
    if told.runtime is not None:
        yield f"**Runtime.** {_fields(told.runtime)}\n"
    verdict = "\n".join(map(_wrapped, told.check(told.broken()).report(width=WIDTH).splitlines()))
    yield f"```\n$ xbuild check {told.file}:broken{told.option}\n{verdict}\n```\n"
    yield f"![{story.title}](pictures/hang_{told.name}.svg)\n"
    yield f"**Fix.** {story.fix}\n"
    yield f"```diff\n{told.diff()}\n```\n"
    yield f"**Run.** {' '.join(_runs(told))} Try it: `python -m examples.hangs {told.name}`.\n"
    yield f"**Not modelled.** {story.omitted}\n"


def _fields(runtime: xb.Runtime) -> str:
    """The fields of a runtime that differ from their defaults, which docs/checker.md explains."""
    facts = [f"{key} = {value!r}" for key, value in runtime.to_dict().items() if key != "name"]
    return f"`{', '.join(facts)}` ([fields](checker.md#runtimes))."


def _wrapped(line: str) -> str:
    """A sentence of a report in lines, as a terminal shows it; rows of a report fit."""
    return line if line.startswith(" ") else textwrap.fill(line, WIDTH)


def _runs(told: Told) -> Iterator[str]:
    story = told.story
    yield f"{_with(story.hanging)}{stop_of(told)}."
    if story.harmless is not None:
        yield f"{_with(story.harmless)}the program completes."
    yield f"The fixed program completes; its verdict is `{told.check(told.fixed()).kind}`."


def _with(inputs: Inputs) -> str:
    return "With any arguments, " if inputs.words == "any arguments" else f"With {inputs.words}, "


def stop_of(told: Told) -> str:
    """Where the run of the broken program stops."""
    try:
        told.run_broken()
    except xb.Stopped as stopped:
        report = stopped.report
    else:
        raise AssertionError(f"the run of {told.name} completes")
    if report.kind in ("collective_mismatch", "transfer_mismatch"):
        return f"the run stops: {report.message}"
    devices: dict[str | None, list[int]] = {}
    for state in report.devices:
        devices.setdefault(None if state.instruction is None else state.instruction.name, []).append(state.device)
    places = [f"{devices_text(numbers)} {_verb(place, len(numbers) > 1)}" for place, numbers in devices.items()]
    return f"the run stops: {', and '.join([', '.join(places[:-1]), places[-1]] if len(places) > 1 else places)}"


def _verb(place: str | None, is_plural: bool) -> str:
    if place is None:
        return "have finished" if is_plural else "has finished"
    return f"wait{'' if is_plural else 's'} at `{place}`"


def links(threads: tuple[str, ...]) -> str:
    """Links to threads such as `openxla/xla#7716`, or to a commit such as `owner/name@hash`."""
    return ", ".join(f"[{thread}]({address(thread)})" for thread in threads)


def address(thread: str) -> str:
    """The address of a thread; GitHub forwards from the address of an issue to that of a pull request."""
    repository, mark, number = re.split("([#@])", thread)
    return f"https://github.com/{repository}/{'issues' if mark == '#' else 'commit'}/{number}"


def _slug(title: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


if __name__ == "__main__":
    write()
