"""Every page that a command or the library writes has a policy, which allows its own script and nothing else."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import xbuild as xb
from shape_inference.escaping import policy
from tests.browser.pages import uneven
from tests.commands.command_line import xbuild
from tests.fuzzing import attack
from tests.fuzzing.outputs import TEXT
from xbuild.pages import page_text

ROOT = Path(__file__).parents[2]
PACKAGES = ("shape_inference", "xbuild", "interpreter")
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_SCRIPT = re.compile(r"<script(?P<kind>[^>]*)>(?P<text>.*?)</script>", re.DOTALL)
_RULES = "default-src 'none'; script-src {}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def scripts(page: str) -> list[str]:
    """The hashes of the scripts of a page, with those of the pages in its frames."""
    own = [match["text"] for match in _SCRIPT.finditer(page) if "application/" not in match["kind"]]
    inner = [hashed for frame in re.findall(r'srcdoc="([^"]*)"', page) for hashed in scripts(html.unescape(frame))]
    return [*(base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in own), *inner]


def check(page: str) -> None:
    rules = _POLICY.findall(page)
    assert len(rules) == 1
    allowed = " ".join(f"'sha256-{each}'" for each in dict.fromkeys(scripts(page))) or "'none'"
    assert rules == [_RULES.format(allowed)]
    assert "unsafe-eval" not in page
    before = page[: _POLICY.search(page).start()]  # type: ignore[union-attr]
    assert not re.search("<(title|style|script|body|svg|div)", before)
    for frame in re.findall(r'srcdoc="([^"]*)"', page):
        check(html.unescape(frame))


COMMANDS = (
    ["viz", "p.hlo", "-o", "o.html"],
    ["viz", "p.hlo", "--timeline", "--machine", "h100", "-o", "o.html"],
    ["check", "p.hlo", "--page", "o.html"],
    ["run", "p.hlo", "--random", "0", "--page", "o.html"],
    ["cost", "p.hlo", "--machine", "h100", "--page", "o.html"],
    ["diff", "p.hlo", "p.hlo", "--page", "o.html"],
    ["play", "p.hlo", "-o", "o.html"],
    ["play", "1", "-o", "o.html"],
    ["play", "3", "-o", "o.html"],
    ["learn", "1", "--page", "-o", "o.html"],
    ["learn", "8", "--page", "-o", "o.html"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_pages_of_commands(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.hlo").write_text(TEXT)
    done = xbuild(*command)
    assert done.exit_code == 0, done.output
    check(Path("o.html").read_text(encoding="utf-8"))


def test_every_option_that_may_write_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever option a command has for a file: where it writes HTML, there is a policy in it."""
    monkeypatch.chdir(tmp_path)
    Path("p.hlo").write_text(TEXT)
    written = []
    for name, command in attack.main.commands.items():
        begin = attack._arguments(name, command)
        for option in attack._options(command) if attack.TARGET in begin else ():
            if "OUT.html" in option:
                xbuild(*(each.replace(attack.TARGET, "p.hlo") for each in (*begin, *option)))
                if Path("OUT.html").exists():
                    written.append((name, option[0]))
                    text = Path("OUT.html").read_text(encoding="utf-8", errors="replace")
                    Path("OUT.html").unlink()
                    if text.startswith("<!doctype"):
                        check(text)
    pages = {("viz", "--output"), ("check", "--page"), ("cost", "--page"), ("diff", "--page"), ("play", "--output")}
    assert pages <= {*written}


THINGS: dict[str, Callable[[], object]] = {
    "a module": lambda: xb.parse_hlo(TEXT),
    "a timeline": lambda: xb.timeline(xb.parse_hlo(TEXT), "h100"),
    "a partition": uneven,
    "a tiling": lambda: xb.shard.tiling(uneven(), "parameter.1"),
}  # fmt: skip


@pytest.mark.parametrize("thing", THINGS)
def test_pages_of_the_library(thing: str, tmp_path: Path) -> None:
    check(xb.viz(THINGS[thing](), tmp_path / "o.html").read_text(encoding="utf-8"))  # type: ignore[arg-type, call-overload]


def test_a_step_page() -> None:
    run = xb.trace(xb.parse_hlo(TEXT), [[np.ones(4, np.float32)]] * 2, origins=True)
    check(page_text(run))


def test_no_page_begins_without_one() -> None:
    """Where the packages begin a document, they give it a policy."""
    files = (file for package in PACKAGES for file in (ROOT / package).rglob("*") if file.suffix in (".py", ".html"))
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    begun = {file: text for file, text in texts.items() if re.search("<(!doctype html>?<|html)", text, re.I)}
    assert len(begun) >= 4
    for file, text in begun.items():
        assert re.search(r"\{policy\(|<!--policy-->", text), file


def test_a_policy_without_scripts_allows_none() -> None:
    assert "script-src 'none';" in policy()


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "pages").glob("*.html")), ids=lambda each: each.stem)
def test_pages_of_the_documentation(page: Path) -> None:
    check(page.read_text(encoding="utf-8"))
