"""Hostile names at every place of a program, through every writer: each shows the name, without another effect."""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from attrs import frozen

import xbuild as xb
from interpreter import trace
from xbuild.core.identifiers import short_path
from xbuild.pages import page_text
from xbuild.pictures.graphviz import render

HOSTILE = (
    "<!--script-->", "<!--data-->", "<!--<script>", "--><script>window.pwned=1</script>", "]]><![CDATA[", "</script>",
    "</title></svg><script>window.pwned=1</script>", "<img src=x onerror=window.pwned=1>", "<!DOCTYPE a [<!ENTITY b>]>",
    "<svg/onload=window.pwned=1>", "<iframe src=http://example.invalid/>", "<base href=//example.invalid/>",
    "<link rel=stylesheet href=//example.invalid/a.css>", "<style>*{display:none}</style>", "&lt;b&gt;&amp;&#60;",
    "&#x1b;&nbsp;&unknown;", "{{placeholder}}", "{%raw%}", "__PROTO__", "__proto__", "constructor", '"', "'", "`", "\\",
    "\\\\", "\\n", "\\N\\G", "\\u0041", "\\x41", "\\", "\n", "\r\n", "\r", "\t", "\v", "\f", "\u0085", "\u2028",
    "\u2029",
    "\0", "\x1b", "\x1b[2J", "\x1b[31mRED", "\x1b]0;title\x07", "\x1bP$q\x1b\\", "\x9b31m", "\x90", "\x80", "\x7f",
    "\b" * 9,
    "\u202e", "\u202d", "\u2066", "\u2069", "\u200b", "\u200d", "\u200e", "\ufeff", "\u00ad", "\u2060", "\ufffe",
    "\uffff",
    "\ud800", "\udfff", "\ud83d\ude00", "\U000e0001", "\U0010ffff", "a\u0301\u0302\u0303\u0304" * 5, "שלום", "مرحبا",
    "😀👩‍👩‍👧", "日本語", "ﬁ", "javascript:window.pwned=1", "data:text/html,<script>window.pwned=1</script>",
    "file:///etc/passwd", "%s%n{}", "{0}{name!r}", "${window.pwned=1}", "`;window.pwned=1;`", "';window.pwned=1;//",
    '"});window.pwned=1;//', '" onmouseover="window.pwned=1', "' style='color:red", "[red]bold[/red]",
    "</table>>]", "}\nENTRY e {", "*/", "/*", "//", "%%{init: {}}%%", "end", "click a call b()", "ROOT", " ", "",
    "::error file=a::pwned", "##[add-mask]pwned", "%0A::add-mask::pwned", "jit(f)/a/b", "a/../b", "/", "x" * 300,
)  # fmt: skip
PLACES = ("op_name", "op_type", "source_file", "frontend", "sharding", "backend_config", "target")
ROWS = 150
_LINE = 400  # letters of a line of a tooltip

Row = Sequence[str]


