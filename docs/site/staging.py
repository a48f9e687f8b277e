"""The folder in which pages are staged: files are written where they changed, and what is left over is removed."""

from __future__ import annotations

import shutil
from pathlib import Path

from attrs import define, field

ROOT = Path(__file__).parents[2]


@define
class Stage:
    """A folder of pages; unchanged files keep their time, so that Sphinx builds what changed alone."""

    folder: Path
    _written: set[Path] = field(factory=set)

    def page(self, name: str, text: str) -> None:
        """Write a page of Markdown by its name without `.md`."""
        self._write(self.folder / f"{name}.md", text.rstrip("\n").encode() + b"\n")

    def leaf(self, name: str, text: str) -> None:
        """Write a page that an index links to, and that is not in the side bar: 600 entries there take minutes."""
        self.page(name, f"---\norphan: true\n---\n\n{text}")

    def text(self, name: str, text: str) -> None:
        """Write a text as it is."""
        self._write(self.folder / name, text.encode())

    def file(self, name: str, source: Path) -> None:
        """Copy a file as it is."""
        self._write(self.folder / name, source.read_bytes())

    @property
    def count(self) -> int:
        """How many pages there are."""
        return sum(path.suffix == ".md" for path in self._written)

    def finish(self) -> None:
        """Remove the files of earlier stagings that were not written again."""
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if path.is_file() and path not in self._written:
                path.unlink()
            elif path.is_dir() and not any(path.iterdir()):
                shutil.rmtree(path)

    def _write(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)
        self._written.add(path)
