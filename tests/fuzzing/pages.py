"""Every kind of page and picture of programs with hostile names, in a browser: nothing runs or is requested."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field, frozen

import xbuild as xb
from interpreter import trace
from tests.fuzzing import names
from tests.fuzzing.names import PLACES, Names, Row, text_of
from xbuild.game import Telling, level_of, level_page
from xbuild.pages import framed, page_text

ROWS = 4
BATCH = 220
"""How many programs are opened between two looks at what happened; those of a kind in one page."""
_SUM = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"


def summed(rows: Sequence[Row]) -> str:
    """A program for two devices that meet, with the names of a row in each instruction."""
    text = text_of(rows, False).replace("HloModule hostile", "HloModule hostile, replica_count=2", 1)
    meets = "f32[] all-reduce(n0), to_apply=add, replica_groups={{0,1}}, channel_id=1"
    return text.replace("f32[] negate(n0)", meets, 1).replace("\nENTRY", f"\n{_SUM}\nENTRY", 1)


def _cost_page(program: xb.Module) -> str:
    from xbuild.cli.cost import _write_page

    with tempfile.TemporaryDirectory() as folder:
        _write_page(xb.timeline(program, "h100"), f"{folder}/cost.html")
        return Path(folder, "cost.html").read_text(encoding="utf-8")


def _run(program: xb.Module) -> Any:
    return trace(program, [[np.float32(1)]] * 2, origins=True)


def _level(program: xb.Module, rows: Sequence[Row]) -> str:
    return level_page(level_of(program, name=rows[0][1]), Telling(rows[0][2], f"{rows[0][3]}\n\n{rows[0][4]}"))


def _data(program: xb.Module, rows: Sequence[Row]) -> str:
    data = {each: row[5] for each, row in zip(program.entry.instructions[1:], rows, strict=True)}
    return str(xb.viz(program, "html", data=data, data_name=rows[0][6]))


def _stuck(rows: Sequence[Row]) -> str:
    """The page of a program that is stuck."""
    text = summed(rows).replace("replica_groups={{0,1}}", "replica_groups={{0},{1}}")
    return page_text(trace(xb.parse_hlo(text), [[np.float32(1)]] * 2, check=False, origins=True))


def _difference(program: xb.Module, rows: Sequence[Row]) -> str:
    """The page of a difference from a program with other names, of which the rows of one are added."""
    other = xb.parse_hlo(text_of([[f"{each}2" for each in row] for row in rows], False), origins=True)
    return xb.diff(program, other).page(rows[0][0], rows[0][1])


_HOST = '<!doctype html><meta charset="{}"><title>notebook</title>'
KINDS: Mapping[str, tuple[str, Callable[[xb.Module, Sequence[Row]], str]]] = {
    "viewer": ("html", lambda program, rows: str(xb.viz(program, "html", max_nodes=2))),
    "data": ("html", _data),
    "step page": ("html", lambda program, rows: page_text(_run(program), machine="h100")),
    "stuck": ("html", lambda program, rows: _stuck(rows)),
    "frame": ("html", lambda program, rows: _HOST.format("windows-1252") + framed(_run(program))),
    "cost page": ("html", lambda program, rows: _cost_page(program)),
    "timeline": ("html", lambda program, rows: str(xb.viz(xb.timeline(program, "h100"), "html"))),
    "level": ("html", _level),
    "difference": ("html", _difference),
    "svg": ("svg", lambda program, rows: str(xb.viz(program, "svg"))),
    "verdict": ("svg", lambda program, rows: str(xb.viz(xb.check(program), "svg"))),
    "notebook": ("html", lambda program, rows: _HOST.format("utf-8") + str(xb.viz(program)._repr_html_())),
}
"""The kinds of pages: the ending of the file, and the text of a program with the names of these rows."""

_ASK = """() => {
  const all = [...document.querySelectorAll("*")], LINKS = /^(src|href|xlink:href|action|data)$/i;
  return {
    pwned: window.pwned === undefined ? "" : "a script of a name ran",
    tags: [...new Set(all.map(each => each.tagName.toLowerCase()))].sort(),
    handlers: all.filter(each => each.getAttributeNames().some(name => /^on/i.test(name))).length,
    links: all.flatMap(each => each.getAttributeNames().filter(name => LINKS.test(name))
      .map(name => each.getAttribute(name)))
      .filter(to => to && !to.startsWith("#")),
  };
}"""


@frozen
class Program:
    """Names from a seed, and the kind of page that shows a program with them."""

    seed: int

    @property
    def kind(self) -> str:
        return [*KINDS][self.seed % len(KINDS)]

    def text(self, rows: Sequence[Row] | None = None) -> str:
        rows = Names(self.seed).rows(ROWS) if rows is None else rows
        return KINDS[self.kind][1](xb.parse_hlo(summed(rows), origins=True), rows)


@define
class Visitor:
    """Opens texts as documents in frames of one page, and tells what happened that none is to do."""

    page: Any
    folder: Path
    _usual: dict[str, set[str]] = field(factory=dict)
    _happened: list[str] = field(factory=list)
    _visits: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.page.on("request", lambda asked: self._request(asked.url))
        self.page.on("dialog", lambda dialog: (self._happened.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("pageerror", lambda error: self._happened.append(str(error)))
        self.page.on("console", lambda said: self._happened.append(said.text))
        self.page.on("popup", lambda _: self._happened.append("a window"))

    def _request(self, url: str) -> None:
        if not url.startswith(self.folder.as_uri()) and url != "about:srcdoc":
            self._happened.append(f"a request: {url}")

    def faults(self, programs: Sequence[Program]) -> Iterator[str]:
        """What is wrong with the pages of these programs."""
        for each in programs:
            if each.kind not in self._usual:
                self._usual[each.kind] = {""}
                self._usual[each.kind] |= self.visited(each.kind, [each.text([["a"] * len(PLACES)] * ROWS)])[0][1]
        by_kind = {kind: [each for each in programs if each.kind == kind] for kind in KINDS}
        for kind, some in by_kind.items():
            for program, (found, tags) in zip(some, self.visited(kind, [each.text() for each in some]), strict=True):
                more = tags - self._usual[kind]
                for each in [*found, *([f"elements of names: {sorted(more)}"] if more else [])]:
                    yield f"seed {program.seed}, {kind}: {each[:300]!a}"
            yield from (f"{kind}, of seeds {[each.seed for each in some]}: {each[:300]!a}" for each in self._happened)
            self._happened.clear()

    def visited(self, kind: str, texts: Sequence[str]) -> list[tuple[list[str], set[str]]]:
        """For each document what is wrong with it, and the names of its elements."""
        self._visits += 1  # each visit has files of its own: a slow browser may still read those of the last one
        files = [f"{self._visits}-{number}.{KINDS[kind][0]}" for number in range(len(texts))]
        for name, text in zip(files, texts, strict=True):
            (self.folder / name).write_text(text, encoding="utf-8")
        frames = "".join(
            f'<iframe id="f{n}" src="{name}" width=900 height=600></iframe>' for n, name in enumerate(files)
        )
        host = self.folder / f"{self._visits}.html"
        host.write_text(f"<!doctype html><title>host</title>{frames}", encoding="utf-8")
        self.page.goto(host.as_uri())
        self.page.keyboard.press("Tab")
        self.page.mouse.move(300, 200)
        return [self._looked(self.page.query_selector(f"#f{n}").content_frame()) for n in range(len(texts))]

    def _looked(self, frame: Any) -> tuple[list[str], set[str]]:
        told = frame.evaluate(_ASK)
        found = [told["pwned"]] * bool(told["pwned"]) + ["a handler of a name"] * bool(told["handlers"])
        found += [f"a link to {to[:80]}" for to in told["links"]]
        inner = [self._looked(each) for each in frame.child_frames]
        return sum((each[0] for each in inner), found), {*told["tags"]}.union(*(each[1] for each in inner))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing.pages", description=__doc__)
    parser.add_argument("--programs", type=int, default=200, help="each in one of the kinds, in turn")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    chosen = parser.parse_args(arguments)
    counts, found, begin = Counter[str](), [], time.monotonic()
    with names.chromium() as opened, tempfile.TemporaryDirectory() as folder:
        if opened is None:
            print("there is no Chromium, or no Playwright to steer it")
            return 1
        page = opened.new_page(viewport={"width": 1200, "height": 800})
        visitor, end = Visitor(page, Path(folder).resolve()), chosen.seed + chosen.programs
        for seed in range(chosen.seed, end, BATCH):
            programs = [*map(Program, range(seed, min(seed + BATCH, end)))]
            counts.update(each.kind for each in programs)
            found += visitor.faults(programs)
            if len(found) > 20:
                break
    print(*(f"{what:10} {count:6,}" for what, count in counts.items()), sep="\n")
    print(f"{counts.total():,} programs in {time.monotonic() - begin:.0f} s", *found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