class Names:
    """Names from a seed, of pieces of hostile ones and of any characters."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def name(self) -> str:
        if self.random.random() < 0.001:
            return self.random.choice(HOSTILE) * 2000
        return "".join(self._piece() for _ in range(self.random.randint(1, 4)))

    def _piece(self) -> str:
        if self.random.random() < 0.8:
            return self.random.choice(HOSTILE)
        # Half a pair that stands for a byte is of names with such bytes alone.
        code = self.random.choice(
            (self.random.randrange(0x100), self.random.randrange(0x3000), self.random.randrange(0x110000))
        )
        return "?" if 0xDC80 <= code <= 0xDCFF else chr(code)

    def rows(self, count: int | None = None) -> list[Row]:
        return [[self.name()[:10_000] for _ in PLACES] for _ in range(ROWS if count is None else count)]


def shown(name: str) -> str:
    """What a person is to see of a name: what does not print as an escape of Python."""
    return "".join(letter if _prints(letter) else _escape(letter) for letter in name)


def _prints(letter: str) -> bool:
    return letter == " " or unicodedata.category(letter)[0] not in "CZ"


def _escape(letter: str) -> str:
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(letter) or repr(letter)[1:-1]


def in_hlo(name: str) -> str:
    """A name as a string of HLO, all but plain letters in octal."""
    return "".join(
        chr(byte) if byte < 128 and chr(byte).isalnum() else f"\\{byte:03o}"
        for byte in name.encode("utf-8", "surrogatepass")
    )


def text_of(rows: Sequence[Row], calls: bool) -> str:
    """A program with the names of a row in each instruction; with custom calls it is to look at, without to run."""
    lines = ["HloModule hostile", "", "ENTRY e {", "  n0 = f32[] parameter(0)"]
    for number, row in enumerate(rows, 1):
        scope, kind, file, frontend, sharding, config, target = map(in_hlo, row)
        call = f'custom-call(n{number - 1}), custom_call_target="{target}"' if calls else f"negate(n{number - 1})"
        lines.append(
            f'  n{number} = f32[] {call}, sharding={{replicated metadata={{op_name="{sharding}"}}}}, '
            f'frontend_attributes={{k="{frontend}"}}, metadata={{op_type="{kind}" op_name="{scope}" '
            f'source_file="{file}" source_line=3}}, backend_config="{config}"'
        )
    lines[-1] = lines[-1].replace("  n", "  ROOT n", 1)
    return "\n".join([*lines, "}", ""])


@frozen
class Pages:
    """The pages of a program with the names of some rows: to look at, and of its run."""

    rows: Sequence[Row]
    viewer: str
    step: str

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Pages:
        looked, ran = (xb.parse_hlo(text_of(rows, calls), origins=True) for calls in (True, False))
        viewer = str(xb.viz(looked, "html", max_nodes=2 * len(rows)))
        return cls(rows, viewer, page_text(trace(ran, [[np.float32(1)]])))

    def lines(self) -> Iterator[set[str]]:
        """What is to be read in each page: scopes, and source lines, which name them, too."""
        yield scopes(self.rows)
        yield {shown(f"{short_path(row[2])}:3{(f' in {row[0]}' if row[0] else '')}") for row in self.rows if row[2]}

    def faults(self, plain: Pages, opened: Sequence[dict[str, Any]]) -> Iterator[str]:
        """What is wrong with the pages as a browser has them; `opened` is what it tells of both."""
        letters = sum(len(name) for row in self.rows for name in row)
        pages = zip(("viewer", "step page"), self.texts, plain.texts, self.lines(), opened, strict=True)
        for what, text, usual, lines, told in pages:
            if len(text) > len(usual) + 150 * letters:
                yield f"{what}: {len(text):,} letters, {len(usual):,} with plain names, of {letters:,} of names"
            yield from (f"{what}: {fault}" for fault in told["faults"])
            yield from (f"{what}: not shown: {each!r}" for each in lines - {*told["lines"]})
            if wrong := sorted({letter for side in told["side"] for letter in side if not _prints(letter)} - {"\n"}):
                yield f"{what}: {wrong} are shown beside it"

    @property
    def texts(self) -> tuple[str, str]:
        return self.viewer, self.step


def _cut(line: str) -> str:
    return line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"


def scopes(rows: Sequence[Row]) -> set[str]:
    """The lines that tooltips have for the scopes."""
    return {_cut(f"scope {shown(row[0])}") for row in rows if row[0]}


def faults_of_text(rows: Sequence[Row]) -> Iterator[str]:
    """What is wrong with what is written of a program as text: HLO, svg, dot, Mermaid, the terminal's."""
    module = xb.parse_hlo(text_of(rows, True), origins=True)
    yield from _hlo_faults(module, rows)
    drawing = xb.viz(module, max_nodes=2 * len(rows))
    texts = {form: str(drawing.render(form)) for form in ("svg", "dot", "mermaid", "txt")}
    texts["notebook"] = drawing._repr_html_()
    for form, text in texts.items():
        wrong = sorted({each for each in text if not _prints(each) and each != "\n"})
        if wrong:
            yield f"{form}: {wrong} are in it"
    titles = {line for each in ElementTree.fromstring(texts["svg"]).iter() for line in (each.text or "").split("\n")}
    yield from (f"svg: not shown: {scope!r}" for scope in scopes(rows) - titles)
    if not render(texts["dot"], "canon", 60, "dot").startswith(b"digraph"):
        yield "dot: graphviz does not read it"
    words = re.sub(r"(fill|stroke|color):#\w+", "", texts["mermaid"])
    odd = re.findall(r"#(?!\d+;)|<(?!b>|/b>|br/>)", words)
    if odd:
        yield f"mermaid: {odd[:3]}"


