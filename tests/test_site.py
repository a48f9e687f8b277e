"""The site: every public name and every op has a page, and every page is reached by a link."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import xbuild as xb
from docs.site import MAKERS
from docs.site.markdown import document, escaped
from docs.site.staging import Stage
from xbuild.cli import main
from xbuild.core.op import OPS


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """All pages, staged."""
    found = Stage(tmp_path_factory.mktemp("pages"))
    for maker in MAKERS:
        maker.make(found)
    return found


def test_every_public_name_has_a_page(stage: Stage) -> None:
    assert [name for name in xb.__all__ if not (stage.folder / f"api/xb/{name}.md").is_file()] == []


def test_every_op_has_a_page_with_its_parts(stage: Stage) -> None:
    for opcode in OPS:
        text = (stage.folder / f"ops/{opcode}.md").read_text()
        assert "**Source**: " in text
        assert "```pycon" in text, opcode


def test_every_command_has_a_page_with_its_options(stage: Stage) -> None:
    for name, command in main.commands.items():
        text = (stage.folder / f"commands/{name}.md").read_text()
        assert f"xbuild {name} [OPTIONS]" in text
        options = [option for each in command.params for option in each.opts if option.startswith("--")]
        assert [option for option in options if f"`{option}" not in text and f", {option}" not in text] == [], name


def test_links_between_pages_lead_to_pages(stage: Stage) -> None:
    for path in stage.folder.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+\.md)", path.read_text()):
            assert (path.parent / target).is_file(), f"{path.relative_to(stage.folder)} links to {target}"


def test_what_is_staged_no_more_is_removed(tmp_path: Path) -> None:
    first = Stage(tmp_path)
    first.page("kept", "# Kept")
    first.page("folder/gone", "# Gone")
    first.finish()
    again = Stage(tmp_path)
    again.page("kept", "# Kept")
    again.finish()
    assert [path.name for path in tmp_path.rglob("*")] == ["kept.md"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a*b and c_d of `x*y`", r"a\*b and c\_d of `x*y`"),
        ("f32[2] <- {1}", r"f32\[2\] \<- \{1\}"),
    ],
)
def test_signs_of_markdown_are_escaped(text: str, wanted: str) -> None:
    assert escaped(text) == wanted


def test_kinds_are_links_in_what_is_raised_alone() -> None:
    text = document("Moves.\nRaises: overflow; not_array.\n\n>>> 1\n1", {"overflow": "k#o"})
    assert text == "Moves.\n\n**Raises**: [`overflow`](k#o); not\\_array.\n\n```pycon\n>>> 1\n1\n```"
