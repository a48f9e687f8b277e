"""The pages that are written by hand: documents of the project, first steps, and the pictures that they show."""

from __future__ import annotations

import re
from pathlib import Path

from .staging import ROOT, Stage

_OUTSIDE = {"CONTRIBUTING": "contributing", "CHANGELOG": "changelog", "SECURITY": "security"}
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def make(stage: Stage) -> None:
    """Stage documents with their links turned to pages of the site, and all pictures and offline pages."""
    for path in sorted((ROOT / "docs").rglob("*.md")):
        name = path.relative_to(ROOT / "docs").with_suffix("").as_posix().removeprefix("site/")
        stage.page(name, _turned(path.read_text(), path))
    for source, name in _OUTSIDE.items():
        path = ROOT / f"{source}.md"
        stage.page(name, _turned(path.read_text(), path))
    for folder in ("pictures", "performance"):
        for path in sorted((ROOT / "docs" / folder).iterdir()):
            stage.file(f"{folder}/{path.name}", path)
    for path in sorted((ROOT / "docs" / "pages").iterdir()):
        stage.file(f"_extra/pages/{path.name}", path)


def _turned(text: str, path: Path) -> str:
    """The text with links to files of the project made links to pages; what has no page is named as code."""
    depth = "../" * (len(path.relative_to(ROOT / "docs").parts) - 1) if path.is_relative_to(ROOT / "docs") else ""
    if "docs/site" in path.as_posix():
        return text

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        if target.startswith(("http:", "https:", "mailto:")) or not target:
            return found[0]
        file = (path.parent / target).resolve()
        if not file.is_relative_to(ROOT):
            return words
        place = file.relative_to(ROOT).as_posix()
        if place.removesuffix(".md") in _OUTSIDE:
            return f"[{words}]({depth}{_OUTSIDE[place.removesuffix('.md')]}.md{anchor})"
        if place.startswith("docs/") and file.suffix == ".md":
            return f"[{words}]({depth}{place.removeprefix('docs/')}{anchor})"
        if place.startswith("docs/pages/"):
            return f'<a href="{depth}pages/{file.name}">{words}</a>'
        return f"{words} (`{place}`)" if words.strip("`") != place else f"`{place}`"

    return _LINK.sub(link, text)
