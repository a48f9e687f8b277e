"""Tables of folders and files from their opening sentences: `python -m docs.site.files` writes them anew.

`docs/files.md` lists every file; `docs/architecture.md` holds the folders, between two marks. `pyproject.toml` states
the order of the folders, lowest first; `tests/test_layers.py` holds the imports to it, and the tables to the files.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from .staging import ROOT

LAYERS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["xbuild"]["layers"]
PACKAGES = ("shape_inference", "xbuild", "interpreter")
FILES, ARCHITECTURE = ROOT / "docs" / "files.md", ROOT / "docs" / "architecture.md"
_MARKED = re.compile(r"(<!-- folders of (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_HEAD = """# Every file in one sentence

The folders of each package, lowest first: a folder imports only from folders that precede it.
`python -m docs.site.files` writes this page from the opening sentences of the files.
[architecture.md](architecture.md) says how they work together.
"""


def opening_sentence(path: Path) -> str:
    """The first paragraph of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return text.partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def folders_of(package: str) -> Iterator[Path]:
    """The folders of a package from the lowest to the highest; the package itself comes last."""
    for name in LAYERS.get(package, ["ops"]):
        yield ROOT / package / name.replace(".", "/")
    yield ROOT / package


def folder_rows(package: str) -> Iterator[str]:
    yield "| folder | what it holds |"
    yield "|---|---|"
    for folder in folders_of(package):
        yield f"| `{folder.relative_to(ROOT).as_posix()}/` | {opening_sentence(folder / '__init__.py')} |"


def architecture_text() -> str:
    """The text of docs/architecture.md with its tables of folders made anew."""
    return _MARKED.sub(
        lambda mark: f"{mark[1]}\n" + "\n".join(folder_rows(mark[2])) + f"\n\n{mark[3]}", ARCHITECTURE.read_text()
    )


def files_text() -> str:
    """The text of docs/files.md."""
    lines = [_HEAD]
    for package in PACKAGES:
        lines.append(f"## {package}\n")
        for folder in folders_of(package):
            lines += [f"### {folder.relative_to(ROOT).as_posix()}/\n", opening_sentence(folder / "__init__.py"), ""]
            files = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
            if files:
                lines += ["| file | what it is |", "|---|---|"]
                lines += [f"| `{path.name}` | {opening_sentence(path)} |" for path in files]
                lines.append("")
    return "\n".join(lines)


def main() -> None:
    FILES.write_text(files_text())
    ARCHITECTURE.write_text(architecture_text())


if __name__ == "__main__":
    main()
