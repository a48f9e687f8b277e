"""The lanes of a step page over modelled time: the switch shows them in place of those over logical time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from xbuild.cli import main

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("modelled") / "ring.html"
    arguments = ["run", str(ROOT / "examples" / "ring.py:program"), "--random", "0", "--page", str(file)]
    found = CliRunner().invoke(main, [*arguments, "--machine", "v5e"])
    assert found.exit_code == 0, found.output
    return file


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_switch_shows_one_of_the_two(browser: Any, page: Path, theme: str) -> None:
    context = browser.new_context(color_scheme=theme)
    tab, faults = context.new_page(), []
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.goto(page.as_uri())
    assert (tab.is_visible("#lanes"), tab.is_visible("#timed")) == (True, False)
    tab.click("#modelled")
    assert (tab.is_visible("#lanes"), tab.is_visible("#timed")) == (False, True)
    assert tab.is_visible(f"#timed .of-{theme}")
    assert "recv-done.14" in tab.inner_text("#timed")
    assert tab.inner_text("#time h2").lower() == "devices over modelled time"
    tab.click("#logical")
    assert (tab.is_visible("#lanes"), tab.is_visible("#timed")) == (True, False)
    context.close()
    assert faults == []


def test_a_machine_is_refused_before_the_run(tmp_path: Path) -> None:
    arguments = ["run", str(ROOT / "examples" / "ring.py:program"), "--random", "0"]
    unknown = CliRunner().invoke(main, [*arguments, "--page", str(tmp_path / "p.html"), "--machine", "abacus"])
    assert unknown.exit_code == 2
    assert "abacus" in unknown.output
    assert not (tmp_path / "p.html").exists()
    alone = CliRunner().invoke(main, [*arguments, "--machine", "v5e"])
    assert "no effect without --page" in alone.output
