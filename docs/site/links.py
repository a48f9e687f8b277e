"""`python -m docs.site.links FOLDER` checks a built site: links lead to files and anchors, nothing is loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "object": "data"}


class _Page(HTMLParser):
    """The links of a page, what it loads, and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors.update(filter(None, (given.get("id"), given.get("name") if tag == "a" else None)))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"] or "")
        if tag in _LOADED and given.get(_LOADED[tag]):
            self.loads.append(given[_LOADED[tag]] or "")


def faults(site: Path) -> Iterator[str]:
    """A sentence for each link that leads nowhere, and for each file that is loaded from a network."""
    pages = {path: _read(path) for path in site.rglob("*.html")}
    for path, page in sorted(pages.items()):
        for target in {*page.links, *page.loads}:
            fault = _fault(path, target, target in page.loads, pages)
            if fault:
                yield f"{path.relative_to(site)}: {fault}"


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _fault(path: Path, target: str, is_loaded: bool, pages: dict[Path, _Page]) -> str | None:
    parts = urlsplit(target)
    if parts.scheme == "data" or (parts.scheme and not is_loaded):
        return None
    if parts.scheme or parts.netloc:
        return f"{target} is loaded from a network"
    file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not file.is_file():
        return f"{target} leads to no file"
    if parts.fragment and file in pages and unquote(parts.fragment) not in pages[file].anchors:
        return f"{target} leads to no anchor"
    return None


def main(folder: str) -> int:
    found = [*faults(Path(folder).resolve())]
    print("\n".join(found) or "every link leads somewhere, and nothing is loaded from a network")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
