"""The tiles of an array as text: a table for each panel, a cell for each tile, with its devices."""

from __future__ import annotations

from collections.abc import Iterator

from shape_inference.escaping import printable

from . import Panel, TilePicture


def tiles_text(picture: TilePicture) -> str:
    """The picture as text."""
    lines = [picture.headline, *(f"  {each}" for each in picture.remarks)]
    for panel in picture.panels:
        lines += [f"  {panel.title}"] if panel.title else []
        lines += _table(panel)
    return printable("".join(f"{line}\n" for line in (*lines, *picture.notes, *picture.report.splitlines())))


def _table(panel: Panel) -> Iterator[str]:
    columns = list(dict.fromkeys(tile.columns[0] for tile in panel.tiles))
    rows = list(dict.fromkeys(tile.rows for tile in panel.tiles))
    cells = {(tile.rows, tile.columns[0]): f" {tile.label} " for tile in panel.tiles}
    wide = [max(len(cells[row, column]) for row in rows) for column in columns]
    rule = "  +" + "+".join("-" * each for each in wide) + "+"
    yield rule
    for row in rows:
        yield "  |" + "|".join(cells[row, c].center(w) for c, w in zip(columns, wide, strict=True)) + "|"
        yield rule
