"""Redraw all pictures; look at the differences before you commit them."""

from __future__ import annotations

import os

from examples.gallery.pages import write_pages
from examples.gallery.pictures import FOLDER, PICTURES, TEXTS


def main() -> None:
    os.chdir(FOLDER.parents[1])  # lines of the programs are told from here
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")
    for file, text in TEXTS.items():
        (FOLDER / file).write_text(text(), encoding="utf-8")
    pages = write_pages()
    print(f"{len(PICTURES) + len(TEXTS)} pictures in {FOLDER}, {pages} step pages beside it")


if __name__ == "__main__":
    main()
