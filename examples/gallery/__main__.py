"""Redraw all pictures and the page of stories; review the differences before you commit them."""

from __future__ import annotations

import os

from examples.gallery.pages import write_pages
from examples.gallery.pictures import FOLDER, PICTURES, TEXTS
from examples.gallery.stories import write


def main() -> None:
    os.chdir(FOLDER.parents[1])  # reports name lines of the programs relative to this folder
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")
    for file, text in TEXTS.items():
        (FOLDER / file).write_text(text(), encoding="utf-8")
    write()
    pages = write_pages()
    print(f"wrote {len(PICTURES) + len(TEXTS)} pictures to {FOLDER}, and {pages} step pages next to it")


if __name__ == "__main__":
    main()