def _hlo_faults(module: xb.Module, rows: Sequence[Row]) -> Iterator[str]:
    """The text reads back as the same program, whose names are those that were written."""
    text = module.to_hlo(style="full")
    if not all(map(_prints, text.replace("\n", ""))):
        yield "hlo: what does not print is in it"
    again = xb.parse_hlo(text)
    if again.to_hlo(style="full") != text:
        yield "hlo: it reads back as another program"
    for instruction, row in zip(again.entry.instructions[1:], rows, strict=True):
        notes, metadata = instruction.annotations, instruction.annotations["metadata"]
        config = notes.get("backend_config", instruction.attributes.backend_config)
        found = [*(metadata[key] for key in PLACES[:3]), notes["frontend_attributes"]["k"], row[4], config]
        found.append(instruction.attributes.custom_call_target)
        yield from (f"hlo: {name!r} became {each!r}" for name, each in zip(row, found, strict=True) if each != name)


# Each fifth step is gone to, each fifth box chosen. Of a step page what is out of view is in no document: its data are.
_ASK = """() => {
  const viewer = document.getElementById("stage"), fifth = (each, n) => n % 5 === 0, told = [];
  const look = () => told.push(document.getElementById("side").textContent);
  if (viewer) [...boxes.keys()].filter(fifth).forEach(id => { go(id); look(); });
  else {
    for (let time = 1; time <= D.end; time += 5) { go({time}); look(); }
    Graph.show("around");
  }
  const all = [...document.querySelectorAll("*")];
  return {
    lines: viewer
      ? [...viewer.querySelectorAll("g.shapes > title")].flatMap(each => each.textContent.split("\\n"))
      : D.spots.map(each => each.w[0]),
    side: told,
    pwned: window.pwned === undefined ? "" : "a script of a name ran",
    tags: [...new Set(all.map(each => each.tagName.toLowerCase()))].sort().join(),
    handlers: all.filter(each => each.getAttributeNames().some(name => /^on/.test(name))).length,
  };
}"""


class Browser:
    """Opens texts as pages, without a network, and tells what happened; `usual` is what plain names lead to."""

    def __init__(self, chromium: Any, folder: Path) -> None:
        self.folder, self.context = folder, chromium.new_context(viewport={"width": 1200, "height": 800})
        self.usual = Pages.of([["a"] * len(PLACES)] * ROWS)
        self.expected = list(map(self.opened, self.usual.texts))

    def opened(self, text: str) -> dict[str, Any]:
        """What is in a page, and what it did that no page is to do."""
        file = self.folder / "page.html"
        file.write_text(text, encoding="utf-8")
        page, faults, asked = self.context.new_page(), [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("dialog", lambda dialog: (faults.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text))
        page.goto(file.as_uri())
        told = page.evaluate(_ASK)
        page.close()
        faults += [f"a request: {url}" for url in asked if url != file.as_uri()]
        faults += [told["pwned"]] * bool(told["pwned"]) + ["a handler of a name"] * bool(told["handlers"])
        return {**told, "faults": faults}

    def faults(self, rows: Sequence[Row]) -> Iterator[str]:
        """What is wrong with the pages of these names."""
        pages = Pages.of(rows)
        found = list(map(self.opened, pages.texts))
        for before, after in zip(self.expected, found, strict=True):
            if before["tags"] != after["tags"]:
                yield f"elements of names: {set(after['tags'].split(',')) ^ set(before['tags'].split(','))}"
        yield from pages.faults(self.usual, found)


@contextmanager
def chromium() -> Iterator[Any]:
    """None where there is no Chromium, or nothing to steer it."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        yield None
        return
    with sync_playwright() as running:
        found = running.chromium.launch(executable_path=path, args=["--disable-gpu", "--no-sandbox"])
        yield found
        found.close()


@contextmanager
def browser() -> Iterator[Browser | None]:
    with chromium() as opened, tempfile.TemporaryDirectory() as folder:
        yield None if opened is None else Browser(opened, Path(folder))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing.names", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--no-browser", action="store_true", help="texts alone")
    chosen = parser.parse_args(arguments)
    seed, counts, found = chosen.seed, Counter[str](), []
    with nullcontext() if chosen.no_browser else browser() as pages:
        begin = time.monotonic()
        while time.monotonic() < begin + chosen.seconds and len(found) < 20:
            rows = Names(seed).rows()
            wrong = [*faults_of_text(rows), *(pages.faults(rows) if pages else ())]
            found += [f"seed {seed}: {each[:300]!a}" for each in wrong]
            counts += Counter(programs=1, names=len(rows) * len(PLACES), pages=2 if pages else 0)
            seed += 1
    print(*(f"{what:10} {count:8,}" for what, count in counts.items()), sep="\n")
    print(f"{counts['names'] / (time.monotonic() - begin):.0f} names in a second", *found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
