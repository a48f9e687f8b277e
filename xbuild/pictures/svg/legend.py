"""Legend and notes of a drawing: the meaning of its colours and lines, and what it leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..layout.places import Rectangle
from ..layout.sizes import width_of
from ..model.kinds import KINDS
from ..model.picture import Picture
from .marks import mark_class, scale_legend
from .outlines import n, outline
from .style import kind_class

SIZE = 10.5
WORDS = {
    "value": "value",
    "token": "token",
    "control": "runs after",
    "call": "result of a called computation",
    "channel": "channel",
}
_HEIGHT = 20.0


def notes(picture: Picture, width: float) -> tuple[list[str], float]:
    """The notes as lines of text above the drawing, and their height."""
    from .document import text

    lines = [text(0, 11 + 16 * number, note, 11.5, "dim") for number, note in enumerate(picture.notes)]
    return lines, 16.0 * len(lines) + (10 if lines else 0)


def legend(picture: Picture, width: float, others: Sequence[Picture] = ()) -> tuple[list[str], float, float]:
    """The legend of the kinds of boxes and lines that occur, its height below the drawing, and its least width."""
    items = [*_swatches([picture, *others]), *_strokes([picture, *others])]
    least = max((w for w, _ in items), default=0.0)
    widest = max(least, width, 420.0)
    found: list[str] = []
    plain = mark_class(picture.scale, None)
    x, y = 0.0, 20.0
    for wide, (kind, mark, words) in items:
        if x and x + wide > widest:
            x, y = 0.0, y + _HEIGHT + 5
        found += _item(kind, mark, words, x, y, wide, plain)
        x += wide + 8
    if picture.scale and items:
        folded = any(len(box.mark.values) > 1 for box in picture.all_boxes() if box.mark)
        row, wide = scale_legend(picture.scale, y + _HEIGHT + 5, folded=folded)
        found, least, y = [*found, *row], max(least, wide), y + _HEIGHT + 5
    notes_wide = max((width_of(note, 11.5) for note in picture.notes), default=0.0)
    return found, (y + _HEIGHT) if items else 0.0, max(least, notes_wide, min(420.0, widest) if items else 0.0)


def _swatches(pictures: Sequence[Picture]) -> Iterator[tuple[float, tuple[str, str, str]]]:
    """The kinds of boxes that occur, each with its width."""
    found = {kind for picture in pictures for kind in picture.kinds()}
    for kind in (each for each in KINDS if each in found):
        yield width_of(kind.name, SIZE) + 40, (kind.outline, kind.letter, kind.name)


def _strokes(pictures: Sequence[Picture]) -> Iterator[tuple[float, tuple[str, str, str]]]:
    """The sorts of lines that occur, each with its width."""
    occurring = {edge.what for picture in pictures for edge in picture.edges}
    for what, words in WORDS.items():
        if what in occurring and what != "value":
            yield width_of(words, SIZE) + 46, ("", what, words)


def _item(kind: str, mark: str, words: str, x: float, y: float, wide: float, plain: str) -> Iterator[str]:
    from .document import text

    if kind:
        place = Rectangle(x, y, wide, _HEIGHT)
        yield f'<g class="shapes {kind_class(mark)}{plain}"><path d="{outline(kind, place)}"/>'  # type: ignore[arg-type]
        yield text(x + 12, y + 14, mark, SIZE, "name")
        yield f"{text(x + 27, y + 14, words, SIZE)}</g>"
    else:
        line = f'<path marker-end="url(#xb-{mark})" d="M{n(x + 4)} {n(y + 10)}H{n(x + 36)}"/>'
        yield f'<g class="line {mark}">{line}</g>{text(x + 43, y + 14, words, SIZE, f"w-{mark}")}'
